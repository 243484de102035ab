/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - tokmap join: one dataset from the cells of a plan. */
#include <stddef.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/commands.h"
#include "pack/planner.h"
#include "plan/cell_join.h"
#include "plan/plan_file.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/process.h"

typedef struct join_options {
    cell_join_options cells;
    const char *output;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
} join_options;

/* Names the inputs that have changed since they were packed, and counts missing ones. */
static void note_inputs(const plan_file *plan)
{
    uint64_t n_gone = 0;
    const bool has_folder = process_enter_folder(plan->folder) == 0;
    for (size_t i = 0; i < plan->n_inputs; i++) {
        failure why;
        const int change = has_folder ? pack_plan_input_look(&plan->inputs[i], &why) : -1;
        n_gone += change < 0;
        if (change > 0)
            cli_warn("%s; the dataset has what was packed before", why.text);
    }
    if (n_gone > 0)
        cli_warn("%s of the plan cannot be compared: not found", cli_count_of(n_gone, "input").s);
}

static int join_all(const char *path, join_options *options)
{
    plan_file plan = {0};
    options->cells.prefix = options->prefix;
    int code = path_output_prefix(options->prefix, options->output, ".tmi");
    if (code == CLI_OK)
        code = plan_read(&plan, path);
    if (code == CLI_OK)
        code = cell_join(&plan, &options->cells);
    if (code == CLI_DATASET)
        fprintf(stderr,
                "To pack such cells again: tokmap pack --plan %s --verify, and --force for cells "
                "that are not of this plan; or remove their files first\n",
                path);
    if (code == CLI_OK && !options->cells.quiet)
        note_inputs(&plan);
    plan_file_free(&plan);
    return code;
}

#define TARGET(field) offsetof(join_options, field)
static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write",
     .is_required = true},
    {"force", 'f', CLI_FLAG, TARGET(cells.force), .help = "replace P if it already exists"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(cells.json), .help = "print each result as a JSON object"},
    {"quiet", 'q', CLI_FLAG, TARGET(cells.quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap join [OPTION]... PLAN -o P",
    .about =
        "Makes one dataset P of the cells that 'tokmap pack --plan PLAN' has packed, in their "
        "order. No tokens are copied: P.tmi lists the token files of the cells, with paths from "
        "its folder, and everything that opens P reads them. P equals the dataset that one 'tokmap "
        "pack' of all inputs makes, and has the same dataset id. The cells must be kept; move them "
        "together with P.\n\nIf the plan has splits, P-NAME is written for each. If a cell is not "
        "packed, the exit code is 3; if one is "
        "damaged or was packed for another plan, 4.\n\nFor programs that need one token file: "
        "tokmap merge P -o Q. It copies the tokens into Q.bin, and the cells are no longer needed.",
    .options = option_table,
    .examples = "  tokmap plan 'corpus/*.jsonl.zst' --cells data/cells -o data/run.plan\n"
                "  tokmap pack --plan data/run.plan --task 0/1\n"
                "  tokmap join data/run.plan -o data/train\n"
                "  tokmap merge data/train -o data/one_file\n",
    .operand = "plan",
    .n_least = 1,
    .n_most = 1,
};

int join_command(int argc, char **argv)
{
    join_options options = {0};
    const int code = cli_parse_options(&manual, argc, argv, &options);
    return code == CLI_GO_ON ? join_all(argv[optind], &options) : code;
}
