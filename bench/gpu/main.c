/* main.c - gpubench: the experiments of bench/gpu.sh that need a device and no framework. */
#include "gpubench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "Usage: gpubench PAGE [options]\n"
    "\n"
    "One experiment on the first CUDA device; bench/gpu.sh runs them all. Rows of figures are "
    "lines\n"
    "of JSON, on standard output and at the end of a file.\n"
    "\n"
    "Pages:\n"
    "  data      makes the datasets that the others read (needs no device)\n"
    "  h2d       E1: copies to the device by size, from five kinds of host memory\n"
    "  slices    E2: many slices by copies, by one copy, by a kernel that reads host memory\n"
    "  register  E3: which mapped files can be registered, and what that costs\n"
    "  expand    E4: the outputs of a batch against plain C; the kernel's speed\n"
    "  pipeline  E5: the loader alone, in bytes over the bus, against the link's peak\n"
    "  stress    E9: batches held and released in any order, two streams, a graph\n"
    "  cold      E10: a file that is not in memory, by each way of reading\n"
    "  fork      E11: how long fork takes, and what a child is told\n"
    "  numa      E12: copies from each memory node; a mapped file that is not registered\n"
    "\n"
    "Options:\n"
    "  --rows FILE    append the rows there\n"
    "  --data P       datasets P-large and P-small of 16-bit tokens, P-wide of 32-bit tokens\n"
    "  --dir DIR      for files that are made and removed\n"
    "  --seconds N    about how long the page may take [20]\n"
    "  --cases N      expand: that many cases and no timing\n"
    "  --mib N        data: size of the larger dataset [4096]\n"
    "  --hold-link    h2d: only keep the link busy for the time given\n"
    "  -h, --help     show this\n"
    "\n"
    "Exit status: 0 done, 1 something failed, 2 wrong usage, 77 skipped: the last line says why.\n";

static uint64_t began_ns;
static double seconds_given = 20;
static char problem[600] = "nothing was measured";

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double seconds_left(void)
{
    return seconds_given - (double)(now_ns() - began_ns) / 1e9;
}

double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool fine(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return true;
    snprintf(problem, sizeof problem, "%s: error %d, %s: %s", what, (int)error,
             cudaGetErrorName(error), cudaGetErrorString(error));
    fprintf(stderr, "gpubench: %s\n", problem);
    (void)cudaGetLastError(); /* the next call is not to find it */
    return false;
}

bool fine_status(tokmap_status status, const tokmap_error *err)
{
    if (status == TOKMAP_OK)
        return true;
    snprintf(problem, sizeof problem, "%s", err->text);
    fprintf(stderr, "gpubench: %s\n", problem);
    return false;
}

const char *last_problem(void)
{
    return problem;
}

/* xorshift64*: good enough for places and lengths. */
uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state ? *state : 0x9E3779B97F4A7C15u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Du;
}

const char *size_text(uint64_t n_bytes)
{
    static char texts[4][32];
    static unsigned next;
    char *text = texts[next++ % 4];
    if (n_bytes >= GIB)
        snprintf(text, 32, "%g GiB", (double)n_bytes / (double)GIB);
    else if (n_bytes >= MIB)
        snprintf(text, 32, "%g MiB", (double)n_bytes / (double)MIB);
    else
        snprintf(text, 32, "%g KiB", (double)n_bytes / (double)KIB);
    return text;
}

/* ---- Pages ---- */

static const struct {
    const char *name;
    page *run;
    bool needs_device, needs_data;
} pages[] = {{"data", data_page, false, true},    {"h2d", h2d_page, true, false},
             {"slices", slices_page, true, true}, {"register", register_page, true, false},
             {"expand", expand_page, true, true}, {"pipeline", pipeline_page, true, true},
             {"stress", stress_page, true, true}, {"cold", cold_page, true, true},
             {"fork", fork_page, true, true},     {"numa", numa_page, true, false}};

static int run_page(size_t i, const options *o)
{
    int n = 0;
    if (pages[i].needs_data && !o->large) {
        fprintf(stderr, "gpubench %s: needs --data\n", pages[i].name);
        return STATUS_USAGE;
    }
    if (pages[i].needs_device && (!fine(cudaGetDeviceCount(&n), "looking for a device") || n < 1)) {
        printf("skip: %s\n", n < 1 && problem[0] ? problem : "there is no device");
        return STATUS_SKIPPED;
    }
    if (pages[i].needs_device && !fine(cudaSetDevice(0), "cudaSetDevice"))
        return STATUS_FAILED;
    return pages[i].run(o);
}

static int usage(const char *what)
{
    fprintf(stderr, "gpubench: %s\nTry 'gpubench --help'.\n", what);
    return STATUS_USAGE;
}

static void name_data(options *o, const char *prefix)
{
    static char names[3][4096];
    static const char *const suffixes[3] = {"large", "small", "wide"};
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s-%s", prefix, suffixes[i]);
    o->large = names[0];
    o->small = names[1];
    o->wide = names[2];
}

static int take_options(int argc, char **argv, options *o)
{
    enum {
        ROWS = 256,
        DATA,
        DIR,
        SECONDS,
        CASES,
        SIZE,
        HOLD
    };
    static const struct option names[] = {
        {"rows", 1, NULL, ROWS},       {"data", 1, NULL, DATA},   {"dir", 1, NULL, DIR},
        {"seconds", 1, NULL, SECONDS}, {"cases", 1, NULL, CASES}, {"mib", 1, NULL, SIZE},
        {"hold-link", 0, NULL, HOLD},  {"help", 0, NULL, 'h'},    {0}};
    int c;
    while ((c = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        if (c == ROWS && !rows_open(optarg))
            return STATUS_FAILED;
        if (c == DATA)
            name_data(o, optarg);
        o->dir = c == DIR ? optarg : o->dir;
        o->seconds = c == SECONDS ? strtod(optarg, NULL) : o->seconds;
        o->n_cases = c == CASES ? (uint32_t)strtoul(optarg, NULL, 10) : o->n_cases;
        o->n_bytes = c == SIZE ? strtoull(optarg, NULL, 10) * MIB : o->n_bytes;
        o->hold_link |= c == HOLD;
        if (c == 'h') {
            fputs(help, stdout);
            exit(0);
        }
        if (c == '?')
            return usage("wrong usage");
    }
    if (!(o->seconds > 0) || o->n_bytes == 0)
        return usage("--seconds and --mib have to be above 0");
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.dir = "/tmp", .seconds = 20, .n_bytes = 4 * GIB};
    const int code = take_options(argc, argv, &o);
    if (code)
        return code;
    if (optind + 1 != argc)
        return usage("name one page");
    began_ns = now_ns();
    seconds_given = o.seconds;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(argv[optind], pages[i].name) == 0)
            return run_page(i, &o);
    return usage("there is no such page");
}
