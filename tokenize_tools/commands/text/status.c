/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - tokmap status: how far the tasks of a plan are. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/text/text_commands.h"
#include "pack/resume.h"
#include "plan/plan_file.h"
#include "system/process.h"
#include "base/array.h"
#include "cli/json_out.h"

#define MAX_LISTED 10

typedef struct status_options {
    bool json, verify;
    bool sees_inputs; /* in the folder of the plan */
} status_options;

static const cli_option option_table[] = {
    {"json", 0, CLI_FLAG, offsetof(status_options, json),
     .help = "print the status as a JSON object"},
    {"verify", 0, CLI_FLAG, offsetof(status_options, verify),
     .help = "read all files of the cells that are done, and compare their checksums; and compare "
             "the sizes and times of their inputs with the plan"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap status [OPTION]... PLAN",
    .about =
        "Shows which cells of a plan are done, as the folder of the cells shows; also while tasks "
        "are running. A cell has failed if one of its files is damaged, or belongs to something "
        "else. The rate is measured over the cells that were done in the last hour; it is not "
        "known before each task has done two cells. Without --verify, only the heads of the files "
        "are read. With it, a cell has also failed if one of its inputs has changed.",
    .options = option_table,
    .examples = "  tokmap status run.plan\n"
                "  tokmap status --json run.plan\n",
    .operand = "plan",
    .n_least = 1,
    .n_most = 1,
};

/* The rate is measured over the last hour, if enough cells were done in it. */
#define RECENT_NS ((uint64_t)3600 * 1000000000)

typedef struct plan_share {
    size_t n_cells;
    uint64_t input_bytes; /* as they are stored */
} plan_share;

typedef struct done_cell {
    uint64_t at_ns, n_bytes, n_tokens;
} done_cell;

typedef struct plan_status {
    plan_share all, done, unfinished, failed, left; /* left: not begun */
    uint64_t unfinished_bytes;        /* bytes of the inputs of unfinished cells that are packed */
    uint64_t n_tokens, n_documents;   /* so far, in cells that are done or unfinished */
    double bytes_per_s, tokens_per_s; /* 0: not known */
    double seconds_left;              /* at this rate; 0: not known, or everything is done */
    uint64_t *n_bad;                  /* of each cell: documents that are bad, and left out */
    failure *failures;                /* their places are cells */
    done_cell *done_cells;
} plan_status;

/* ---- The rate ---- */

static int compare_times(const void *a, const void *b)
{
    const done_cell *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Finds the slopes of the lines through the sums of bytes and of tokens over time, by least
 * squares: cells of tasks that run together also end together, so the time between two cells says
 * nothing. */
static void find_slopes(const done_cell *cells, size_t n, plan_status *status)
{
    double t_mean = 0, t_squares = 0, bytes = 0, tokens = 0, bytes_so_far = 0, tokens_so_far = 0;
    for (size_t i = 0; i < n; i++)
        t_mean += (double)(cells[i].at_ns - cells[0].at_ns) / 1e9 / (double)n;
    for (size_t i = 0; i < n; i++) {
        double t = (double)(cells[i].at_ns - cells[0].at_ns) / 1e9 - t_mean;
        bytes_so_far += (double)cells[i].n_bytes;
        tokens_so_far += (double)cells[i].n_tokens;
        t_squares += t * t;
        bytes += t * bytes_so_far;
        tokens += t * tokens_so_far;
    }
    if (t_squares <= 0 || bytes <= 0 || tokens <= 0)
        return;
    status->bytes_per_s = bytes / t_squares;
    status->tokens_per_s = tokens / t_squares;
}

/* Finds the rate. For the first cells of tasks that run together, only the end is known, not the
 * beginning, so each task must have done two cells. */
static void find_rate(plan_status *status)
{
    const size_t n = status->done.n_cells;
    const size_t least = 2 * (status->unfinished.n_cells ? status->unfinished.n_cells : 1);
    size_t first = 0;
    if (n < least)
        return;
    done_cell *cells = status->done_cells;
    qsort(cells, n, sizeof *cells, compare_times);
    while (first < n - least && cells[n - 1].at_ns - cells[first].at_ns > RECENT_NS)
        first++;
    find_slopes(cells + first, n - first, status);
    const uint64_t n_bytes = status->all.input_bytes - status->done.input_bytes;
    if (status->bytes_per_s > 0)
        status->seconds_left = (double)(n_bytes - status->unfinished_bytes) / status->bytes_per_s;
}

/* ---- Cells ---- */

static bool add_failure(plan_status *status, const cell_report *report, size_t cell)
{
    const size_t n = status->failed.n_cells;
    if (!array_grow(&status->failures, n, sizeof *status->failures))
        return false;
    fail(&status->failures[n], "%s", report->why);
    status->failures[n].place = cell;
    return true;
}

/* Adds what has become of a cell; false: out of memory. */
static bool add_cell(plan_status *status, const plan_file *plan, size_t cell,
                     const status_options *options)
{
    plan_share *share = &status->left;
    cell_work work;
    bool ok = true;
    const uint64_t n_bytes = plan_file_cell_bytes(plan, cell);
    pack_resume_look(&work, plan, cell, options->verify);
    if (options->sees_inputs)
        pack_resume_compare(&work.report, plan, cell);
    const cell_report *report = &work.report;
    const pack_note *note = &work.note;
    switch (report->state) {
    case CELL_ABSENT:
    case CELL_OUTDATED:
        break;
    case CELL_UNFINISHED:
        share = &status->unfinished;
        if (work.has_note) {
            const uint64_t read = note->place.counts.stored_bytes + note->place.stored.n_bytes;
            status->unfinished_bytes += read < n_bytes ? read : n_bytes;
            status->n_tokens += note->position.tokens;
            status->n_documents += note->position.documents;
            status->n_bad[cell] = pack_note_n_bad(note);
        }
        break;
    case CELL_DONE:
        share = &status->done;
        status->done_cells[share->n_cells] =
            (done_cell){report->done_ns, n_bytes, report->n_tokens};
        status->n_tokens += report->n_tokens;
        status->n_documents += report->n_documents;
        status->n_bad[cell] = report->n_bad;
        break;
    case CELL_FOREIGN:
    case CELL_DAMAGED:
    case CELL_CHANGED:
        ok = add_failure(status, report, cell);
        share = &status->failed;
        break;
    }
    status->all.n_cells++;
    status->all.input_bytes += n_bytes;
    share->n_cells += ok;
    share->input_bytes += n_bytes;
    return ok;
}

/* ---- Text ---- */

static void print_share(const char *name, const plan_share *share)
{
    printf("%-12s%s, %s of inputs\n", name, cli_count_of(share->n_cells, "cell").s,
           cli_bytes(share->input_bytes).s);
}

/* Prints "90 s", "12 min" or "3.4 h". */
static void print_duration(double seconds)
{
    if (seconds < 120)
        printf("%.0f s", seconds < 1 ? 1 : seconds);
    else if (seconds < 7200)
        printf("%.0f min", seconds / 60);
    else
        printf("%.1f h", seconds / 3600);
}

/* Prints how many bad documents were left out, and in which cells. */
static void print_bad(const plan_status *s)
{
    uint64_t n_bad = 0, n_cells = 0;
    for (size_t i = 0; i < s->all.n_cells; i++) {
        n_bad += s->n_bad[i];
        n_cells += s->n_bad[i] > 0;
    }
    if (n_bad == 0)
        return;
    printf("%-12s%s in %s\n", "left out:", cli_count_of(n_bad, "bad document").s,
           cli_count_of(n_cells, "cell").s);
    size_t n_listed = 0;
    for (size_t i = 0; i < s->all.n_cells && n_listed < MAX_LISTED; i++) {
        if (s->n_bad[i] == 0)
            continue;
        printf("%-12scell %zu: %s\n", "", i, cli_count(s->n_bad[i]).s);
        n_listed++;
    }
    if (n_cells > n_listed)
        printf("%-12sand %s more\n", "", cli_count(n_cells - n_listed).s);
}

static void print_text(const plan_status *s, const char *plan)
{
    print_share("all:", &s->all);
    print_share("done:", &s->done);
    print_share("unfinished:", &s->unfinished);
    if (s->unfinished.n_cells)
        printf("%-12s%s of these inputs packed\n", "", cli_bytes(s->unfinished_bytes).s);
    print_share("failed:", &s->failed);
    print_share("left:", &s->left);
    printf("%-12s%s in %s so far\n", "tokens:", cli_count(s->n_tokens).s,
           cli_count_of(s->n_documents, "document").s);
    print_bad(s);
    if (s->bytes_per_s > 0)
        printf("%-12s%.1f MB/s of inputs, %.2f M tokens/s\n", "rate:", s->bytes_per_s / 1e6,
               s->tokens_per_s / 1e6);
    if (s->seconds_left > 0) {
        printf("%-12s", "time left:");
        print_duration(s->seconds_left);
        putchar('\n');
    }
    for (size_t i = 0; i < s->failed.n_cells && i < MAX_LISTED; i++) {
        fputs(i ? "" : "\n", stdout);
        cli_print_plain(stdout, s->failures[i].text, strlen(s->failures[i].text));
        putchar('\n');
    }
    if (s->failed.n_cells > MAX_LISTED)
        printf("and %s more\n", cli_count(s->failed.n_cells - MAX_LISTED).s);
    if (s->failed.n_cells > 0)
        printf("\nTo pack such cells again: tokmap pack --plan %s --verify, and --force for cells "
               "that are not of this plan\n",
               plan);
}

/* ---- JSON ---- */

static void put_share(json_out *o, const char *name, const plan_share *share)
{
    json_out_begin(o, name, '{');
    json_out_number(o, "n_cells", share->n_cells);
    json_out_number(o, "input_bytes", share->input_bytes);
    json_out_end(o, '}');
}

static void put_known(json_out *o, const char *name, double value)
{
    if (value > 0)
        json_out_print(o, name, "%.3f", value);
    else
        json_out_string(o, name, NULL);
}

static void print_json(const plan_status *s, const plan_file *plan)
{
    json_out o = json_out_begin_result(stdout);
    json_out_hash(&o, "plan_hash", plan->hash);
    put_share(&o, "all", &s->all);
    put_share(&o, "done", &s->done);
    put_share(&o, "unfinished", &s->unfinished);
    put_share(&o, "failed", &s->failed);
    put_share(&o, "left", &s->left);
    json_out_number(&o, "unfinished_bytes_packed", s->unfinished_bytes);
    json_out_number(&o, "n_tokens", s->n_tokens);
    json_out_number(&o, "n_documents", s->n_documents);
    put_known(&o, "bytes_per_second", s->bytes_per_s);
    put_known(&o, "tokens_per_second", s->tokens_per_s);
    put_known(&o, "seconds_left", s->seconds_left);
    json_out_begin(&o, "bad_documents", '[');
    for (size_t i = 0; i < s->all.n_cells; i++) {
        if (s->n_bad[i] == 0)
            continue;
        json_out_begin(&o, NULL, '{');
        json_out_number(&o, "cell", i);
        json_out_number(&o, "n_documents", s->n_bad[i]);
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_begin(&o, "failures", '[');
    for (size_t i = 0; i < s->failed.n_cells; i++) {
        json_out_begin(&o, NULL, '{');
        json_out_number(&o, "cell", s->failures[i].place);
        json_out_string(&o, "why", s->failures[i].text);
        json_out_end(&o, '}');
    }
    puts("]}");
}

int status_command(int argc, char **argv)
{
    status_options options = {0};
    plan_file plan = {0};
    plan_status status = {0};
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code != CLI_GO_ON)
        return code;
    code = plan_read(&plan, argv[optind]);
    if (code == CLI_OK) {
        status.done_cells = calloc(plan.n_cells, sizeof *status.done_cells);
        status.n_bad = calloc(plan.n_cells, sizeof *status.n_bad);
    }
    bool ok = status.done_cells && status.n_bad;
    options.sees_inputs = ok && options.verify && process_enter_folder(plan.folder) == 0;
    for (size_t i = 0; i < plan.n_cells && ok; i++)
        ok = add_cell(&status, &plan, i, &options);
    if (code == CLI_OK && !ok)
        code = cli_no_memory();
    if (code == CLI_OK)
        find_rate(&status);
    if (code == CLI_OK && options.json)
        print_json(&status, &plan);
    else if (code == CLI_OK)
        print_text(&status, argv[optind]);
    if (code == CLI_OK)
        code = cli_finish();
    if (code == CLI_OK && status.failed.n_cells > 0)
        code = CLI_DATASET;
    free(status.failures);
    free(status.done_cells);
    free(status.n_bad);
    plan_file_free(&plan);
    return code;
}
