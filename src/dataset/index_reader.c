/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/status.h"
#include "dataset/token_files.h"

tokmap_status tokmap_i_index_reader_open(tokmap_i_index_reader *r, const tokmap_dataset *ds,
                                         tokmap_error *err)
{
    *r = (tokmap_i_index_reader){ds, -1, malloc(TOKMAP_I_READER_BUFFER_BYTES)};
    if (!r->buffer)
        return FAIL_MEMORY(err);
    const tokmap_status status = tokmap_i_dataset_open_index(ds, &r->fd, err);
    if (status)
        tokmap_i_index_reader_close(r);
    return status;
}

void tokmap_i_index_reader_close(tokmap_i_index_reader *r)
{
    tokmap_i_file_close(r->fd);
    free(r->buffer);
    *r = (tokmap_i_index_reader){NULL, -1, NULL};
}

static tokmap_status read_part(tokmap_i_index_reader *r, uint64_t offset, size_t n_bytes, void *dst,
                               tokmap_error *err)
{
    return tokmap_i_read_exactly((tokmap_i_named_file){r->fd, r->ds->index_path}, offset, n_bytes,
                                 dst, err);
}

tokmap_status tokmap_i_index_reader_checksum(tokmap_i_index_reader *r,
                                             const tokmap_i_section *section, tokmap_error *err)
{
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    if (!hasher)
        return FAIL_MEMORY(err);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; !status && done < section->n_bytes;) {
        const size_t n = (size_t)MIN(section->n_bytes - done, TOKMAP_I_READER_BUFFER_BYTES);
        status = read_part(r, section->offset + done, n, r->buffer, err);
        if (!status)
            tokmap_i_hasher_add(hasher, r->buffer, n);
        done += n;
    }
    if (!status && tokmap_i_hasher_get(hasher) != section->checksum) {
        static const char *const names[] = {"",         "documents", "block checksums", "inputs",
                                            "metadata", "values",    "segments"};
        status = FAIL_AT(err, TOKMAP_ERR_CORRUPT, section->offset,
                         "%s: damaged: the %s section (%" PRIu64 " bytes from byte %" PRIu64
                         ") does not match its checksum",
                         r->ds->index_path,
                         section->kind <= TOKMAP_I_SEGMENTS ? names[section->kind] : "extra",
                         section->n_bytes, section->offset);
    }
    tokmap_i_hasher_close(hasher);
    return status;
}

tokmap_status tokmap_i_index_reader_load(tokmap_i_index_reader *r, const tokmap_i_section *section,
                                         uint8_t **out, tokmap_error *err)
{
    *out = malloc((size_t)MAX(section->n_bytes, 1));
    if (!*out)
        return FAIL_MEMORY(err);
    const tokmap_status status = read_part(r, section->offset, (size_t)section->n_bytes, *out, err);
    if (status) {
        free(*out);
        *out = NULL;
    }
    return status;
}

/* Reads group records and their level 0 entries, a chunk of each at a time. */
enum {
    CHUNK_GROUPS = 2048,
    RECORDS_BYTES = CHUNK_GROUPS * TOKMAP_I_GROUP_BYTES,
    STARTS_BYTES = CHUNK_GROUPS * 8,
    WIDE_AT = RECORDS_BYTES + STARTS_BYTES
};
_Static_assert(WIDE_AT + TOKMAP_I_WIDE_BYTES <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

typedef struct walk {
    tokmap_i_index_reader *r;
    const tokmap_i_section *section;
    const tokmap_i_documents *docs;
    uint64_t next_start, n_wide_seen;
    tokmap_i_use_ends *use;
    void *context;
} walk;

/* Level `level` must hold every 16th entry of the level below, and its padding must be as
 * specified. */
enum {
    LEVEL_CHUNK = 4096,
    LOWER_BYTES = LEVEL_CHUNK * TOKMAP_I_NODE_KEYS * 8
};
_Static_assert(LOWER_BYTES + LEVEL_CHUNK * 8 <= TOKMAP_I_READER_BUFFER_BYTES, "buffer too small");

/* n_compared: n_entries, or 0 at the lowest level. */
static bool chunk_sound(const uint8_t *upper, const uint8_t *lower, uint64_t n_compared,
                        uint64_t n_entries, uint64_t n_stored)
{
    for (uint64_t i = 0; i < n_compared; i++)
        if (load_le64(upper + 8 * i) != load_le64(lower + 8 * i * TOKMAP_I_NODE_KEYS))
            return false;
    for (uint64_t i = n_entries; i < n_stored; i++)
        if (load_le64(upper + 8 * i) != UINT64_MAX)
            return false;
    return true;
}

static tokmap_status check_level(walk *w, uint32_t level, tokmap_error *err)
{
    const tokmap_i_documents_layout *l = &w->docs->layout;
    const uint64_t n_entries = l->level_entries[level];
    uint8_t *lower = w->r->buffer, *upper = lower + LOWER_BYTES;
    for (uint64_t done = 0; done < n_entries; done += LEVEL_CHUNK) {
        const uint64_t n = MIN(n_entries - done, LEVEL_CHUNK);
        const uint64_t n_stored = round_up(n, TOKMAP_I_NODE_KEYS);
        tokmap_status status = read_part(
            w->r, w->section->offset + l->level_offset[level] + done * 8, n_stored * 8, upper, err);
        if (!status && level > 0) {
            const uint64_t first = done * TOKMAP_I_NODE_KEYS;
            const uint64_t n_lower =
                MIN(n * TOKMAP_I_NODE_KEYS, l->level_entries[level - 1] - first);
            status = read_part(w->r, w->section->offset + l->level_offset[level - 1] + first * 8,
                               n_lower * 8, lower, err);
        }
        if (status)
            return status;
        if (!chunk_sound(upper, lower, level > 0 ? n : 0, n, n_stored))
            return FAIL_AT(err, TOKMAP_ERR_CORRUPT, w->section->offset + l->level_offset[level],
                           "%s: damaged: level %" PRIu32 " of the document index is wrong",
                           w->r->ds->index_path, level);
    }
    return TOKMAP_OK;
}

static tokmap_status use_group(walk *w, uint64_t group, tokmap_error *err)
{
    const uint64_t in_chunk = group % CHUNK_GROUPS, start = w->next_start;
    const uint64_t first_document = group * TOKMAP_I_GROUP_DOCUMENTS;
    const tokmap_i_documents_layout *l = &w->docs->layout;
    const uint64_t n = MIN(l->n_groups - group, CHUNK_GROUPS);
    tokmap_status status = TOKMAP_OK;
    if (in_chunk == 0)
        status = read_part(w->r, w->section->offset + group * TOKMAP_I_GROUP_BYTES,
                           (size_t)n * TOKMAP_I_GROUP_BYTES, w->r->buffer, err);
    if (!status && in_chunk == 0)
        status = read_part(w->r, w->section->offset + l->level_offset[0] + group * 8, (size_t)n * 8,
                           w->r->buffer + RECORDS_BYTES, err);
    if (status)
        return status;
    tokmap_i_group g = {
        .record = w->r->buffer + in_chunk * TOKMAP_I_GROUP_BYTES,
        .start = load_le64(w->r->buffer + RECORDS_BYTES + in_chunk * 8),
        .n_documents =
            (uint32_t)MIN(w->docs->n_documents - first_document, TOKMAP_I_GROUP_DOCUMENTS),
    };
    if (tokmap_i_group_is_wide(g.record) && w->n_wide_seen < w->docs->n_wide) {
        g.wide = w->r->buffer + WIDE_AT;
        g.wide_index = w->n_wide_seen++;
        status = read_part(w->r,
                           w->section->offset + w->docs->layout.wide_offset +
                               g.wide_index * TOKMAP_I_WIDE_BYTES,
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
        ends[j] = start + (g.wide ? load_le64(g.wide + 8 * (size_t)j)
                                  : load_le32(g.record + 4 * (size_t)j));
    return w->use(w->context, ends, g.n_documents, err);
}

tokmap_status tokmap_i_index_reader_documents(tokmap_i_index_reader *r, tokmap_i_use_ends *use,
                                              void *context, tokmap_error *err)
{
    walk w = {.r = r,
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
