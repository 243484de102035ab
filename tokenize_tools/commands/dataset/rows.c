/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - tokmap rows: packs the documents of datasets into rows. */
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "system/output_file.h"
#include "cli/json_out.h"
#include "tokmap_loader.h"

typedef struct rows_command_options {
    uint64_t sequence_length, align, max_documents;
    uint32_t whole_documents;
    const char *output, *view;
    bool json, quiet;
} rows_command_options;

static int on_progress(void *context, uint64_t n_done, uint64_t n_documents)
{
    cli_progress *progress = context;
    if (cli_progress_is_due(progress))
        cli_progress_draw(progress, "rows: %s of %s", cli_count(n_done).s,
                          cli_count_of(n_documents, "document").s);
    return 0;
}

static void print_result(const char *path, const tokmap_rows_info *info,
                         const rows_command_options *o)
{
    const uint64_t n_places = info->n_rows * o->sequence_length;
    const uint64_t n_used = info->n_labels + (info->n_pieces - info->n_rows);
    const double padding = n_places ? 100 * (1 - (double)n_used / (double)n_places) : 0;
    if (o->json) {
        json_out json = json_out_begin_result(stdout);
        json_out_string(&json, "path", path);
        json_out_number(&json, "n_rows", info->n_rows);
        json_out_number(&json, "n_pieces", info->n_pieces);
        json_out_number(&json, "n_labels", info->n_labels);
        json_out_number(&json, "n_bytes", info->n_bytes);
        puts("}");
    } else if (!o->quiet) {
        cli_print_plain(stdout, path, strlen(path));
        printf(": %s of %s, %.3f%% padding, %s\n", cli_count_of(info->n_rows, "row").s,
               cli_count_of(info->n_pieces, "piece").s, padding < 0 ? 0 : padding,
               cli_bytes(info->n_bytes).s);
    }
}

static int check_output(void *options, const input_list *names)
{
    const rows_command_options *o = options;
    return (o->output || o->view) && names->n_names > 1
               ? cli_usage("%s is for one dataset, and there are %zu",
                           o->output ? "--output" : "--view", names->n_names)
               : CLI_OK;
}

static int make_rows(void *command_options, const char *path, const tokmap_dataset *ds)
{
    const rows_command_options *o = command_options;
    tokmap_error err;
    cli_progress progress;
    tokmap_view *view = NULL;
    tokmap_rows_info info = TOKMAP_INIT(tokmap_rows_info);
    const tokmap_view_options of_file = {.struct_size = sizeof of_file, .path = o->view};
    if (o->view && tokmap_view_open(&view, ds, &of_file, &err))
        return cli_fail(&err);
    const tokmap_rows_options options = {
        .struct_size = sizeof options,
        .sequence_length = (uint32_t)o->sequence_length,
        .align = (uint32_t)o->align,
        .max_documents = (uint32_t)o->max_documents,
        .whole_documents = (tokmap_whole_documents)o->whole_documents,
        .path = o->output,
        .context = &progress,
        .on_progress = on_progress,
        .view = view,
    };
    cli_progress_begin(&progress, "rows", o->quiet);
    const tokmap_status status = tokmap_rows_write(ds, &options, &info, &err);
    cli_progress_clear(&progress);
    tokmap_view_close(view);
    if (status)
        return cli_fail(&err);
    print_result(path, &info, o);
    return CLI_OK;
}

/* ---- Command ---- */

static const cli_word whole_documents[] = {
    {"drop", TOKMAP_WHOLE_DROP, "leave it out"},
    {"truncate", TOKMAP_WHOLE_TRUNCATE, "keep its beginning"},
    {NULL}};

#define TARGET(field) offsetof(rows_command_options, field)
static const cli_option option_table[] = {
    {"sequence-length", 'l', CLI_NUMBER, TARGET(sequence_length), "N",
     .help = "inputs of a row: the sequence_length of the Loader", .lowest = 1, .highest = 1 << 24,
     .is_required = true},
    {"align", 0, CLI_NUMBER, TARGET(align), "N",
     .help = "documents begin at multiples of N in their row; N divides the sequence length [1]",
     .lowest = 1, .highest = 1 << 24},
    {"max-documents", 0, CLI_NUMBER, TARGET(max_documents), "N",
     .help = "documents in a row, at most [any number]", .lowest = 1, .highest = UINT32_MAX},
    {"whole-documents", 0, CLI_WORD, TARGET(whole_documents), "WORD",
     .help = "how to handle a document that is longer than a row [it is cut into pieces]",
     .words = whole_documents},
    {"view", 0, CLI_TEXT, TARGET(view), "FILE",
     .help = "only the documents of this view, which 'tokmap view' has written; for one P"},
    {"output", 'o', CLI_TEXT, TARGET(output), "FILE",
     .help = "the rows file, for one P [P.N.tmr, or P.N-vHHHHHHHHHHHHHHHH.tmr "
             "with a view, where the Loader finds it]"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as JSON, one line for each P"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap rows [OPTION]... P...",
    .about = "Packs the documents of each dataset P into rows of several documents with almost no "
             "padding, and writes them to a rows file beside it, for a Loader with "
             "windows=\"best_fit\" and the same options. Only document boundaries are read. P may "
             "be a pattern such as 'data/*'.\n\nA Loader packs up to 10,000,000 documents itself "
             "when it is opened; more need a rows file.",
    .options = option_table,
    .notes = "An existing rows file is replaced. If a P cannot be packed, the others still are; "
             "the first failure decides the exit status.",
    .examples = "  tokmap rows --sequence-length 8192 data/train\n"
                "  tokmap rows -l 4096 --align 128 'data/*'\n",
    .operand = "dataset",
    .n_least = 1,
};

int rows_command(int argc, char **argv)
{
    rows_command_options options = {0};
    const each_command command = {
        &manual,          &options, dataset_names_expand, &options.quiet, .check = check_output,
        .work = make_rows};
    return each_run(&command, argc, argv);
}
