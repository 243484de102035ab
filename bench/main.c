/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - tokbench: measures tokmap against the machine's own limits. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/options.h"
#include "core/bench_file.h"
#include "core/work_folder.h"
#include "fit/fit_command.h"
#include "pages/pages.h"
#include "python_commands.h"
#include "system/memory_file.h"
#include "system/protected.h"
#include "tokmap.h"

typedef struct command_line {
    bench_options options;
    const char *json;
    char command[1024];
    bool version;
} command_line;

/* The pages, in the order of --help and of measuring. */
static const struct {
    const char *name;
    void (*run)(const bench_options *options, bench_report *report);
    bool in_all;       /* needs no files from the user */
    const char *takes; /* names of options that not all pages take, with blanks around them */
    const char *help;  /* what it measures */
} pages[] = {
    {"verify", bench_verify, true, " verify-mib ",
     .help = "checking a dataset, compared with only reading the same file"},
    {"lookup", bench_lookup, true, " documents ",
     .help = "which document holds a token, among a million and a billion documents"},
    {"load", bench_load, true, " load-mib data ",
     .help = "the loader on data in memory: a sample, a batch gathered or widened, ways of "
             "shuffling"},
    {"cold", bench_cold, true, " load-mib data ",
     .help = "the loader on data that are not in memory, compared with the device's own rate"},
    {"stall", bench_stall, true, " load-mib data step-ms ",
     .help = "a simulated training step: how long it waits for its batch, hot and cold"},
    {"start", bench_start, true, " load-mib ",
     .help = "starting up, seeking, restoring and memory at 10^6 to 10^13 tokens and with 10,000 "
             "joined files; the loader over 100 of them"},
    {"mix", bench_mix, true, "",
     .help = "mixtures of 1 to 64 sources, with limits on epochs, and with changing weights"},
    {"views", bench_views, true, " documents load-mib data ",
     .help = "views of a hundred million documents written and opened, and their rows"},
    {"lists", bench_lists, true, " documents load-mib data ",
     .help = "lists of a hundred million documents: opening them, and their rows"},
    {"scan", bench_scan, true, " load-mib ",
     .help = "looking for n-grams of examples, and for documents with the same tokens"},
    {"gpu", bench_gpu, true, " load-mib data ",
     .help = "copies to a GPU, and batches staged on it; left out if there is none"},
    {"tokenize", bench_tokenize, false, " tokenizer pattern text ids threads ",
     .help = "text in memory to ids, cold and warm (needs --tokenizer)"},
    {"pack", bench_pack, false, " tokenizer pattern text threads ",
     .help = "a corpus to a dataset, and each stage of it alone (needs --tokenizer)"},
};
enum {
    N_PAGES = sizeof pages / sizeof pages[0],
    MAX_MIB = 1 << 24
};

static const cli_word *list_pages(void)
{
    static cli_word words[N_PAGES + 2];
    for (uint32_t p = 0; p < N_PAGES; p++)
        words[p] = (cli_word){pages[p].name, p, pages[p].help};
    words[N_PAGES] =
        (cli_word){"all", N_PAGES,
                   "all of these except tokenize and pack, in three to ten minutes; cold is "
                   "shortened"};
    return words;
}

/* Parses "5,20,100". */
static int parse_steps(void *line, const char *text)
{
    bench_options *o = &((command_line *)line)->options;
    const char *at = text;
    char *end;
    bool fine = text[strspn(text, "0123456789.,")] == 0;
    o->n_step_ms = 0;
    do {
        const double ms = real_read(at, &end);
        fine = fine && end > at && ms >= 0.1 && ms <= 10000 && o->n_step_ms < BENCH_MAX_STEPS;
        for (uint32_t i = 0; i < o->n_step_ms && fine; i++)
            fine = o->step_ms[i] != ms;
        if (fine)
            o->step_ms[o->n_step_ms++] = ms;
        at = end + 1;
    } while (fine && *end == ',');
    if (fine && *end == 0)
        return CLI_OK;
    return cli_usage("--step-ms %s: must be up to %d different numbers from 0.1 to 10000, with "
                     "commas between them",
                     text, BENCH_MAX_STEPS);
}

#define TARGET(field) offsetof(command_line, field)
static const cli_option option_table[] = {
    {"dir", 0, CLI_TEXT, TARGET(options.dir), "DIR",
     .help = "folder for test data, removed at the end; all pages together need 5 GB, and cold "
             "alone 8 GiB [$TMPDIR or /tmp]"},
    {"rounds", 0, CLI_NUMBER, TARGET(options.n_rounds), "N",
     .help = "number of rounds of each page, 1 to 101 [depends on the page]", .lowest = 1,
     .highest = BENCH_MAX_ROUNDS},
    {"documents", 0, CLI_NUMBER, TARGET(options.n_documents), "N",
     .help = "documents in the large dataset of lookup, views and lists [lookup: 1000000000; else "
             "100000000]",
     .lowest = 1},
    {"verify-mib", 0, CLI_NUMBER, TARGET(options.verify_mib), "N",
     .help = "size of the verify dataset in MiB [512]", .lowest = 1, .highest = MAX_MIB},
    {"load-mib", 0, CLI_NUMBER, TARGET(options.load_mib), "N",
     .help = "size of the data of load, cold, stall, start and gpu in MiB [1024; cold: "
             "8192, or 2048 with all]",
     .lowest = 1, .highest = MAX_MIB},
    {"data", 0, CLI_TEXT, TARGET(options.data), "P",
     .help = "for load, cold, stall and gpu: the dataset to read; nothing is written to it"},
    {"step-ms", 0, CLI_CALL, 0, "N,...",
     .help = "durations of the steps of stall in milliseconds, at most 8 [5,20,100]",
     .call = parse_steps},
    {"tokenizer", 0, CLI_TEXT, TARGET(options.tokenizer), "FILE",
     .help = "for tokenize and pack: a tokenizer, as 'tokmap pack' accepts it"},
    {"pattern", 0, CLI_TEXT, TARGET(options.pattern), "NAME",
     .help = "for tokenize and pack: as for 'tokmap pack'"},
    {"text", 0, CLI_TEXT, TARGET(options.text), "FILE",
     .help = "for tokenize and pack: a corpus, as 'tokmap pack' accepts it [64 MiB that are made, "
             "with more tokens in a byte than a language has]"},
    {"ids", 0, CLI_TEXT, TARGET(options.ids), "FILE",
     .help =
         "for tokenize: write the ids of its first pass to FILE, as 32-bit little-endian numbers"},
    {"threads", 'j', CLI_NUMBER, TARGET(options.n_threads), "N",
     .help = "for tokenize: also measure N threads; for pack: use N threads [1]", .lowest = 1,
     .highest = 64},
    {"json", 0, CLI_TEXT, TARGET(json), "FILE",
     .help = "write all figures to FILE as JSON; - is stdout"},
    {"version", 0, CLI_FLAG, TARGET(version), .help = "print the version and exit"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokbench\n       tokbench fit P... [OPTION]...\n"
             "       tokbench loader MODULE:NAME [OPTION]...\n"
             "       tokbench file-system DIR [OPTION]...\n       tokbench compare OLD NEW\n"
             "       tokbench PAGE... [OPTION]...",
    .about =
        "Without arguments: looks at this machine for half a minute, and prints one screen.\n\n"
        "Answers a question: 'tokbench fit' says whether a training would wait for its data "
        "on this machine; 'tokbench fit --help' explains it.\n\n"
        "Or measures tokmap, for those who work on it. Systems that are compared run in turn "
        "in one process. Figures are medians, with the smallest and the largest beside them.",
    .list_title = "Pages",
    .get_list = list_pages,
    .options = option_table,
    .notes = "Exit status: 0 done, whether or not targets were reached; 1 something failed; 2 the "
             "command line is wrong.",
    .examples = "  tokbench fit data/train --gpus 8 --tokens-per-second 15k\n"
                "  tokbench loader my_training:make_loader --step-ms 180\n"
                "  tokbench all --json results.json\n"
                "  tokbench load stall --data data/train --step-ms 5\n"
                "  tokbench tokenize --tokenizer tokenizer.json --text corpus.jsonl -j 2\n",
};

static int choose_pages(int argc, char **argv, command_line *line, bool *chosen)
{
    char name[32];
    if (argc == 0)
        return cli_usage("no page given");
    for (int i = 0; i < argc; i++) {
        const cli_word *page = cli_find_word(list_pages(), argv[i]);
        if (!page)
            return cli_refuse_word("page", argv[i], list_pages());
        const bool all = page->value == N_PAGES;
        line->options.all |= all;
        for (uint32_t p = 0; p < N_PAGES; p++)
            chosen[p] |= page->value == p || (all && pages[p].in_all);
    }
    /* An option of other pages would have no effect. */
    for (const cli_option *o = option_table; o->name; o++) {
        bool by_some = false, by_chosen = false;
        snprintf(name, sizeof name, " %s ", o->name);
        for (int p = 0; p < N_PAGES; p++) {
            const bool takes = strstr(pages[p].takes, name) != NULL;
            by_some |= takes;
            by_chosen |= takes && chosen[p];
        }
        if (cli_is_given(o->name) && by_some && !by_chosen)
            return cli_usage("none of these pages takes --%s", o->name);
    }
    if (line->options.data && line->options.load_mib)
        return cli_usage("--load-mib is the size of test data, which --data replaces");
    return CLI_GO_ON;
}

/* Checks for errors that would otherwise show after minutes of other pages, or would falsify their
 * figures. */
static int check_surroundings(const bench_options *options)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    bench_ignore_io();
    const char *const read[] = {options->text, options->tokenizer};
    for (int i = 0; i < 2; i++)
        if (read[i] && path_protect_name(read[i], "an input"))
            return 1;
    if (!options->data)
        return CLI_GO_ON;
    if (tokmap_dataset_open(&ds, options->data, &err))
        return cli_error(1, "--data: %s", err.text);
    const tokmap_dataset_info info = cli_dataset_info(ds);
    int code = path_protect_dataset(ds);
    if (!code && cli_is_joined(&info))
        code = cli_error(1,
                         "--data %s: is joined, and the pages measure one token file; make one "
                         "with tokmap merge",
                         options->data);
    tokmap_dataset_close(ds);
    return code ? 1 : CLI_GO_ON;
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

/* What is measured. */
typedef struct work {
    command_line line;
    bool chosen[N_PAGES];
    output_file json;
} work;

/* Measures the chosen pages and writes the results. Returns the exit status. */
static int measure(void *context, const char *folder)
{
    static bench_report report;
    work *w = context;
    command_line *line = &w->line;
    line->options.dir = folder;
    const bench_times before = bench_read_times();
    memory_file text;
    for (int p = 0; p < N_PAGES; p++) {
        if (!w->chosen[p])
            continue;
        cli_warn("%s ...", pages[p].name);
        report.page = pages[p].name;
        pages[p].run(&line->options, &report);
        bench_empty_folder(folder);
    }
    const bench_times after = bench_read_times();
    const double all = after.all - before.all, others = after.others - before.others;
    report.others_percent = all > 0 && others > 0 ? 100 * others / all : 0;
    report.steal_percent = all > 0 ? 100 * (after.steal - before.steal) / all : 0;
    bench_print_rows(&report, line->json && strcmp(line->json, "-") == 0 ? stderr : stdout);
    if (cli_finish() != CLI_OK)
        return 1;
    if (!line->json)
        return 0;
    FILE *out = memory_file_open(&text);
    if (out)
        bench_print_json(&report, line->command, out);
    if (!out || !memory_file_close(out, &text))
        bench_fail("out of memory");
    const int code = bench_file_write(&w->json, text.text, text.n_bytes);
    free(text.text);
    return code;
}

/* What answers a question, and has options of its own. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} questions[] = {{"fit", fit_command},
                 {"loader", loader_command},
                 {"file-system", file_system_command},
                 {"compare", compare_command}};
enum {
    N_QUESTIONS = sizeof questions / sizeof *questions
};

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is an error like others */
    work w = {.line.options.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", .json.fd = -1};
    command_line *line = &w.line;
    cli_begin("tokbench", NULL);
    if (cli_begin_completion(argc, argv)) {
        argc--;
        argv++;
        for (int i = 0; i < N_QUESTIONS && argc == 2; i++)
            cli_complete_word(argv[1], (cli_word[]){{questions[i].name}, {NULL}});
    }
    if (argc == 1)
        return fit_glance();
    for (int i = 0; i < N_QUESTIONS && argc > 1; i++)
        if (strcmp(argv[1], questions[i].name) == 0) {
            cli_begin("tokbench", argv[1]);
            return questions[i].run(argc - 1, argv + 1);
        }
    join_arguments(argc, argv, line->command, sizeof line->command); /* before getopt moves them */
    int code = cli_parse_options(&manual, argc, argv, line);
    if (code != CLI_GO_ON)
        return code;
    if (line->version) {
        printf("tokbench %s\n", tokmap_version());
        return cli_finish();
    }
    code = choose_pages(argc - optind, argv + optind, line, w.chosen);
    if (code == CLI_GO_ON)
        code = check_surroundings(&line->options);
    if (code != CLI_GO_ON)
        return code;
    if (line->json &&
        bench_file_open(&w.json, line->json)) /* reported now, not after all the work */
        return 1;
    code = bench_run_in_folder(line->options.dir, measure, &w);
    output_close(&w.json); /* the worker has placed it, if there was no error */
    return code;
}
