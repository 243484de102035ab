/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/platform.h"
#include "tokmap.h"

#define PATH_BYTES (PATH_PREFIX_BYTES + 32)

/* ---- Names ---- */

plan_splits plan_file_splits(const plan_file *plan)
{
    plan_splits splits = {0};
    for (size_t i = 0; i < plan->n_options && splits.n < PLAN_MAX_SPLITS; i++) {
        const plan_option *o = &plan->options[i];
        size_t n = o->value ? strcspn(o->value, "=") : 0;
        if (strcmp(o->name, "split") != 0 || n == 0 || n >= sizeof *splits.names)
            continue;
        memcpy(splits.names[splits.n++], o->value, n);
    }
    return splits;
}

bool plan_file_collects(const plan_file *plan)
{
    const char *word = plan_file_option(plan, "on-error");
    return word && strcmp(word, "collect") == 0;
}

/* ---- One dataset ---- */

typedef struct cell_search {
    const plan_file *plan;
    size_t cell;
    bool verify;
    cell_report *report;
    char prefix[PATH_PREFIX_BYTES]; /* of the dataset that is looked at */
} cell_search;

static bool find(cell_search *s, cell_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool find(cell_search *s, cell_state state, const char *format, ...)
{
    va_list args;
    s->report->state = state;
    s->report->exit_code = CLI_DATASET;
    va_start(args, format);
    vsnprintf(s->report->why, sizeof s->report->why, format, args);
    va_end(args);
    return false;
}

static bool has_file(const cell_search *s, const char *suffix)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s", s->prefix, suffix);
    return file_name_exists(path);
}

/* What the metadata says. */
static bool check_metadata(cell_search *s, const tokmap_dataset *ds, cell_metadata *m)
{
    size_t n_bytes;
    const char *json = tokmap_dataset_metadata(ds, &n_bytes);
    if (!cell_metadata_read(m, json, n_bytes))
        return find(s, CELL_FOREIGN, "%.400s.tmi: was not packed for a plan", s->prefix);
    const uint64_t wanted = plan_file_cell_hash(s->plan, s->cell);
    for (size_t i = 0; i < s->plan->n_earlier; i++) {
        if (m->hash == s->plan->earlier[i] && m->hash != wanted)
            return find(
                s, CELL_OUTDATED,
                "%.400s.tmi: was packed before the plan was updated, and must be packed again",
                s->prefix);
    }
    if (m->hash != wanted)
        return find(s, CELL_FOREIGN, "%.400s.tmi: was packed for another plan (%016" PRIx64 ")",
                    s->prefix, m->hash);
    if (m->cell != s->cell)
        return find(s, CELL_FOREIGN, "%.400s.tmi: is cell %06" PRIu64 " of this plan", s->prefix,
                    m->cell);
    return true;
}

/* The index of a dataset must be complete and have its name last, so its tokens must be there. */
static bool check_tokens(cell_search *s, const tokmap_dataset_info *info)
{
    const size_t n = strlen(s->prefix);
    file_facts facts;
    if (!info->token_path || strncmp(info->token_path, s->prefix, n) != 0 ||
        strcmp(info->token_path + n, ".bin") != 0)
        return find(s, CELL_FOREIGN, "%.400s.tmi: is the index of another file", s->prefix);
    const int error = file_describe(info->token_path, &facts);
    if (error)
        return find(s, CELL_DAMAGED, "%.400s.bin: %s", s->prefix, strerror(error));
    if (facts.n_bytes != info->token_file_bytes)
        return find(s, CELL_DAMAGED,
                    "%.400s.bin: has %" PRIu64 " bytes, but its index says %" PRIu64, s->prefix,
                    facts.n_bytes, info->token_file_bytes);
    return true;
}

static bool check_open(cell_search *s, const tokmap_dataset *ds, cell_metadata *m)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    if (!check_metadata(s, ds, m) || !check_tokens(s, &info))
        return false;
    s->report->n_tokens += info.n_tokens;
    s->report->n_documents += info.n_documents;
    return true;
}

static bool find_damage(cell_search *s, const tokmap_error *err)
{
    find(s, CELL_DAMAGED, "%.511s", err->text);
    if (cli_exit_code(err) == CLI_AGAIN) /* the cell may be whole */
        s->report->exit_code = CLI_AGAIN;
    return false;
}

/* Opens and checks the dataset at s->prefix. */
static bool open_dataset(cell_search *s, tokmap_dataset **ds, cell_metadata *m)
{
    char path[PATH_BYTES];
    tokmap_error err;
    snprintf(path, sizeof path, "%s.tmi", s->prefix);
    if (tokmap_dataset_open_index(ds, path, &err) != TOKMAP_OK)
        return find_damage(s, &err);
    if (check_open(s, *ds, m))
        return true;
    tokmap_dataset_close(*ds);
    *ds = NULL;
    return false;
}

static void see_damage(void *in_index, const tokmap_damage *damage)
{
    if (damage->kind == TOKMAP_DAMAGE_SECTION)
        *(bool *)in_index = true;
}

/* A damaged index may say that the cell is of something else. */
static bool verify_dataset(cell_search *s)
{
    char path[PATH_BYTES];
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    bool in_index = false;
    const bool foreign = s->report->state == CELL_FOREIGN;
    const tokmap_verify_options options = {
        .struct_size = sizeof options, .context = &in_index, .on_damage = see_damage};
    snprintf(path, sizeof path, "%s.tmi", s->prefix);
    const bool sound = tokmap_dataset_open(&ds, path, &err) == TOKMAP_OK &&
                       tokmap_dataset_verify(ds, &options, NULL, &err) == TOKMAP_OK;
    tokmap_dataset_close(ds);
    if (foreign && !in_index)
        return false;
    return sound || find_damage(s, &err);
}

static bool check_dataset(cell_search *s, cell_metadata *m)
{
    tokmap_dataset *ds;
    const bool ours = open_dataset(s, &ds, m);
    tokmap_dataset_close(ds);
    if (s->verify && (ours || s->report->state == CELL_FOREIGN))
        return verify_dataset(s) && ours;
    return ours;
}

tokmap_dataset *cell_open(const plan_file *plan, size_t cell, const char *split, cell_metadata *m,
                          cell_report *report)
{
    cell_search s = {.plan = plan, .cell = cell, .report = report};
    tokmap_dataset *ds = NULL;
    *report = (cell_report){.state = CELL_DONE};
    plan_file_cell_prefix(plan, cell, split, s.prefix);
    return open_dataset(&s, &ds, m) ? ds : NULL;
}

/* The cell whose token file has this path, by its last part; without one, SIZE_MAX. */
static size_t cell_of_path(const plan_file *plan, const char *split, const char *path)
{
    char prefix[PATH_PREFIX_BYTES], wanted[PATH_BYTES];
    const char *name = path_last_part(path);
    const size_t n_digits = strspn(name, "0123456789");
    const size_t cell = n_digits < 10 ? (size_t)strtoul(name, NULL, 10) : SIZE_MAX;
    if (n_digits == 0 || cell >= plan->n_cells)
        return SIZE_MAX;
    plan_file_cell_prefix(plan, cell, split, prefix);
    snprintf(wanted, sizeof wanted, "%s.bin", path_last_part(prefix));
    return strcmp(name, wanted) == 0 ? cell : SIZE_MAX;
}

/* Whether the segment is in the folder of the cells. */
static bool is_in_folder(const plan_file *plan, const char *index_path, const char *path)
{
    char cell[PATH_PREFIX_BYTES], whole[2 * PATH_BYTES];
    snprintf(whole, sizeof whole, "%.*s%s", (int)(path_last_part(index_path) - index_path),
             index_path, path);
    plan_file_cell_prefix(plan, 0, NULL, cell);
    return file_in_same_folder(whole, cell);
}

bool cell_is_joined(const plan_file *plan, size_t which, const tokmap_dataset *ds)
{
    const plan_splits splits = plan_file_splits(plan);
    const char *split = which ? splits.names[which - 1] : NULL;
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_segment_info first = {.struct_size = sizeof first}, s = first;
    tokmap_dataset_get_info(ds, &info);
    bool ours = cli_is_joined(&info);
    for (uint64_t i = 0, next = 0; i < info.n_segments && ours; i++) {
        tokmap_dataset_get_segment(ds, i, i ? &s : &first);
        const char *path = i ? s.path : first.path;
        const size_t folder_bytes = (size_t)(path_last_part(first.path) - first.path);
        const size_t cell = cell_of_path(plan, split, path);
        ours = cell != SIZE_MAX && cell >= next && strncmp(path, first.path, folder_bytes) == 0 &&
               (size_t)(path_last_part(path) - path) == folder_bytes;
        next = (uint64_t)cell + 1;
    }
    return ours && (info.n_segments == 0 || is_in_folder(plan, info.index_path, first.path));
}

/* Whether the file has this checksum. */
static bool has_checksum(const char *path, uint64_t wanted)
{
    static uint8_t block[1 << 16];
    file_facts facts;
    size_t n_read = 1;
    int fd, error = file_open(path, &fd, &facts);
    XXH3_state_t *checksum = XXH3_createState();
    if (checksum)
        XXH3_64bits_reset(checksum);
    for (uint64_t at = 0; checksum && !error && n_read > 0; at += n_read) {
        error = tokmap_i_file_read(fd, block, sizeof block, at, &n_read);
        if (!error)
            XXH3_64bits_update(checksum, block, n_read);
    }
    const bool same = checksum && !error && XXH3_64bits_digest(checksum) == wanted;
    XXH3_freeState(checksum);
    tokmap_i_file_close(fd);
    return same;
}

/* The bad documents are in the file with a newline after each. */
static bool check_bad_documents(cell_search *s, const cell_metadata *m)
{
    char path[PATH_BYTES];
    file_facts facts;
    const uint64_t n_documents = cell_counts_value(&m->counts, "bad_documents");
    const uint64_t n_bytes = n_documents + cell_counts_value(&m->counts, "bad_bytes");
    if (!plan_file_collects(s->plan) || n_documents == 0)
        return true;
    snprintf(path, sizeof path, "%s.bad", s->prefix);
    if (file_describe(path, &facts) != 0)
        return find(s, CELL_DAMAGED, "%.400s: is missing", path);
    if (facts.n_bytes == n_bytes && s->verify && !has_checksum(path, m->bad_xxh3))
        return find(s, CELL_DAMAGED, "%.400s: its checksum differs", path);
    return facts.n_bytes == n_bytes ||
           find(s, CELL_DAMAGED,
                "%.400s: has %" PRIu64 " bytes, but the bad documents of the cell have %" PRIu64,
                path, facts.n_bytes, n_bytes);
}

/* ---- All of them ---- */

static void check_done(cell_search *s)
{
    cell_metadata m;
    const plan_splits splits = plan_file_splits(s->plan);
    s->report->state = CELL_DONE;
    if (!check_dataset(s, &m) || !check_bad_documents(s, &m))
        return;
    for (size_t i = 0; i < splits.n; i++) {
        plan_file_cell_prefix(s->plan, s->cell, splits.names[i], s->prefix);
        if (!check_dataset(s, &m))
            return;
    }
}

/* A split that has its name, though nothing of the other dataset is there. */
static bool has_split(const cell_search *s)
{
    const plan_splits splits = plan_file_splits(s->plan);
    cell_search split = *s;
    bool found = false;
    for (size_t i = 0; i < splits.n && !found; i++) {
        plan_file_cell_prefix(s->plan, s->cell, splits.names[i], split.prefix);
        found = has_file(&split, ".tmi");
    }
    return found;
}

void cell_look(const plan_file *plan, size_t cell, bool verify, cell_report *report)
{
    cell_search s = {.plan = plan, .cell = cell, .verify = verify, .report = report};
    char path[PATH_BYTES];
    file_facts facts;
    *report = (cell_report){.state = CELL_ABSENT};
    plan_file_cell_prefix(plan, cell, NULL, s.prefix);
    snprintf(path, sizeof path, "%s.tmi", s.prefix);
    bool has_partial = false, has_tokens = false, is_half = false;
    const int error = file_describe_name(path, &facts);
    bool has_index = error == 0;
    if (error && error != ENOENT) {
        find(&s, CELL_DAMAGED, "%.400s: %s", path, strerror(error));
        return;
    }
    if (!has_index) {
        /* Another process may be finishing it: it names the tokens, then the index, and then
         * removes the partial names. So in this order, one of them is seen. */
        is_half = has_split(&s);
        has_tokens = has_file(&s, ".bin");
        has_partial = has_file(&s, ".tmi.partial") || has_file(&s, ".tmj.partial");
        has_index = file_describe_name(path, &facts) == 0;
    }
    if (has_index) {
        report->done_ns = facts.mtime_ns;
        check_done(&s);
    } else if (has_partial)
        report->state = CELL_UNFINISHED;
    else if (has_tokens)
        find(&s, CELL_DAMAGED, "%.400s.bin: has no index", s.prefix);
    else if (is_half)
        find(&s, CELL_DAMAGED, "%.400s: is missing", path);
}
