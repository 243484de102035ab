/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/result.h"
#include "plan/cell_state.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/protected.h"
#include "tokmap_writer.h"

#define SHOWN_CELLS 3

/* The output P or P-NAME. */
typedef struct join_output {
    const char *split;
    tokmap_writer *writer; /* NULL: not open */
    char *head;            /* the first part of the metadata, the same in all cells */
    size_t head_bytes;
    cell_counts sum;
} join_output;

typedef struct join_state {
    const plan_file *plan;
    const cell_join_options *options;
    join_output outputs[PLAN_MAX_SPLITS + 1]; /* P first */
    uint64_t n_missing;
    size_t missing[SHOWN_CELLS]; /* the first ones */
    uint64_t n_bad_cells;        /* those that left out bad documents, */
    struct {
        size_t cell;
        uint64_t n;
    } bad[SHOWN_CELLS]; /* the first ones */
} join_state;

/* ---- Names and results ---- */

/* Creates the folder of the outputs, and refuses names of outputs that are names of cells. */
static int check_names(const plan_file *plan, const char *prefix)
{
    if (strlen(prefix) + sizeof *plan->splits.names >= PATH_PREFIX_BYTES)
        return cli_usage("-o: the path is too long");
    int code = output_make_folders(prefix);
    /* The output must not take the name of a cell, 000001 or 000001-NAME. */
    const char *name = path_last_part(prefix);
    const size_t n_digits = strspn(name, "0123456789");
    const bool like_cell = !name[n_digits] || (n_digits > 0 && name[n_digits] == '-');
    if (code == CLI_OK && like_cell &&
        file_in_same_folder(prefix, plan_file_cell_path(plan, 0, "", "").s))
        return cli_usage("-o %s: is the name of a cell; choose another one", prefix);
    for (size_t i = 0; code == CLI_OK && i < plan->splits.n; i++)
        code = path_check_dataset(plan_split_path(prefix, plan->splits.names[i], "").s);
    return code;
}

static int print_results(const plan_file *plan, const cell_join_options *options)
{
    int code = CLI_OK;
    for (size_t i = 0; i < plan->splits.n; i++) {
        const path_text output = plan_split_path(options->prefix, plan->splits.names[i], "");
        code = cli_first_failure(
            code, cli_print_result(output.s, NULL, NULL, options->json, options->quiet));
    }
    return code;
}

/* Says how many bad documents the cells have left out, and names the first such cells. */
static void note_bad(const join_state *s)
{
    const uint64_t n = cell_counts_value(&s->outputs[0].sum, "bad_documents");
    char cells[SHOWN_CELLS * 64] = "";
    for (size_t i = 0; i < s->n_bad_cells && i < SHOWN_CELLS; i++)
        snprintf(cells + strlen(cells), sizeof cells - strlen(cells), "%s%s in cell %zu",
                 i ? ", " : "", cli_count(s->bad[i].n).s, s->bad[i].cell);
    if (n > 0)
        cli_warn("the cells have left out %s: %s%s", cli_count_of(n, "bad document").s, cells,
                 s->n_bad_cells > SHOWN_CELLS
                     ? ", ...; tokmap status --json has the counts of all cells"
                     : "");
}

/* Names the fields of --meta that have no value in any document: probably no input has them, which
 * no task can know. */
static void note_nulls(const char *prefix)
{
    tokmap_dataset *ds;
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    if (tokmap_dataset_open(&ds, path_of(prefix, ".tmi").s, NULL) != TOKMAP_OK)
        return;
    for (uint32_t i = 0; tokmap_dataset_get_meta_column(ds, i, &column) == TOKMAP_OK; i++) {
        if (column.type == TOKMAP_VALUE_NULL && cli_dataset_info(ds).n_documents > 0)
            cli_warn("--meta: no document has a value of the field %.*s", (int)column.name_bytes,
                     column.name);
    }
    tokmap_dataset_close(ds);
}

/* ---- Cells ---- */

/* Whether the output is P-NAME of the same join, which was killed before it wrote P. */
static bool is_left(const join_state *s, const join_output *out)
{
    tokmap_dataset *ds;
    if (!*out->split || file_suffix_exists(s->options->prefix, ".tmi"))
        return false;
    const path_text path = plan_split_path(s->options->prefix, out->split, ".tmi");
    if (tokmap_dataset_open(&ds, path.s, NULL) != TOKMAP_OK)
        return false;
    const bool is_ours = cell_is_joined(s->plan, out->split, ds);
    tokmap_dataset_close(ds);
    return is_ours;
}

int cell_clear_up(const char *index_path)
{
    tokmap_dataset *ds;
    tokmap_writer *w;
    tokmap_error err;
    tokmap_status status = tokmap_dataset_open(&ds, index_path, &err);
    if (status != TOKMAP_OK)
        return cli_fail(&err);
    tokmap_writer_options options = cli_writer_options_like(ds);
    options.unfinished = TOKMAP_UNFINISHED_RESUME;
    tokmap_dataset_close(ds);
    status = tokmap_writer_open(&w, index_path, &options, &err);
    tokmap_writer_close(w);
    return status < 0 ? cli_fail(&err) : CLI_OK;
}

static int open_writer(const join_state *s, join_output *out, const tokmap_dataset *first)
{
    tokmap_error err;
    const path_text path = plan_split_path(s->options->prefix, out->split, ".tmi");
    tokmap_writer_options options = cli_writer_options_like(first);
    options.replace = s->options->force || is_left(s, out);
    const tokmap_status status = tokmap_writer_open_joined(&out->writer, path.s, &options, &err);
    return status == TOKMAP_OK ? CLI_OK : cli_fail(&err);
}

/* Adds the counts of a cell. Cells whose metadata begin differently were packed by different
 * programs. */
static int add_metadata(join_output *out, const tokmap_dataset *ds, const cell_metadata *m)
{
    size_t n_bytes;
    const char *json = tokmap_dataset_metadata(ds, &n_bytes);
    if (!out->head) {
        out->head = malloc(m->head_bytes + 1);
        if (!out->head)
            return cli_no_memory();
        memcpy(out->head, json, m->head_bytes);
        out->head_bytes = m->head_bytes;
    }
    if (out->head_bytes == m->head_bytes && memcmp(out->head, json, m->head_bytes) == 0 &&
        cell_counts_add(&out->sum, &m->counts))
        return CLI_OK;
    return cli_error(CLI_DATASET,
                     "%s: its metadata differ from the first cell; remove the files of this cell, "
                     "and pack it again",
                     cli_dataset_info(ds).index_path);
}

static int add_dataset(const join_state *s, join_output *out, size_t cell, const tokmap_dataset *ds)
{
    const plan_part part = plan_file_part(s->plan, cell);
    tokmap_error err;
    const tokmap_join_options options = {
        .struct_size = sizeof options,
        .continues_input = part.begin_offset > 0 || part.begin_row > 0,
    };
    const int code = out->writer ? CLI_OK : open_writer(s, out, ds);
    if (code != CLI_OK)
        return code;
    return tokmap_writer_join(out->writer, ds, &options, &err) == TOKMAP_OK ? CLI_OK
                                                                            : cli_fail(&err);
}

static int join_cell(join_state *s, size_t cell)
{
    int code = CLI_OK;
    cell_metadata m = {0};
    for (size_t i = 0; i < s->plan->splits.n && code == CLI_OK; i++) {
        join_output *out = &s->outputs[i];
        cell_report report;
        tokmap_dataset *ds = cell_open(s->plan, cell, out->split, &m, &report);
        if (!ds)
            return cli_error(report.exit_code, "%s", report.why);
        code = add_metadata(out, ds, &m);
        if (code == CLI_OK)
            code = add_dataset(s, out, cell, ds);
        tokmap_dataset_close(ds);
    }
    const uint64_t n_bad = cell_counts_value(&m.counts, "bad_documents"); /* all splits have it */
    if (n_bad > 0 && s->n_bad_cells < SHOWN_CELLS) {
        s->bad[s->n_bad_cells].cell = cell;
        s->bad[s->n_bad_cells].n = n_bad;
    }
    s->n_bad_cells += n_bad > 0;
    return code;
}

static int report_missing(const join_state *s)
{
    char names[SHOWN_CELLS * 16] = "";
    for (size_t i = 0; i < s->n_missing && i < SHOWN_CELLS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%06zu", i ? ", " : "",
                 s->missing[i]);
    return cli_error(CLI_INPUT, "%s of %s not packed: %s%s", cli_count(s->n_missing).s,
                     cli_count_of(s->plan->n_cells, "cell").s, names,
                     s->n_missing > SHOWN_CELLS ? ", ..." : "");
}

/* Joins the cells. After the first missing cell, only missing cells are counted. Any other error of
 * a name is reported when the cell is opened. */
static int join_cells(join_state *s)
{
    int code = CLI_OK;
    for (size_t cell = 0; cell < s->plan->n_cells && code == CLI_OK; cell++) {
        file_facts facts;
        const path_text index = plan_file_cell_path(s->plan, cell, "", ".tmi");
        if (file_describe_name(index.s, &facts) != ENOENT) {
            code = s->n_missing == 0 ? join_cell(s, cell) : CLI_OK;
            continue;
        }
        if (s->n_missing < SHOWN_CELLS)
            s->missing[s->n_missing] = cell;
        s->n_missing++;
    }
    return code == CLI_OK && s->n_missing > 0 ? report_missing(s) : code;
}

/* Whether --where has left out all documents of all cells. */
static int check_kept(const join_state *s)
{
    const cell_counts *sum = &s->outputs[0].sum;
    const uint64_t n_filtered = cell_counts_value(sum, "filtered_documents");
    const uint64_t n_records = cell_counts_value(sum, "records");
    if (n_filtered == 0 || n_filtered + cell_counts_value(sum, "bad_documents") < n_records)
        return CLI_OK;
    return cli_error(CLI_INPUT, "--where kept no document of %" PRIu64 " in all cells of the plan",
                     n_records);
}

/* ---- The end ---- */

static int finish_output(join_output *out)
{
    tokmap_error err;
    size_t n_bytes;
    char *json = cell_metadata_join(out->head, out->head_bytes, &out->sum, &n_bytes);
    if (!json)
        return cli_no_memory();
    tokmap_status status = tokmap_writer_set_metadata(out->writer, json, n_bytes, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(out->writer, &err);
    free(json);
    return status == TOKMAP_OK ? CLI_OK : cli_fail(&err);
}

static int finish_all(join_state *s)
{
    int code = check_kept(s);
    for (size_t i = 1; i < s->plan->splits.n && code == CLI_OK; i++)
        code = finish_output(&s->outputs[i]);
    return code == CLI_OK ? finish_output(&s->outputs[0]) : code;
}

int cell_join(const plan_file *plan, const cell_join_options *options)
{
    join_state *s = calloc(1, sizeof *s);
    if (!s)
        return cli_no_memory();
    s->plan = plan;
    s->options = options;
    for (size_t i = 0; i < s->plan->splits.n; i++)
        s->outputs[i].split = s->plan->splits.names[i];
    int code = check_names(plan, options->prefix);
    if (code == CLI_OK)
        code = join_cells(s);
    if (code == CLI_OK)
        code = finish_all(s);
    for (size_t i = 0; i < s->plan->splits.n; i++) {
        tokmap_writer_close(s->outputs[i].writer);
        free(s->outputs[i].head);
    }
    if (code == CLI_OK)
        code = print_results(plan, options);
    if (code == CLI_OK && !options->quiet) {
        note_bad(s);
        note_nulls(options->prefix);
    }
    free(s);
    return code;
}
