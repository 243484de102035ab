/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - tokmap join: one dataset from the cells of a plan. */
#include <stddef.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/text/text_commands.h"
#include "datasets/beside.h"
#include "datasets/values.h"
#include "pack/planner.h"
#include "plan/cell_join.h"
#include "plan/plan_file.h"
#include "system/files.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/process.h"

typedef struct join_options {
    cell_join_options cells;
    const char *output;
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

/* ---- Late columns ---- */

/* Opens the late column of a cell. NULL: it has none of this name and sort; or *code is not CLI_OK.
 * *type: of the values in the cells before it. */
static tokmap_column *open_in_cell(const tokmap_dataset *ds, const char *name,
                                   tokmap_value_type *type, int *code)
{
    tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
    tokmap_column *column = NULL;
    tokmap_error err;
    if (!file_name_exists(beside_path(ds, name, BESIDE_COLUMNS).s))
        return NULL;
    if (tokmap_column_open(&column, ds, name, &err) != TOKMAP_OK ||
        tokmap_column_verify(column, NULL, NULL, &err) != TOKMAP_OK) {
        *code = cli_fail(&err);
        tokmap_column_close(column);
        return NULL;
    }
    tokmap_column_get_info(column, &info);
    if (*type == TOKMAP_VALUE_NULL)
        *type = info.type;
    if (info.type == TOKMAP_VALUE_NULL ||
        (info.type == TOKMAP_VALUE_STRING) == (*type == TOKMAP_VALUE_STRING))
        return column;
    tokmap_column_close(column);
    return NULL;
}

/* Gives the values of all cells to the column of the joined dataset. *is_whole: all cells have
 * it. */
static int copy_cells(const plan_file *plan, const char *split, const char *name,
                      tokmap_column_writer *to, bool *is_whole)
{
    uint64_t first = 0;
    tokmap_value_type type = TOKMAP_VALUE_NULL;
    int code = CLI_OK;
    *is_whole = true;
    for (size_t cell = 0; cell < plan->n_cells && code == CLI_OK && *is_whole; cell++) {
        const path_text path = plan_file_cell_path(plan, cell, split, ".tmi");
        tokmap_dataset *ds;
        tokmap_error err;
        if (tokmap_dataset_open_index(&ds, path.s, &err) != TOKMAP_OK)
            return cli_fail(&err);
        const uint64_t n = cli_dataset_info(ds).n_documents;
        tokmap_column *column = n > 0 ? open_in_cell(ds, name, &type, &code) : NULL;
        if (column)
            code = values_copy(column, to, first, n, NULL, 0);
        *is_whole = n == 0 || column;
        first += n;
        tokmap_column_close(column);
        tokmap_dataset_close(ds);
    }
    return code;
}

static int join_column(const plan_file *plan, const char *split, const tokmap_dataset *joined,
                       const char *name, bool quiet)
{
    const tokmap_column_options options = {
        .struct_size = sizeof options, .name = name, .replace = 1};
    tokmap_column_writer *to;
    tokmap_error err;
    bool is_whole;
    if (tokmap_column_writer_open(&to, joined, &options, &err) != TOKMAP_OK)
        return cli_fail(&err);
    int code = copy_cells(plan, split, name, to, &is_whole);
    if (code == CLI_OK && is_whole && tokmap_column_writer_finish(to, &err) != TOKMAP_OK)
        code = cli_fail(&err);
    if (code == CLI_OK && !is_whole && !quiet)
        cli_warn("the late column '%s' is not in all cells with values of one sort, and not in the "
                 "output",
                 name);
    tokmap_column_writer_close(to);
    return code;
}

/* Makes a late column of each that the first cell with documents has. */
static int join_columns(const plan_file *plan, const char *split, const join_options *options)
{
    const path_text path = plan_split_path(options->cells.prefix, split, ".tmi");
    input_list names = {0};
    tokmap_dataset *joined, *ds;
    tokmap_error err;
    int code = CLI_OK;
    if (tokmap_dataset_open_index(&joined, path.s, &err) != TOKMAP_OK)
        return cli_fail(&err);
    for (size_t cell = 0; cell < plan->n_cells && code == CLI_OK && names.n_names == 0; cell++) {
        const path_text of_cell = plan_file_cell_path(plan, cell, split, ".tmi");
        if (tokmap_dataset_open_index(&ds, of_cell.s, &err) != TOKMAP_OK)
            code = cli_fail(&err);
        else
            code = beside_list(ds, BESIDE_COLUMNS, &names);
        tokmap_dataset_close(ds);
    }
    for (size_t i = 0; i < names.n_names && code == CLI_OK; i++)
        code = join_column(plan, split, joined, names.names[i], options->cells.quiet);
    input_list_free(&names);
    tokmap_dataset_close(joined);
    if (code == CLI_OK && options->cells.force && !options->cells.quiet)
        beside_report_replaced(path.s);
    if (code != CLI_OK)
        beside_advise_again(path.s);
    return code;
}

static int join_all(const char *path, join_options *options)
{
    plan_file plan = {0};
    int code = path_output_prefix(options->cells.prefix, options->output, ".tmi");
    if (code == CLI_OK)
        code = plan_read(&plan, path);
    if (code == CLI_OK)
        code = cell_join(&plan, &options->cells);
    if (code == CLI_DATASET)
        fprintf(stderr,
                "To pack such cells again: tokmap pack --plan %s --verify, and --force for cells "
                "that are not of this plan; or remove their files first\n",
                path);
    for (size_t i = 0; i < plan.splits.n && code == CLI_OK; i++)
        code = join_columns(&plan, plan.splits.names[i], options);
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
        "tokmap merge P -o Q. It copies the tokens into Q.bin, and the cells are no longer "
        "needed.\n\nA late column ('tokmap columns') that all cells have becomes one of P.",
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
