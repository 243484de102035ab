/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/platform.h"
#include "base/json_text.h"

typedef struct cell_search {
    const plan_file *plan;
    size_t cell;
    bool verify;
    cell_report *report;
    const char *split; /* of the dataset that is examined, */
    path_text prefix;  /* and its prefix */
} cell_search;

/* ---- One dataset ---- */

__attribute__((format(printf, 3, 4))) static bool find(cell_search *s, cell_state state,
                                                       const char *format, ...)
{
    va_list args;
    s->report->state = state;
    s->report->exit_code = CLI_DATASET;
    va_start(args, format);
    vsnprintf(s->report->why, sizeof s->report->why, format, args);
    va_end(args);
    return false;
}

static void choose_split(cell_search *s, const char *split)
{
    s->split = split;
    s->prefix = plan_file_cell_path(s->plan, s->cell, split, "");
}

/* Whether the metadata name this cell and split. */
static bool check_metadata(cell_search *s, const tokmap_dataset *ds, cell_metadata *m)
{
    size_t n_bytes;
    const char *json = tokmap_dataset_metadata(ds, &n_bytes);
    if (!cell_metadata_read(m, json, n_bytes))
        return find(s, CELL_FOREIGN, "%.400s.tmi: was not packed for a plan", s->prefix.s);
    if (m->cell != s->cell)
        return find(s, CELL_FOREIGN, "%.400s.tmi: is cell %06" PRIu64 " of a plan", s->prefix.s,
                    m->cell);
    json_text_span split;
    const bool has_split = json_text_find((json_text_span){json, n_bytes}, "split", &split);
    if (*s->split ? !has_split || !json_text_is_string(split, s->split) : has_split)
        return find(s, CELL_FOREIGN, "%.400s.tmi: is the dataset of another split of this cell",
                    s->prefix.s);
    if (m->hash == s->plan->cells[s->cell].hash)
        return true;
    return m->origin == s->plan->origin
               ? find(
                     s, CELL_OUTDATED,
                     "%.400s.tmi: was packed before the plan was updated, and must be packed again",
                     s->prefix.s)
               : find(s, CELL_FOREIGN, "%.400s.tmi: was packed for another plan (%016" PRIx64 ")",
                      s->prefix.s, m->origin);
}

/* Checks the token file. A complete index takes its name last, so the tokens must exist. */
static bool check_tokens(cell_search *s, const tokmap_dataset_info *info)
{
    const size_t n = strlen(s->prefix.s);
    file_facts facts;
    if (!info->token_path || strncmp(info->token_path, s->prefix.s, n) != 0 ||
        strcmp(info->token_path + n, ".bin") != 0)
        return find(s, CELL_FOREIGN, "%.400s.tmi: is the index of another file", s->prefix.s);
    const int error = file_describe(info->token_path, &facts);
    if (error)
        return find(s, CELL_DAMAGED, "%.400s.bin: %s", s->prefix.s, strerror(error));
    if (facts.n_bytes != info->token_file_bytes)
        return find(s, CELL_DAMAGED,
                    "%.400s.bin: has %" PRIu64 " bytes, but its index says %" PRIu64, s->prefix.s,
                    facts.n_bytes, info->token_file_bytes);
    return true;
}

static bool find_damage(cell_search *s, const tokmap_error *err)
{
    find(s, CELL_DAMAGED, "%.511s", err->text);
    if (cli_exit_code(err) == CLI_AGAIN) /* the cell may be sound */
        s->report->exit_code = CLI_AGAIN;
    return false;
}

/* Opens and checks the dataset at s->prefix; NULL, with the reason in the report, if it is not
 * done. */
static tokmap_dataset *open_dataset(cell_search *s, cell_metadata *m)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open_index(&ds, path_of(s->prefix.s, ".tmi").s, &err) != TOKMAP_OK) {
        find_damage(s, &err);
        return NULL;
    }
    const tokmap_dataset_info info = cli_dataset_info(ds);
    if (!check_metadata(s, ds, m) || !check_tokens(s, &info)) {
        tokmap_dataset_close(ds);
        return NULL;
    }
    s->report->n_tokens += info.n_tokens;
    s->report->n_documents += info.n_documents;
    s->report->n_bad = cell_counts_value(&m->counts, "bad_documents"); /* all datasets have it */
    return ds;
}

static void note_damage(void *in_index, const tokmap_damage *damage)
{
    if (damage->kind == TOKMAP_DAMAGE_SECTION)
        *(bool *)in_index = true;
}

/* Verifies the dataset. A damaged index may name another cell or plan. */
static bool verify_dataset(cell_search *s)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    bool in_index = false;
    const bool foreign = s->report->state == CELL_FOREIGN;
    const tokmap_verify_options options = {
        .struct_size = sizeof options, .context = &in_index, .on_damage = note_damage};
    const bool sound =
        tokmap_dataset_open(&ds, path_of(s->prefix.s, ".tmi").s, &err) == TOKMAP_OK &&
        tokmap_dataset_verify(ds, &options, NULL, &err) == TOKMAP_OK;
    tokmap_dataset_close(ds);
    if (foreign && !in_index)
        return false;
    return sound || find_damage(s, &err);
}

tokmap_dataset *cell_open(const plan_file *plan, size_t cell, const char *split, cell_metadata *m,
                          cell_report *report)
{
    cell_search s = {.plan = plan, .cell = cell, .report = report};
    *report = (cell_report){.state = CELL_DONE};
    choose_split(&s, split);
    return open_dataset(&s, m);
}

bool cell_is_joined(const plan_file *plan, const char *split, const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const char *first = "";
    bool ours = cli_is_joined(&info);
    size_t cell = 0;
    for (uint64_t i = 0; i < info.n_segments && ours; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &s);
        first = i ? first : s.path;
        for (ours = false; cell < plan->n_cells && !ours; cell++) {
            const path_text name = plan_file_cell_path(plan, cell, split, ".bin");
            ours = strcmp(path_beside(first, path_last_part(name.s)).s, s.path) == 0;
        }
    }
    if (!ours || info.n_segments == 0)
        return ours;
    return file_in_same_folder(path_beside(info.index_path, first).s,
                               plan_file_cell_path(plan, 0, "", "").s);
}

/* ---- All of them ---- */

static void check_done(cell_search *s)
{
    bool ours = true;
    s->report->state = CELL_DONE;
    for (size_t i = 0; i < s->plan->splits.n && ours; i++) {
        cell_metadata m;
        choose_split(s, s->plan->splits.names[i]);
        tokmap_dataset *ds = open_dataset(s, &m);
        ours = ds != NULL;
        tokmap_dataset_close(ds);
        if (s->verify && (ours || s->report->state == CELL_FOREIGN))
            ours = verify_dataset(s) && ours;
    }
}

void cell_check(const plan_file *plan, size_t cell, bool verify, cell_report *report)
{
    cell_search s = {.plan = plan, .cell = cell, .verify = verify, .report = report};
    file_facts facts;
    *report = (cell_report){.state = CELL_ABSENT};
    choose_split(&s, "");
    const path_text index = path_of(s.prefix.s, ".tmi");
    bool has_partial = false, has_tokens = false, is_half = false;
    const int error = file_describe_name(index.s, &facts);
    bool has_index = error == 0;
    if (error && error != ENOENT) {
        find(&s, CELL_DAMAGED, "%.400s: %s", index.s, strerror(error));
        return;
    }
    if (!has_index) {
        /* Another process may be finishing the cell: it names the splits, the tokens, then the
         * index, and then removes the partial names. So a search in this order finds one of
         * them. */
        for (size_t i = 1; i < plan->splits.n && !is_half; i++) {
            const path_text split = plan_file_cell_path(plan, cell, plan->splits.names[i], ".tmi");
            is_half = file_name_exists(split.s);
        }
        has_tokens = file_suffix_exists(s.prefix.s, ".bin");
        has_partial = file_suffix_exists(s.prefix.s, ".tmi.partial") ||
                      file_suffix_exists(s.prefix.s, ".tmj.partial");
        has_index = file_describe_name(index.s, &facts) == 0;
    }
    if (has_index) {
        report->done_ns = facts.mtime_ns;
        check_done(&s);
    } else if (has_partial) {
        report->state = CELL_UNFINISHED;
    } else if (has_tokens) {
        find(&s, CELL_DAMAGED, "%.400s.bin: has no index", s.prefix.s);
    } else if (is_half) {
        find(&s, CELL_DAMAGED, "%.400s: is missing", index.s);
    }
}
