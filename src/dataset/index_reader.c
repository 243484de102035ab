/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"

tokmap_status tokmap_i_index_reader_open(tokmap_i_index_reader *r, const tokmap_dataset *ds,
                                         tokmap_error *err)
{
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_READER_BUFFER_BYTES);
    *r = (tokmap_i_index_reader){ds, {-1, ds->index_path}, buffer};
    if (!r->buffer)
        return FAIL_MEMORY(err);
    const tokmap_status status = tokmap_i_dataset_open_index(ds, &r->file.fd, err);
    if (status)
        tokmap_i_index_reader_close(r);
    return status;
}

void tokmap_i_index_reader_close(tokmap_i_index_reader *r)
{
    tokmap_i_file_close(r->file.fd);
    free(r->buffer);
    *r = (tokmap_i_index_reader){.file.fd = -1};
}

tokmap_status tokmap_i_read_checksum(tokmap_i_file_range range, uint8_t *buffer, uint64_t *checksum,
                                     tokmap_i_progress *progress, tokmap_error *err)
{
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    if (!hasher)
        return FAIL_MEMORY(err);
    tokmap_status status = TOKMAP_OK;
    while (!status && range.begin < range.end) {
        const size_t n = (size_t)MIN(range.end - range.begin, TOKMAP_I_READER_BUFFER_BYTES);
        status = tokmap_i_read_exactly(range.file, range.begin, n, buffer, err);
        if (!status)
            tokmap_i_hasher_add(hasher, buffer, n);
        if (!status)
            status = tokmap_i_progress_add(progress, n, err);
        range.begin += n;
    }
    *checksum = tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    return status;
}

static tokmap_status check_section(tokmap_i_index_reader *r, const tokmap_i_section *section,
                                   tokmap_i_progress *progress, tokmap_error *err)
{
    const tokmap_i_file_range range = {r->file, section->offset,
                                       section->offset + section->n_bytes};
    uint64_t checksum;
    const tokmap_status status = tokmap_i_read_checksum(range, r->buffer, &checksum, progress, err);
    if (status || checksum == section->checksum)
        return status;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, section->offset,
                   "%s: damaged: the %s section (%" PRIu64 " bytes from byte %" PRIu64
                   ") does not match its checksum",
                   r->ds->index_path, tokmap_i_section_name(section->kind), section->n_bytes,
                   section->offset);
}

tokmap_status tokmap_i_index_reader_checksum(tokmap_i_index_reader *r,
                                             const tokmap_i_section *section, tokmap_error *err)
{
    return check_section(r, section, NULL, err);
}

tokmap_status tokmap_i_check_section(const tokmap_dataset *ds, uint32_t kind,
                                     tokmap_i_progress *progress, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, kind);
    if (!section || ds->index_fd < 0) /* no documents: nothing is read of it */
        return TOKMAP_OK;
    tokmap_i_index_reader r = {ds,
                               {ds->index_fd, ds->index_path},
                               aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_READER_BUFFER_BYTES)};
    const tokmap_status status =
        r.buffer ? check_section(&r, section, progress, err) : FAIL_MEMORY(err);
    free(r.buffer);
    return status;
}

tokmap_status tokmap_i_index_reader_load(tokmap_i_index_reader *r, const tokmap_i_section *section,
                                         uint8_t **out, tokmap_error *err)
{
    *out = malloc((size_t)MAX(section->n_bytes, 1));
    if (!*out)
        return FAIL_MEMORY(err);
    const tokmap_status status =
        tokmap_i_read_exactly(r->file, section->offset, (size_t)section->n_bytes, *out, err);
    if (status) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- Documents ---- */

/* Group records and their level 0 entries are read in pieces of this many. */
enum {
    CHUNK_GROUPS = 2048,
    RECORDS_BYTES = CHUNK_GROUPS * TOKMAP_I_GROUP_BYTES,
    STARTS_BYTES = CHUNK_GROUPS * 8,
    WIDE_AT = RECORDS_BYTES + STARTS_BYTES
};
_Static_assert(WIDE_AT + TOKMAP_I_WIDE_BYTES <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

typedef struct section_reading {
    tokmap_i_index_reader *r;
    const tokmap_i_section *section;
    const tokmap_i_documents *docs;
    uint64_t next_start, n_wide_seen;
    tokmap_i_use_ends *use;
    void *context;
} section_reading;

/* Entries of a level and of the level below are compared in pieces of this many: level i must hold
 * every 16th entry of level i - 1, and its padding must be as specified. */
enum {
    LEVEL_CHUNK = 4096,
    LOWER_BYTES = LEVEL_CHUNK * TOKMAP_I_NODE_KEYS * 8
};
_Static_assert(LOWER_BYTES + LEVEL_CHUNK * 8 <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

/* Reads bytes of the section. */
static tokmap_status read_part(const section_reading *w, uint64_t offset, uint64_t n_bytes,
                               uint8_t *to, tokmap_error *err)
{
    return tokmap_i_read_exactly(w->r->file, w->section->offset + offset, (size_t)n_bytes, to, err);
}

static tokmap_status check_level(section_reading *w, uint32_t level, tokmap_error *err)
{
    const tokmap_i_documents_layout *l = &w->docs->layout;
    const uint64_t n_entries = l->level_entries[level];
    uint8_t *lower = w->r->buffer, *upper = lower + LOWER_BYTES;
    for (uint64_t done = 0; done < n_entries; done += LEVEL_CHUNK) {
        const uint64_t n = MIN(n_entries - done, LEVEL_CHUNK);
        const uint64_t n_stored = round_up(n, TOKMAP_I_NODE_KEYS);
        tokmap_status status =
            read_part(w, l->level_offset[level] + done * 8, n_stored * 8, upper, err);
        if (!status && level > 0) {
            const uint64_t first = done * TOKMAP_I_NODE_KEYS;
            const uint64_t n_lower =
                MIN(n * TOKMAP_I_NODE_KEYS, l->level_entries[level - 1] - first);
            status = read_part(w, l->level_offset[level - 1] + first * 8, n_lower * 8, lower, err);
        }
        if (status)
            return status;
        for (uint64_t i = 0; i < n_stored; i++) {
            const uint64_t entry = le_get64(upper + 8 * i);
            const uint64_t below =
                i < n && level > 0 ? le_get64(lower + 8 * i * TOKMAP_I_NODE_KEYS) : entry;
            if (entry != (i < n ? below : UINT64_MAX))
                return FAIL_AT(err, TOKMAP_ERR_CORRUPT, w->section->offset + l->level_offset[level],
                               "%s: damaged: level %" PRIu32 " of the document index is wrong",
                               w->r->ds->index_path, level);
        }
    }
    return TOKMAP_OK;
}

static tokmap_status use_group(section_reading *w, uint64_t group, tokmap_error *err)
{
    const uint64_t in_chunk = group % CHUNK_GROUPS, start = w->next_start;
    const uint64_t first_document = group * TOKMAP_I_GROUP_DOCUMENTS;
    const tokmap_i_documents_layout *l = &w->docs->layout;
    const uint64_t n = MIN(l->n_groups - group, CHUNK_GROUPS);
    tokmap_status status = TOKMAP_OK;
    if (in_chunk == 0)
        status =
            read_part(w, group * TOKMAP_I_GROUP_BYTES, n * TOKMAP_I_GROUP_BYTES, w->r->buffer, err);
    if (!status && in_chunk == 0)
        status =
            read_part(w, l->level_offset[0] + group * 8, n * 8, w->r->buffer + RECORDS_BYTES, err);
    if (status)
        return status;
    tokmap_i_group g = {
        .record = w->r->buffer + in_chunk * TOKMAP_I_GROUP_BYTES,
        .start = le_get64(w->r->buffer + RECORDS_BYTES + in_chunk * 8),
        .n_documents =
            (uint32_t)MIN(w->docs->n_documents - first_document, TOKMAP_I_GROUP_DOCUMENTS),
    };
    if (tokmap_i_group_is_wide(g.record) && w->n_wide_seen < w->docs->n_wide) {
        g.wide = w->r->buffer + WIDE_AT;
        g.wide_index = w->n_wide_seen++;
        status = read_part(w, l->wide_offset + g.wide_index * TOKMAP_I_WIDE_BYTES,
                           TOKMAP_I_WIDE_BYTES, w->r->buffer + WIDE_AT, err);
    }
    if (status)
        return status;
    const char *problem = tokmap_i_group_check(&g, &w->next_start);
    if (!problem && w->next_start > w->docs->n_tokens)
        problem = "a document ends after the last token";
    if (problem)
        return tokmap_i_fail_damaged(w->r->ds, w->section->offset, problem, err);
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS];
    for (uint32_t j = 0; j < g.n_documents; j++)
        ends[j] = start +
                  (g.wide ? le_get64(g.wide + 8 * (size_t)j) : le_get32(g.record + 4 * (size_t)j));
    return w->use(w->context, ends, g.n_documents, err);
}

tokmap_status tokmap_i_index_reader_documents(tokmap_i_index_reader *r, tokmap_i_use_ends *use,
                                              void *context, tokmap_error *err)
{
    section_reading w = {.r = r,
                         .section = tokmap_i_section_find(&r->ds->header, TOKMAP_I_DOCUMENTS),
                         .docs = &r->ds->documents,
                         .use = use,
                         .context = context};
    tokmap_status status = TOKMAP_OK;
    for (uint64_t group = 0; !status && group < w.docs->layout.n_groups; group++)
        status = use_group(&w, group, err);
    const bool whole = w.docs->n_documents == 0 || w.next_start == w.docs->n_tokens;
    if (!status && (!whole || w.n_wide_seen != w.docs->n_wide))
        status = FAIL_AT(err, TOKMAP_ERR_CORRUPT, w.section->offset,
                         "%s: damaged: the last document ends at token %" PRIu64 " of %" PRIu64,
                         r->ds->index_path, w.next_start, w.docs->n_tokens);
    for (uint32_t level = 0; !status && level < w.docs->layout.n_levels; level++)
        status = check_level(&w, level, err);
    return status;
}

/* ---- Values of documents ---- */

/* Documents are checked in runs, so that validity, values and offsets of a run are read
 * together. */
enum {
    RUN_DOCUMENTS = 32 << 10, /* a multiple of 8 */
    VALIDITY_BYTES = RUN_DOCUMENTS / 8,
    RUN_BYTES = VALIDITY_BYTES + 8 * RUN_DOCUMENTS + 8 * (RUN_DOCUMENTS + 1)
};
_Static_assert(RUN_BYTES + 0 <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

typedef struct column_check {
    const tokmap_i_stored_column *at;
    const tokmap_i_meta_column *c;
    uint64_t n_valid, last_offset;
    uint32_t width[TOKMAP_I_META_PARTS]; /* bytes of an entry */
    uint8_t *run[TOKMAP_I_META_PARTS];   /* the entries of the current run */
} column_check;

static tokmap_status read_entries(const column_check *k, tokmap_i_meta_part part, uint64_t first,
                                  uint32_t n, tokmap_error *err)
{
    const uint32_t width = k->width[part];
    return tokmap_i_read_exactly(k->at->file, k->at->offset + k->c->at[part] + first * width,
                                 (size_t)n * width, k->run[part], err);
}

static tokmap_status fail_column(const column_check *k, const char *problem, tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, k->at->offset, "%s: damaged: column '%.*s': %s",
                   k->at->file.name, (int)k->c->name_bytes, k->c->name, problem);
}

static const char *check_offsets(column_check *k, uint64_t n_strings)
{
    const uint8_t *offsets = k->run[TOKMAP_I_META_OFFSETS];
    uint64_t last = le_get64(offsets);
    if (last != k->last_offset)
        return "the first string of a column does not begin at 0";
    for (uint64_t i = 1; i <= n_strings; i++) {
        const uint64_t next = le_get64(offsets + 8 * i);
        if (next < last || next > k->c->text_bytes || next - last > TOKMAP_I_MAX_META_STRING)
            return "the strings of a column are out of order";
        last = next;
    }
    k->last_offset = last;
    return NULL;
}

static const char *check_run(column_check *k, uint32_t n_documents)
{
    const bool *has = k->c->has, codes = k->c->type == TOKMAP_I_META_DICTIONARY;
    const uint32_t width = k->width[TOKMAP_I_META_VALUES];
    const uint8_t *validity = k->run[TOKMAP_I_META_VALIDITY];
    for (uint32_t i = 0; i < n_documents; i++) {
        const bool valid = !has[TOKMAP_I_META_VALIDITY] || (validity[i / 8] >> i % 8 & 1);
        const uint8_t *value = k->run[TOKMAP_I_META_VALUES] + (size_t)i * width;
        const uint8_t *offset = k->run[TOKMAP_I_META_OFFSETS] + 8 * (size_t)i;
        k->n_valid += valid;
        if (!valid && (has[TOKMAP_I_META_VALUES] ? !is_zero(value, width)
                                                 : le_get64(offset) != le_get64(offset + 8)))
            return "a document has both a value and the mark that it has none";
        if (codes && (width == 1 ? *value : le_get16(value)) >= k->c->n_strings)
            return "a code of a column has no string";
    }
    if (has[TOKMAP_I_META_VALIDITY] && n_documents % 8 != 0 &&
        validity[n_documents / 8] >> n_documents % 8 != 0)
        return "there are bits after the last document";
    return NULL;
}

static tokmap_status check_column(column_check *k, tokmap_error *err)
{
    const tokmap_i_meta_column *c = k->c;
    const bool is_string = c->type == TOKMAP_I_META_STRING;
    const uint64_t n_documents = c->type == TOKMAP_I_META_NULL ? 0 : k->at->n_documents;
    const uint64_t n_strings = c->type == TOKMAP_I_META_DICTIONARY ? c->n_strings : 0;
    tokmap_status status = TOKMAP_OK;
    const char *problem = NULL;
    for (uint64_t first = 0; !status && !problem && first < n_documents; first += RUN_DOCUMENTS) {
        const uint32_t n = (uint32_t)MIN(n_documents - first, RUN_DOCUMENTS);
        if (c->has[TOKMAP_I_META_VALIDITY])
            status = read_entries(k, TOKMAP_I_META_VALIDITY, first / 8, (n + 7) / 8, err);
        if (!status && c->has[TOKMAP_I_META_VALUES])
            status = read_entries(k, TOKMAP_I_META_VALUES, first, n, err);
        if (!status && is_string)
            status = read_entries(k, TOKMAP_I_META_OFFSETS, first, n + 1, err);
        if (!status && is_string)
            problem = check_offsets(k, n);
        if (!status && !problem)
            problem = check_run(k, n);
        if (!status && !problem)
            status = tokmap_i_progress_add(k->at->progress, (uint64_t)n * k->width[1], err);
    }
    for (uint64_t first = 0; !status && !problem && first < n_strings; first += RUN_DOCUMENTS) {
        const uint32_t n = (uint32_t)MIN(n_strings - first, RUN_DOCUMENTS);
        status = read_entries(k, TOKMAP_I_META_OFFSETS, first, n + 1, err);
        problem = status ? NULL : check_offsets(k, n);
    }
    if (!problem && n_documents > 0 && k->n_valid != n_documents - c->n_nulls)
        problem = "the number of documents with a value is wrong";
    if (!problem && k->last_offset != c->text_bytes)
        problem = "the last string does not end with the text";
    return status || !problem ? status : fail_column(k, problem, err);
}

/* Checks that the bytes between parts are zeros. */
static tokmap_status check_gaps(column_check *k, uint64_t *end, tokmap_error *err)
{
    for (int part = 0; part < TOKMAP_I_META_PARTS; part++) {
        uint8_t gap[TOKMAP_I_META_ALIGNMENT];
        if (!k->c->has[part])
            continue;
        const size_t n_bytes = (size_t)(k->c->at[part] - *end);
        const tokmap_status status =
            tokmap_i_read_exactly(k->at->file, k->at->offset + *end, n_bytes, gap, err);
        if (status)
            return status;
        if (!is_zero(gap, n_bytes))
            return fail_column(k, "a byte between its parts is not zero", err);
        *end = k->c->at[part] + k->c->n_bytes[part];
    }
    return TOKMAP_OK;
}

tokmap_status tokmap_i_verify_column(const tokmap_i_stored_column *at, uint64_t *end,
                                     tokmap_error *err)
{
    const tokmap_i_meta_column *c = at->column;
    column_check k = {
        .at = at,
        .c = c,
        .width = {1, c->code_bytes ? c->code_bytes : c->number_bytes, 8},
        .run = {at->buffer, at->buffer + VALIDITY_BYTES,
                at->buffer + VALIDITY_BYTES + 8 * (size_t)RUN_DOCUMENTS},
    };
    const tokmap_status status = check_gaps(&k, end, err);
    return status ? status : check_column(&k, err);
}

tokmap_status tokmap_i_verify_meta(tokmap_i_index_reader *r, tokmap_error *err)
{
    const tokmap_i_meta *meta = r->ds->meta;
    const uint64_t offset = tokmap_i_section_find(&r->ds->header, TOKMAP_I_META)->offset;
    uint64_t end = meta->directory_bytes;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; !status && i < meta->n_columns; i++) {
        const tokmap_i_stored_column at = {r->file,           offset,    &meta->columns[i],
                                           meta->n_documents, r->buffer, NULL};
        status = tokmap_i_verify_column(&at, &end, err);
    }
    return status;
}
