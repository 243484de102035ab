/* main.c - tokbench: measures tokmap against the machine's own limits. */
#include <errno.h>
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pages/pages.h"
#include "core/bench_file.h"
#include "system/protected.h"
#include "tokmap.h"

static const char help_begin[] =
    "Usage: tokbench PAGE... [options]\n"
    "\n"
    "Measures tokmap on this machine. Systems that are compared run in turn in one process; "
    "figures are\n"
    "medians, with the smallest and the largest beside them.\n"
    "\n"
    "Pages:\n";
static const char help_end[] =
    "  all      all of these but the last two, in three to ten minutes; cold is shorter then\n"
    "\n"
    "Options:\n"
    "  --dir DIR         where test data is made and removed again [$TMPDIR or /tmp];\n"
    "                    all pages together need 5 GB, and cold alone 8 GiB\n"
    "  --rounds N        rounds of each page, 1 to 101 [a number that suits the page]\n"
    "  --documents N     documents of the large lookup dataset [1000000000]\n"
    "  --verify-mib N    size of the verify dataset [512]\n"
    "  --load-mib N      size of the data of limits, load, cold, stall and gpu [1024; cold:\n"
    "                    8192, with all 2048]\n"
    "  --data P          load, cold, stall and gpu read your dataset P, and write nothing\n"
    "  --step-ms N,N,... steps of stall in milliseconds, up to 8 [5,20,100]\n"
    "  --tokenizer FILE  a vocabulary, as 'tokmap pack' takes it, and\n"
    "  --pattern NAME    what it needs\n"
    "  --text FILE       JSON lines with the field \"text\", or plain text; for pack also gzip\n"
    "                    or zstd\n"
    "  --ids FILE        write the ids of the first pass to FILE, as 32-bit numbers\n"
    "  -j, --jobs N      also with N threads; pack with so many\n"
    "  --json FILE       write all figures to FILE as JSON; - is standard output\n"
    "  -h, --help        show this\n"
    "      --version     show the version\n"
    "\n"
    "Exit status: 0 done (whether or not targets were reached), 1 something failed, 2 wrong "
    "usage.\n"
    "\n"
    "Examples:\n"
    "  tokbench all --json results.json\n"
    "  tokbench load stall --data data/train --step-ms 20\n"
    "  tokbench tokenize --tokenizer tokenizer.json --text corpus.jsonl -j 2\n";

typedef struct command_line {
    bench_options options;
    const char *json;
    char command[1024];
    char given[32]; /* options, by their letters */
} command_line;

#define ROW(x) &x##_page,
static const bench_page *const pages[] = {BENCH_PAGES(ROW)};
#undef ROW
enum {
    N_PAGES = sizeof pages / sizeof pages[0]
};

static int print_help(void)
{
    fputs(help_begin, stdout);
    for (int p = 0; p < N_PAGES; p++) {
        const char *line = pages[p]->help;
        printf("  %-8s ", pages[p]->name);
        for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            printf("%.*s\n           ", (int)(end - line), line);
        puts(line);
    }
    fputs(help_end, stdout);
    return fflush(stdout) ? 1 : 0;
}

static int usage(const char *text, const char *what)
{
    return cli_usage("%s%s", text, what);
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && *end == 0;
}

/* "5,20,100" */
static bool parse_steps(const char *text, bench_options *o)
{
    o->n_step_ms = 0;
    if (text[strspn(text, "0123456789.,")])
        return false;
    for (;;) {
        char *end;
        const double ms = strtod(text, &end);
        if (end == text || ms < 0.1 || ms > 10000 || o->n_step_ms == BENCH_MAX_STEPS)
            return false;
        for (uint32_t i = 0; i < o->n_step_ms; i++)
            if (o->step_ms[i] == ms)
                return false;
        o->step_ms[o->n_step_ms++] = ms;
        if (*end == 0)
            return true;
        text = end + 1;
        if (*end != ',')
            return false;
    }
}

/* -1: go on; else an exit code. */
static int take_number(int option, char **argv, command_line *line)
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
        return cli_bad_option(option, argv);
    }
}

static int take_option(int option, char **argv, command_line *line)
{
    const size_t n_given = strlen(line->given);
    if (!strchr(line->given, option) && n_given + 1 < sizeof line->given)
        line->given[n_given] = (char)option;
    switch (option) {
    case 'h':
        return print_help();
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
    case 'D':
        line->options.data = optarg;
        return -1;
    case 's':
        return parse_steps(optarg, &line->options)
                   ? -1
                   : usage("--step-ms takes different numbers from 0.1 to 10000, up to 8, with "
                           "commas, not ",
                           optarg);
    default:
        return take_number(option, argv, line);
    }
}

/* An option that none of the pages takes would be without effect. */
static int check_options(const command_line *line, const bool *chosen)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'n', "--documents"}, {'v', "--verify-mib"}, {'l', "--load-mib"}, {'D', "--data"},
                 {'s', "--step-ms"},   {'t', "--tokenizer"},  {'p', "--pattern"},  {'x', "--text"},
                 {'i', "--ids"},       {'j', "--jobs"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool taken = !strchr(line->given, names[i].letter);
        for (int p = 0; p < N_PAGES; p++)
            taken |= chosen[p] && strchr(pages[p]->takes, names[i].letter);
        if (!taken)
            return usage("none of these pages takes ", names[i].name);
    }
    if (line->options.data && line->options.load_bytes)
        return usage("--load-mib is a size of test data, of which --data wants none", "");
    return -1;
}

static int choose(int argc, char **argv, command_line *line, bool *chosen)
{
    for (int i = 0; i < argc; i++) {
        const bool all = strcmp(argv[i], "all") == 0;
        bool known = all;
        line->options.all |= all;
        for (int p = 0; p < N_PAGES; p++)
            if (strcmp(argv[i], pages[p]->name) == 0 || (pages[p]->in_all && all))
                chosen[p] = known = true;
        if (!known)
            return usage("there is no page ", argv[i]);
    }
    return argc == 0 ? usage("name a page", "") : check_options(line, chosen);
}

/* What would only be found out after minutes of other pages, or would spoil what they measure. */
static int check_surroundings(const bench_options *options)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (getenv("TOKMAP_IO")) {
        cli_warn("TOKMAP_IO is not followed here: ways of reading are compared");
        unsetenv("TOKMAP_IO");
    }
    const char *const read[] = {options->text, options->tokenizer};
    for (int i = 0; i < 2; i++)
        if (read[i] && path_protect_name(read[i], "an input"))
            return 1;
    if (!options->data)
        return -1;
    if (tokmap_dataset_open(&ds, options->data, &err)) {
        cli_warn("--data: %s", err.text);
        return 1;
    }
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    const int code = path_protect_dataset(&info);
    tokmap_dataset_close(ds);
    return code ? 1 : -1;
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
        cli_warn("%s ...", pages[p]->name);
        code = pages[p]->run(&line->options, report);
    }
    return code;
}

static int measure(const command_line *line, const bool *chosen, bench_file *json)
{
    static bench_report report;
    if (run_pages(line, chosen, &report))
        return 1;
    bench_print_table(&report, json->f == stdout ? stderr : stdout);
    if (fflush(stdout)) {
        cli_warn("%s: %s", "stdout", strerror(errno));
        return 1;
    }
    if (!json->f)
        return 0;
    const int code = bench_print_json(&report, line->command, json->f);
    return bench_file_place(json) || code;
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
static int measure_and_clean_up(const command_line *line, const bool *chosen, bench_file *json)
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
        exit(measure(line, chosen, json));
    }
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    int status = 1;
    while (worker > 0 && waitpid(worker, &status, 0) < 0)
        continue;
    remove_folder(line->options.dir);
    bench_file_abandon(json); /* which the worker has placed, if all went well */
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
        {"jobs", required_argument, NULL, 'j'},       {"data", required_argument, NULL, 'D'},
        {"step-ms", required_argument, NULL, 's'},    {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0}};
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of sizes is an error like others */
    char dir[4096];
    bench_file json = {.out = {.fd = -1}};
    command_line line = {.options = {.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"}};
    cli_begin("tokbench", NULL);
    join_arguments(argc, argv, line.command, sizeof line.command); /* before getopt moves them */
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
        const int code = take_option(option, argv, &line);
        if (code >= 0)
            return code;
    }
    bool chosen[N_PAGES] = {false};
    int code = choose(argc - optind, argv + optind, &line, chosen);
    if (code < 0)
        code = check_surroundings(&line.options);
    if (code >= 0)
        return code;
    snprintf(dir, sizeof dir, "%s/tokbench-XXXXXX", line.options.dir);
    if (!mkdtemp(dir)) {
        cli_warn("%s: %s", dir, strerror(errno));
        return 1;
    }
    line.options.dir = dir;
    if (line.json && bench_file_open(&json, line.json)) { /* told now, not after all the work */
        rmdir(dir);
        return 1;
    }
    return measure_and_clean_up(&line, chosen, &json);
}
