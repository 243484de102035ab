/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - tokmap join: one dataset from the cells of a plan. */
#include <stddef.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/commands.h"
#include "pack/planner.h"
#include "pack/task.h"
#include "plan/cell_join.h"
#include "plan/plan_file.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/process.h"

typedef struct join_options {
    cell_join_options cells;
    const char *output, *task;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    bool flat;
} join_options;

/* Names the inputs that have changed since they were packed, and counts those that are gone. */
static void note_inputs(const plan_file *plan)
{
    uint64_t n_gone = 0;
    const bool is_there = process_enter_folder(plan->folder) == 0;
    for (size_t i = 0; i < plan->n_inputs; i++) {
        failure why;
        const int change = is_there ? pack_plan_input_look(&plan->inputs[i], &why) : -1;
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
    pack_task_number task = {0};
    if (!options->flat && (options->task || cli_is_given("threads")))
        return cli_usage("--task and --threads work only with --flat");
    if (options->task && cli_is_given("no-lock"))
        return cli_usage(
            "--no-lock does not work with --task, with which several processes write P");
    if (cli_is_given("no-lock"))
        options->cells.n_threads = 1; /* of several, one would not see what another one writes */
    options->cells.prefix = options->prefix;
    int code = path_output_prefix(options->prefix, options->output, ".tmi");
    if (code == CLI_OK)
        code = plan_read(&plan, path);
    if (code == CLI_OK && options->task)
        code = pack_task_number_parse(&task, options->task);
    options->cells.task = task.i;
    options->cells.n_tasks = task.n;
    if (code == CLI_OK)
        code = options->flat ? cell_flatten(&plan, &options->cells)
                             : cell_join(&plan, &options->cells);
    if (code == CLI_DATASET)
        fprintf(stderr,
                "To pack such cells again: tokmap pack --plan %s --verify, and --force for those "
                "that are not of this plan; or remove their files first\n",
                path);
    if (code == CLI_OK && !options->cells.quiet && task.n == 0)
        note_inputs(&plan);
    plan_file_free(&plan);
    return code;
}

#define TARGET(field) offsetof(join_options, field)
static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write",
     .is_required = true},
    {"flat", 0, CLI_FLAG, TARGET(flat),
     .help = "copy the tokens into P.bin, for programs that need one token file"},
    {"task", 0, CLI_TEXT, TARGET(task), "I/N",
     .help = "with --flat: copy only share number I, from 0, of N; 'auto' takes both from Slurm, "
             "Open MPI or PMI. When all are copied, run the command once without --task [0/1]"},
    {"threads", 'j', CLI_NUMBER, TARGET(cells.n_threads), "N",
     .help = "with --flat: number of threads that copy [one per processor]", .lowest = 1,
     .highest = 64},
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
        "order. No tokens are copied: P.tmi lists the token files of the cells, by their paths "
        "from its folder, and everything that opens P reads them. P equals the dataset that one "
        "'tokmap pack' of all inputs makes, and has the same dataset id. The cells must be kept; "
        "move them together with P.\n\n"
        "If the plan has splits, P-NAME is written for each; bad documents that were collected "
        "go to P.bad. If a cell is not packed, the exit code is 3; if one is damaged or was "
        "packed for another plan, 4."
        "\n\n"
        "With --flat, the tokens are copied into P.bin, and the cells are not needed any more. "
        "Any number of processes can copy at the same time; a killed or repeated one does no "
        "harm.",
    .options = option_table,
    .examples = "  tokmap plan 'corpus/*.jsonl.zst' --cells data/cells -o data/run.plan\n"
                "  tokmap pack --plan data/run.plan --task 0/1\n"
                "  tokmap join data/run.plan -o data/train\n"
                "  tokmap join --flat data/run.plan -o data/one_file\n",
    .operand = "plan",
    .n_least = 1,
    .n_most = 1,
};

int join_command(int argc, char **argv)
{
    join_options options = {.cells.n_threads = tokmap_i_n_processors()};
    const int code = cli_parse_options(&manual, argc, argv, &options);
    return code == CLI_GO_ON ? join_all(argv[optind], &options) : code;
}
