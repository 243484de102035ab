/* report.c - the command `tokbench report`. */
#include "report/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "core/bench_file.h"
#include "cli/paths.h"
#include "report/page.h"

enum {
    FAILED = 1,
    WRONG_USAGE = 2,
    BAD_INPUT = 3
};

static const char help[] =
    "Usage: tokbench report RESULTS.json... [-o FILE] [-m FILE] [--by-machine]\n"
    "\n"
    "Makes one HTML page of the results that 'tokbench --json' and 'make bench-peers' wrote: "
    "drawings "
    "and\n"
    "every figure in tables. The page needs nothing else: no network, no script.\n"
    "\n"
    "Figures are drawn together only when they come from one file, which is one run. Files of\n"
    "different machines are refused, unless each machine is to have a part of its own.\n"
    "\n"
    "  -o, --output FILE    the page; - is standard output\n"
    "  -m, --markdown FILE  all figures as Markdown tables; - is standard output\n"
    "      --by-machine     files of several machines: a part for each, nothing across\n"
    "  -h, --help           show this\n"
    "\n"
    "One of -o and -m is needed. The same files give the same bytes.\n"
    "\n"
    "Exit status: 0 done, 1 an output cannot be written, 2 wrong usage, 3 a file is no result of\n"
    "tokbench, is damaged, or is of another machine.\n"
    "\n"
    "Example:\n"
    "  tokbench all --json results.json && tokbench report results.json -o report.html\n";

typedef struct request {
    const char *page, *markdown;
    bool by_machine;
    char **files;
    size_t n_files;
} request;

static int usage(const char *text, const char *what)
{
    return cli_usage("%s%s", text, what);
}

/* ---- Parts ---- */

static void add_run(report_memory *memory, report_parts *parts, const report_run *run, size_t n)
{
    report_part *part = parts->parts;
    const report_part *end = parts->parts + parts->n_parts;
    while (part < end && !report_same_machine(&part->machine, &run->machine))
        part++;
    if (part == end) {
        parts->n_parts++;
        part->machine = run->machine;
        part->runs = report_alloc(memory, n * sizeof(report_run *));
    }
    if (!part->machine.gpu) /* a file need not name it */
        part->machine.gpu = run->machine.gpu;
    part->runs[part->n_runs++] = run;
}

static int read_parts(const request *q, report_memory *memory, report_parts *parts)
{
    report_run *runs = report_alloc(memory, q->n_files * sizeof *runs);
    parts->parts = report_alloc(memory, q->n_files * sizeof *parts->parts);
    for (size_t i = 0; i < q->n_files; i++) {
        const int code = report_read(memory, q->files[i], &runs[i]);
        if (code)
            return code;
        for (size_t k = 0; k < i; k++)
            if (strcmp(runs[k].file, runs[i].file) == 0)
                return usage("two files have one name, and the page could not tell them apart: ",
                             runs[i].file);
        add_run(memory, parts, &runs[i], q->n_files);
    }
    if (parts->n_parts <= 1 || q->by_machine)
        return 0;
    const report_run *a = parts->parts[0].runs[0], *b = parts->parts[1].runs[0];
    cli_warn("these files are of different machines, whose figures are not comparable:");
    cli_warn("  %s: %s", a->file, report_machine_text(memory, &a->machine));
    cli_warn("  %s: %s", b->file, report_machine_text(memory, &b->machine));
    cli_warn("With --by-machine each machine gets a part of its own.");
    return BAD_INPUT;
}

/* ---- Outputs ---- */

typedef void put_output(FILE *out, report_memory *memory, const report_parts *parts);

static int write_output(const char *path, put_output *put, report_memory *memory,
                        const report_parts *parts)
{
    bench_file file;
    if (bench_file_open(&file, path))
        return FAILED;
    put(file.f, memory, parts);
    return bench_file_place(&file) ? FAILED : 0;
}

static int make_report(const request *q, report_memory *memory)
{
    report_parts parts = {NULL, 0};
    int code = read_parts(q, memory, &parts);
    if (!code && q->page)
        code = write_output(q->page, report_put_page, memory, &parts);
    if (!code && q->markdown)
        code = write_output(q->markdown, report_put_markdown_tables, memory, &parts);
    return code;
}

/* ---- Command line ---- */

/* -1: go on; else an exit code. */
static int take_option(int option, char **argv, request *q)
{
    switch (option) {
    case 'h':
        fputs(help, stdout);
        return fflush(stdout) ? FAILED : 0;
    case 'o':
        q->page = optarg;
        return -1;
    case 'm':
        q->markdown = optarg;
        return -1;
    case 'M':
        q->by_machine = true;
        return -1;
    case ':':
        return usage("a file name is missing behind ", argv[optind - 1]);
    default:
        return usage("there is no option ", argv[optind - 1]);
    }
}

int report_command(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"markdown", required_argument, NULL, 'm'},
                                            {"by-machine", no_argument, NULL, 'M'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    request q = {0};
    int option;
    cli_begin("tokbench", "report");
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":ho:m:", options, NULL)) != -1) {
        const int code = take_option(option, argv, &q);
        if (code >= 0)
            return code;
    }
    q.files = argv + optind;
    q.n_files = (size_t)(argc - optind);
    if (q.n_files == 0)
        return usage("name a result file", "");
    if (!q.page && !q.markdown)
        return usage("say where to write: -o FILE or -m FILE", "");
    if (q.page && q.markdown && strcmp(q.page, q.markdown) == 0)
        return usage("-o and -m need two files, not both ", q.page);
    const char *const outputs[] = {q.page, q.markdown};
    for (size_t i = 0; i < q.n_files; i++)
        if (path_protect_name(q.files[i], "an input"))
            return FAILED;
    for (int i = 0; i < 2; i++)
        if (outputs[i] && path_check_output(outputs[i]))
            return WRONG_USAGE;
    report_memory memory = {NULL};
    const int code = make_report(&q, &memory);
    report_memory_free(&memory);
    return code;
}
