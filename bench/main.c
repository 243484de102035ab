/* main.c - tokbench: measures tokmap against the machine's own limits. */
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "tokmap.h"

static const char help[] =
    "Usage: tokbench PAGE... [options]\n"
    "\n"
    "Measures tokmap on this machine. Systems that are compared run in turn in one process; "
    "figures are\n"
    "medians, with the smallest and the largest beside them.\n"
    "\n"
    "Pages:\n"
    "  verify   checking a dataset against plainly reading the same file\n"
    "  lookup   which document holds a token: a million documents and a thousand million\n"
    "  open     opening 10^6 and 10^12 tokens (a sparse file)\n"
    "  load     the loader: a sample, a batch gathered, starting up at 10^6 to 10^13 tokens\n"
    "  cold     the loader on data that are not in memory, beside the device's own rate\n"
    "  tokenize text in memory to ids, cold and warm (needs --tokenizer and --text)\n"
    "  pack     a corpus to a dataset, and each stage of it alone (likewise)\n"
    "  all      verify, lookup, open and load\n"
    "\n"
    "Options:\n"
    "  --dir DIR         where test data is made and removed again [$TMPDIR or /tmp];\n"
    "                    all pages together need 5 GB, and cold 8 GiB\n"
    "  --rounds N        rounds of each page, 1 to 101 [a number that suits the page]\n"
    "  --documents N     documents of the large lookup dataset [1000000000]\n"
    "  --verify-mib N    size of the verify dataset [512]\n"
    "  --load-mib N      size of the dataset of load and cold [1024, 8192]\n"
    "  --tokenizer FILE  a vocabulary, as 'tokmap pack' takes it, and\n"
    "  --pattern NAME    what it needs\n"
    "  --text FILE       JSON lines with the field \"text\", or plain text; for pack also gzip\n"
    "                    or zstd\n"
    "  --ids FILE        write the ids of the first pass to FILE, as 32-bit numbers\n"
    "  -j, --jobs N      also with N threads\n"
    "  --json FILE       write all figures to FILE as JSON; - is standard output\n"
    "  -h, --help        show this\n"
    "      --version     show the version\n"
    "\n"
    "Exit status: 0 done (whether or not targets were reached), 1 something failed, 2 wrong "
    "usage.\n"
    "\n"
    "Examples:\n"
    "  tokbench all --json results.json\n"
    "  tokbench tokenize --tokenizer tokenizer.json --text corpus.jsonl -j 2\n";

typedef struct command_line {
    bench_options options;
    const char *json;
} command_line;

static int usage(const char *text, const char *what)
{
    fprintf(stderr, "tokbench: %s%s\nTry 'tokbench --help'.\n", text, what);
    return 2;
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && *end == 0;
}

/* -1: go on; else an exit code. */
static int take_number(int option, command_line *line)
{
    uint64_t n = 0;
    switch (option) {
    case 'r':
        if (!parse_number(optarg, &n) || n > BENCH_MAX_ROUNDS)
            return usage("--rounds takes 1 to 101, not ", optarg);
        line->options.n_rounds = (uint32_t)n;
        return -1;
    case 'n':
        if (!parse_number(optarg, &line->options.n_documents))
            return usage("--documents takes a number, not ", optarg);
        return -1;
    case 'v':
        if (!parse_number(optarg, &n) || n > 1 << 24)
            return usage("--verify-mib takes a number, not ", optarg);
        line->options.verify_bytes = n << 20;
        return -1;
    case 'l':
        if (!parse_number(optarg, &n) || n > 1 << 24)
            return usage("--load-mib takes a number, not ", optarg);
        line->options.load_bytes = n << 20;
        return -1;
    case 'j':
        if (!parse_number(optarg, &n) || n > 64)
            return usage("--jobs takes 1 to 64, not ", optarg);
        line->options.n_jobs = (uint32_t)n;
        return -1;
    default:
        fputs("Try 'tokbench --help'.\n", stderr);
        return 2;
    }
}

static int take_option(int option, command_line *line)
{
    switch (option) {
    case 'h':
        fputs(help, stdout);
        return fflush(stdout) ? 1 : 0;
    case 'V':
        printf("tokbench %s\n", tokmap_version());
        return 0;
    case 'd':
        line->options.dir = optarg;
        return -1;
    case 'o':
        line->json = optarg;
        return -1;
    case 't':
        line->options.tokenizer = optarg;
        return -1;
    case 'p':
        line->options.pattern = optarg;
        return -1;
    case 'x':
        line->options.text = optarg;
        return -1;
    case 'i':
        line->options.ids = optarg;
        return -1;
    default:
        return take_number(option, line);
    }
}

static const struct {
    const char *name;
    bench_page *run;
    bool in_all; /* needs nothing from outside */
} pages[] = {{"verify", verify_page, true}, {"lookup", lookup_page, true},
             {"open", open_page, true},     {"load", load_page, true},
             {"cold", cold_page, false},    {"tokenize", tokenize_page, false},
             {"pack", pack_page, false}};
enum {
    N_PAGES = sizeof pages / sizeof pages[0]
};

static int choose(int argc, char **argv, bool *chosen)
{
    for (int i = 0; i < argc; i++) {
        bool known = false;
        for (int p = 0; p < N_PAGES; p++)
            if (strcmp(argv[i], pages[p].name) == 0 ||
                (pages[p].in_all && strcmp(argv[i], "all") == 0))
                chosen[p] = known = true;
        if (!known)
            return usage("there is no page ", argv[i]);
    }
    return argc == 0 ? usage("name a page", "") : -1;
}

static int write_json(const bench_report *report, FILE *out, const char *path, const char *command)
{
    int code = bench_print_json(report, command, out);
    if (out != stdout && fclose(out))
        code = 1;
    if (code)
        perror(path);
    return code;
}

static void join_arguments(int argc, char **argv, char *command, size_t n_bytes)
{
    size_t used = (size_t)snprintf(command, n_bytes, "tokbench");
    for (int i = 1; i < argc && used < n_bytes; i++) {
        const bool path =
            i > 1 && (!strcmp(argv[i - 1], "--dir") || !strcmp(argv[i - 1], "--json") ||
                      !strcmp(argv[i - 1], "--ids"));
        const char *shown = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        used += (size_t)snprintf(command + used, n_bytes - used, " %s", path ? "..." : shown);
    }
}

static int run_pages(const command_line *line, const bool *chosen, bench_report *report)
{
    int code = 0;
    for (int p = 0; !code && p < N_PAGES; p++) {
        if (!chosen[p])
            continue;
        fprintf(stderr, "tokbench: %s ...\n", pages[p].name);
        code = pages[p].run(&line->options, report);
    }
    return code;
}

static int measure(const command_line *line, const bool *chosen, const char *command)
{
    static bench_report report;
    const bool to_stdout = line->json && strcmp(line->json, "-") == 0;
    FILE *json = to_stdout ? stdout : line->json ? fopen(line->json, "w") : NULL;
    if (line->json && !json) { /* told now, not after all the work */
        perror(line->json);
        return 1;
    }
    if (run_pages(line, chosen, &report))
        return 1;
    bench_print_table(&report, to_stdout ? stderr : stdout);
    if (fflush(stdout)) {
        perror("stdout");
        return 1;
    }
    return json ? write_json(&report, json, line->json, command) : 0;
}

static void remove_folder(const char *dir)
{
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(dir);
}

static volatile pid_t worker;

static void stop_worker(int number)
{
    kill(worker, number);
}

/* In a process of its own, so that whatever ends it, gigabytes of test data do not stay behind. */
static int measure_and_clean_up(const command_line *line, const bool *chosen, const char *command)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction pass_on = {.sa_handler = stop_worker};
    struct sigaction before[3];
    sigset_t set, old_set; /* a signal must not come before there is a worker to be told */
    sigemptyset(&set);
    for (int i = 0; i < 3; i++)
        sigaddset(&set, stops[i]);
    sigprocmask(SIG_BLOCK, &set, &old_set);
    for (int i = 0; i < 3; i++)
        sigaction(stops[i], &pass_on, &before[i]);
    worker = fork();
    if (worker == 0) {
        for (int i = 0; i < 3; i++)
            sigaction(stops[i], &before[i], NULL);
        sigprocmask(SIG_SETMASK, &old_set, NULL);
        exit(measure(line, chosen, command));
    }
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    int status = 1;
    while (worker > 0 && waitpid(worker, &status, 0) < 0)
        continue;
    remove_folder(line->options.dir);
    return worker > 0 && WIFEXITED(status)     ? WEXITSTATUS(status)
           : worker > 0 && WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                               : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},        {"json", required_argument, NULL, 'o'},
        {"rounds", required_argument, NULL, 'r'},     {"documents", required_argument, NULL, 'n'},
        {"verify-mib", required_argument, NULL, 'v'}, {"load-mib", required_argument, NULL, 'l'},
        {"tokenizer", required_argument, NULL, 't'},  {"pattern", required_argument, NULL, 'p'},
        {"text", required_argument, NULL, 'x'},       {"ids", required_argument, NULL, 'i'},
        {"jobs", required_argument, NULL, 'j'},       {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0}};
    char command[1024], dir[4096];
    join_arguments(argc, argv, command, sizeof command); /* before getopt moves them */
    command_line line = {.options = {.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"}};
    int option;
    while ((option = getopt_long(argc, argv, "hj:", options, NULL)) != -1) {
        const int code = take_option(option, &line);
        if (code >= 0)
            return code;
    }
    bool chosen[N_PAGES] = {false};
    int code = choose(argc - optind, argv + optind, chosen);
    if (code >= 0)
        return code;
    snprintf(dir, sizeof dir, "%s/tokbench-XXXXXX", line.options.dir);
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    line.options.dir = dir;
    return measure_and_clean_up(&line, chosen, command);
}
