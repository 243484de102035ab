/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - tokmap pack: the options and what they mean. */
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/text/text_commands.h"
#include "datasets/beside.h"
#include "request/options.h"
#include "pack/session.h"
#include "pack/task.h"
#include "plan/plan_file.h"
#include "system/output_file.h"
#include "system/process.h"

#define MAX_THREADS 1024

static int choose_resume(void *options, const char *value)
{
    (void)value;
    ((pack_options *)options)->restart = false;
    return CLI_OK;
}

/* ---- Options ---- */

typedef struct pack_arguments {
    pack_options pack;
    const char *plan, *task; /* or NULL */
    bool verify;
    char report_path[PATH_PREFIX_BYTES]; /* absolute */
} pack_arguments;

#define TARGET(field) offsetof(pack_options, field)
static const cli_option output_row[] = {
    {.name = "Output"},
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write"},
    {"also", 0, CLI_WORD, TARGET(also), "FORMAT",
     .help = "also write the files that another program needs, beside the dataset and its splits "
             "[none]",
     .words = pack_also_words},
    {NULL},
};
static const cli_option other_rows[] = {
    {"limit-documents", 0, CLI_NUMBER, TARGET(limit_documents), "N",
     .help = "stop after N documents", .lowest = 1, .highest = PACK_NO_LIMIT - 1},
    {"limit-tokens", 0, CLI_NUMBER, TARGET(limit_tokens), "N",
     .help = "stop after the document that reaches N tokens", .lowest = 1,
     .highest = PACK_NO_LIMIT - 1},
    {"force", 'f', CLI_FLAG, TARGET(force), .help = "replace datasets that already exist"},
    {"restart", 0, CLI_FLAG, TARGET(restart),
     .help = "discard what an interrupted run left, and start over"},
    {"resume", 0, CLI_CALL, 0, .help = "resume an interrupted run, if there is one [default]",
     .call = choose_resume},
    {"dry-run", 0, CLI_FLAG, TARGET(dry_run),
     .help = "show what each input is and whether it can be packed, and an estimate of the result; "
             "write nothing, so needs no -o; the exit status is that of the run"},
    PACK_WRITE_LISTS_ROW,
    {"report", 0, CLI_TEXT, TARGET(report), "FILE",
     .help = "write all counts, in total and for each input, and the place and reason of each "
             "document that was left out as bad, as a JSON object"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json),
     .help = "print the result as JSON, one line for each dataset"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},

    {.name = "Plan"},
    {"plan", 0, CLI_TEXT, offsetof(pack_arguments, plan), "FILE",
     .help = "pack the cells of a plan, which 'tokmap plan' writes; it has the inputs, the output "
             "and all options that decide what is written"},
    {"task", 0, CLI_TEXT, offsetof(pack_arguments, task), "I/N",
     .help = "with --plan: pack share I of N shares of the cells, from 0; auto: as Slurm, Open MPI "
             "or PMI have numbered this process [0/1]"},
    {"verify", 0, CLI_FLAG, offsetof(pack_arguments, verify),
     .help = "with --plan: read all files of the cells that are done, and pack damaged ones again; "
             "--force does so too"},

    {.name = "Resources"},
    {"threads", 'j', CLI_NUMBER, TARGET(n_threads), "N",
     .help = "number of encoding threads; the result does not depend on it [one per processor]",
     .lowest = 1, .highest = MAX_THREADS},
    {NULL},
};
static const cli_option *const tables[] = {
    pack_document_rows, pack_token_rows, output_row, pack_split_row,
    other_rows,         pack_memory_row, NULL};
static cli_option option_table[CLI_MAX_OPTIONS + 1];

static const cli_manual manual = {
    .usage = "tokmap pack [OPTION]... INPUT... -o P\n"
             "       tokmap pack --plan FILE [--task I/N] [OPTION]...",
    .about =
        "Turns text into the dataset P, which is two files: P.bin holds the tokens, P.tmi is "
        "the index. An INPUT is a file, a folder (all files under it), a pattern such as "
        "'c/**/*.jsonl', @LIST (a file with an INPUT on each line, but not - or another list), "
        "or - for stdin. Files compressed with gzip or zstd, tar archives, Parquet and Arrow "
        "files are detected by their contents, CSV and TSV by their names. "
        "Each file becomes one input of the dataset. To resume an interrupted run, run the "
        "same command again.",
    .options = option_table,
    .most_used =
        " include exclude skip-unsuitable lines field where meta tokenizer output split force "
        "dry-run plan task threads ",
    .examples = "  tokmap pack book.txt notes.txt.zst -o data/train\n"
                "  tokmap pack 'corpus/*.jsonl.zst' --tokenizer tokenizer.json \\\n"
                "      --split valid=0.005 -o data/web\n"
                "  zcat corpus.gz | tokmap pack --lines - -o data/train\n",
};

static int run_plain(pack_arguments *args, char **names, size_t n_names)
{
    if (args->task || args->verify)
        return cli_usage("%s works only with --plan", args->task ? "--task" : "--verify");
    if (n_names == 0)
        return cli_usage("no input given");
    if (!args->pack.output && args->pack.dry_run)
        args->pack.output = "P"; /* nothing is written */
    if (!args->pack.output)
        return cli_usage("option --output P is required");
    pack_options *options = &args->pack;
    int code = path_output_prefix(options->prefix, options->output, ".tmi");
    for (size_t i = 0; i < options->n_splits && code == CLI_OK; i++) {
        if (strlen(options->prefix) + strlen(options->splits[i].name) + 1 >= PATH_PREFIX_BYTES)
            code = cli_usage("-o: the path is too long");
    }
    if (code == CLI_OK)
        code = pack_options_check(options);
    if (code == CLI_OK)
        code = pack_run(options, names, n_names);
    if (code != CLI_OK || !options->force || options->quiet)
        return code;
    for (size_t i = 0; i <= options->n_splits; i++)
        beside_report_replaced(
            plan_split_path(options->prefix, i ? options->splits[i - 1].name : "", ".tmi").s);
    return CLI_OK;
}

/* ---- Plans ---- */

static int check_with_plan(size_t n_names)
{
    static const char *const allowed[] = {"plan",  "task",    "verify", "threads", "memory",
                                          "force", "restart", "resume", "report",  "json",
                                          "quiet", "no-lock", NULL};
    const char *other = cli_find_other(allowed);
    if (n_names > 0)
        return cli_usage("--plan: the plan has the inputs; none can be named here");
    if (other)
        return cli_usage("--%s does not work with --plan%s", other,
                         cli_find_option(pack_deciding_rows, other) ? ", which has this option"
                                                                    : "");
    return CLI_OK;
}

static int run_task(pack_arguments *args, size_t n_names)
{
    pack_task_options options = {
        .options = &args->pack, .plan = args->plan, .verify = args->verify};
    int code = check_with_plan(n_names);
    if (code == CLI_OK)
        code = pack_task_number_parse(&options.task, args->task ? args->task : "0/1");
    if (code == CLI_OK)
        code = process_make_absolute(&args->pack.report, args->report_path,
                                     sizeof args->report_path); /* it works in another folder */
    return code == CLI_OK ? pack_task_run(&options) : code;
}

int pack_command(int argc, char **argv)
{
    pack_arguments args = {.pack = pack_options_new()};
    cli_join_options(option_table, tables);
    int code = cli_parse_options(&manual, argc, argv, &args);
    const size_t n_names = (size_t)(argc - optind);
    args.pack.input.utf8_given = cli_is_given("utf8");
    args.pack.input.fixed = cli_is_given("on-error");
    if (code == CLI_GO_ON && pack_options_environment(&args.pack) != CLI_OK)
        code = CLI_USAGE;
    if (code == CLI_GO_ON)
        code = args.plan ? run_task(&args, n_names) : run_plain(&args, argv + optind, n_names);
    pack_options_free(&args.pack);
    return code;
}
