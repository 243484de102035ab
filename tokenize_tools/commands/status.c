/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - tokmap status: how far the tasks of a plan are. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/commands.h"
#include "pack/plan_status.h"
#include "plan/plan_file.h"
#include "text/json_out.h"

#define MAX_LISTED 10

typedef struct status_options {
    bool json, verify;
} status_options;

static const cli_option option_table[] = {
    {"json", 0, CLI_FLAG, offsetof(status_options, json),
     .help = "print the status as a JSON object"},
    {"verify", 0, CLI_FLAG, offsetof(status_options, verify),
     .help = "read all files of the cells that are done, and compare their checksums"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap status [OPTION]... PLAN",
    .about =
        "Shows which cells of a plan are done, from what lies in the folder of the cells; also "
        "while tasks are running. A cell has failed if a file of it is damaged, or belongs to "
        "something else. The rate is that of the cells that were done in the last hour; it is "
        "not known before the tasks have done two cells each. Without --verify, only the heads of "
        "the files are read.",
    .options = option_table,
    .examples = "  tokmap status run.plan\n"
                "  tokmap status --json run.plan\n",
    .operand = "plan",
    .n_least = 1,
    .n_most = 1,
};

/* ---- Text ---- */

static void print_share(const char *name, const plan_share *share)
{
    printf("%-12s%s, %s of inputs\n", name, cli_count_of(share->n_cells, "cell").s,
           cli_bytes(share->input_bytes).s);
}

/* "90 s", "12 min", "3.4 h" */
static void print_duration(double seconds)
{
    if (seconds < 120)
        printf("%.0f s", seconds < 1 ? 1 : seconds);
    else if (seconds < 7200)
        printf("%.0f min", seconds / 60);
    else
        printf("%.1f h", seconds / 3600);
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
        printf("\nTo pack damaged cells again: tokmap pack --plan %s --verify\n", plan);
}

/* ---- JSON ---- */

static void put_share(json_out *o, const char *name, const plan_share *share)
{
    json_out_begin(o, name, '{');
    json_out_number(o, "cells", share->n_cells);
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
    json_out o = {.out = stdout};
    json_out_begin(&o, NULL, '{');
    json_out_number(&o, "schema_version", 1);
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
    if (code == CLI_OK && !plan_status_find(&status, &plan, options.verify))
        code = cli_no_memory();
    if (code == CLI_OK && options.json)
        print_json(&status, &plan);
    else if (code == CLI_OK)
        print_text(&status, argv[optind]);
    if (code == CLI_OK)
        code = cli_finish();
    if (code == CLI_OK && status.failed.n_cells > 0)
        code = CLI_DATASET;
    plan_status_free(&status);
    plan_file_free(&plan);
    return code;
}
