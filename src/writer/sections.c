/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/sections.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "format/document_index.h"
#include "format/segments_section.h"
#include "format/spans_section.h"
#include "system/platform.h"
#include "writer/meta_transpose.h"

/* ---- Documents ---- */

static tokmap_status refuse_changed(const tokmap_i_index_writer *w, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_CORRUPT,
                "%s: does not hold what was written to it; another process changed it", w->path);
}

/* Adds the start of each group to level 0, and of every 16th one to level 1. */
static tokmap_status put_starts(tokmap_i_index_writer *w, uint8_t *piece, tokmap_i_bytes *level_1,
                                tokmap_error *err)
{
    const uint64_t n_groups = div_up(w->n_documents, TOKMAP_I_GROUP_DOCUMENTS);
    const uint64_t n_per_piece = TOKMAP_I_READ_BACK_BYTES / TOKMAP_I_GROUP_BYTES;
    uint8_t entry[8];
    uint64_t start = 0;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t g = 0; !status && g < n_groups; g++) {
        const uint8_t *record = piece + g % n_per_piece * TOKMAP_I_GROUP_BYTES;
        if (g > 0 && g % n_per_piece == 0)
            status =
                tokmap_i_progress_add(w->progress, 8 * n_per_piece * TOKMAP_I_GROUP_DOCUMENTS, err);
        if (!status && g % n_per_piece == 0)
            status = tokmap_i_index_writer_read_back(
                w, g * TOKMAP_I_GROUP_BYTES, piece,
                (size_t)MIN(n_groups - g, n_per_piece) * TOKMAP_I_GROUP_BYTES, err);
        le_put64(entry, start);
        if (!status && g % TOKMAP_I_NODE_KEYS == 0 &&
            !tokmap_i_bytes_append(level_1, entry, sizeof entry))
            status = FAIL_MEMORY(err);
        if (status)
            return status;
        uint64_t span = le_get32(record + TOKMAP_I_GROUP_BYTES - 4);
        if (tokmap_i_group_is_wide(record)) {
            const uint64_t wide_index = le_get64(record);
            if (wide_index >= w->wide_ends.n_bytes / TOKMAP_I_WIDE_BYTES)
                return refuse_changed(w, err);
            span = le_get64(w->wide_ends.data + (wide_index + 1) * TOKMAP_I_WIDE_BYTES - 8);
        }
        status = tokmap_i_index_writer_put(w, entry, sizeof entry, err);
        start += span;
    }
    return status || start == w->group_start ? status : refuse_changed(w, err);
}

/* Writes what follows the groups: their starts, in levels, and the wide ends. The starts are
 * computed from the ends of the groups, which are read back from the file: keeping the starts in
 * memory would take 8 bytes for each 64 documents. */
static tokmap_status put_rest_of_documents(tokmap_i_index_writer *w, tokmap_error *err)
{
    tokmap_i_documents_layout layout;
    tokmap_i_bytes level_1 = {0}; /* u64, of every 16th group */
    tokmap_status status = tokmap_i_index_writer_end_groups(w, err);
    uint8_t *piece = malloc(TOKMAP_I_READ_BACK_BYTES);
    if (!status)
        status = piece ? put_starts(w, piece, &level_1, err) : FAIL_MEMORY(err);
    free(piece);
    tokmap_i_documents_layout_of(w->n_documents, &layout);
    uint64_t stride = 1;
    for (uint32_t level = 0; !status && level < layout.n_levels; level++) {
        const uint64_t fill = UINT64_MAX, n_entries = layout.level_entries[level];
        for (uint64_t i = 0; !status && level > 0 && i < n_entries; i++)
            status = tokmap_i_index_writer_put(w, level_1.data + 8 * i * stride, 8, err);
        for (uint64_t i = n_entries; !status && i % TOKMAP_I_NODE_KEYS != 0; i++)
            status = tokmap_i_index_writer_put(w, &fill, sizeof fill, err);
        stride *= level > 0 ? TOKMAP_I_NODE_KEYS : 1;
    }
    free(level_1.data);
    return status ? status
                  : tokmap_i_index_writer_put(w, w->wide_ends.data, w->wide_ends.n_bytes, err);
}

/* ---- Spans ---- */

/* Returns the part of span number *i, from token *from on, that is on one page; moves both on. */
static tokmap_span next_part(const tokmap_i_index_writer *w, uint64_t *i, uint64_t *from)
{
    const uint8_t *p = w->spans.data + TOKMAP_I_ADDED_SPAN_BYTES * *i;
    const uint64_t first = MAX(le_get64(p), *from), end = le_get64(p) + (le_get64(p + 8) >> 8);
    *from = MIN(end, ((first >> TOKMAP_I_SPANS_PAGE_BITS) + 1) << TOKMAP_I_SPANS_PAGE_BITS);
    *i += *from == end;
    return (tokmap_span){first, *from - first, (tokmap_span_role)p[8]};
}

/* Counts the parts, and those before each page; finds their role and their hash. */
static void measure(const tokmap_i_index_writer *w, tokmap_i_spans *s, tokmap_i_hasher *hasher,
                    uint8_t *starts)
{
    const uint64_t n = w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES;
    tokmap_i_span_hash hash = {.hasher = hasher};
    uint64_t from = 0, page = 0;
    for (uint64_t i = 0; i < n; s->n_spans++) {
        const tokmap_span part = next_part(w, &i, &from);
        for (; page <= part.first_token >> TOKMAP_I_SPANS_PAGE_BITS; page++)
            le_put64(starts + 8 * page, s->n_spans);
        if (s->n_spans == 0)
            s->role = (uint32_t)part.role;
        else if (s->role != (uint32_t)part.role)
            s->role = TOKMAP_I_OWN_ROLES;
        tokmap_i_span_hash_add(&hash, &part);
    }
    for (; page < s->n_pages; page++)
        le_put64(starts + 8 * page, s->n_spans);
    s->hash = tokmap_i_span_hash_get(&hash);
}

/* Writes one of the two lists: the roles of all parts, or their tokens. */
static tokmap_status put_list(tokmap_i_index_writer *w, bool roles, tokmap_error *err)
{
    const uint64_t n = w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES;
    uint64_t from = 0;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < n && !status;) {
        const tokmap_span part = next_part(w, &i, &from);
        uint8_t bytes[TOKMAP_I_SPAN_BYTES] = {(uint8_t)part.role};
        if (!roles) {
            le_put32(bytes, (uint32_t)part.first_token);
            le_put32(bytes + 4, (uint32_t)(part.first_token + part.n_tokens - 1));
        }
        status = tokmap_i_index_writer_put(w, bytes, roles ? 1 : sizeof bytes, err);
    }
    return status;
}

static tokmap_status put_spans(tokmap_i_index_writer *w, tokmap_error *err)
{
    tokmap_i_spans s = {.n_pages = div_up(w->last_end, UINT64_C(1) << TOKMAP_I_SPANS_PAGE_BITS)};
    uint8_t head[TOKMAP_I_SPANS_HEAD_BYTES], *starts = malloc((size_t)s.n_pages * 8 + 1);
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    tokmap_status status = starts && hasher ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status) {
        measure(w, &s, hasher, starts);
        tokmap_i_spans_encode(&s, head);
        status = tokmap_i_index_writer_put(w, head, sizeof head, err);
    }
    if (!status)
        status = tokmap_i_index_writer_put(w, starts, (size_t)s.n_pages * 8, err);
    if (!status)
        status = put_list(w, false, err);
    if (!status && s.role == TOKMAP_I_OWN_ROLES)
        status = put_list(w, true, err);
    tokmap_i_hasher_close(hasher);
    free(starts);
    return status;
}

/* ---- All sections ---- */

/* Writes the number of entries, the entries, and their names. */
static tokmap_status put_table(tokmap_i_index_writer *w, const tokmap_i_bytes *entries,
                               size_t entry_bytes, const tokmap_i_bytes *names, tokmap_error *err)
{
    uint8_t head[8];
    le_put64(head, entries->n_bytes / entry_bytes);
    tokmap_status status = tokmap_i_index_writer_put(w, head, sizeof head, err);
    if (!status)
        status = tokmap_i_index_writer_put(w, entries->data, entries->n_bytes, err);
    return status ? status : tokmap_i_index_writer_put(w, names->data, names->n_bytes, err);
}

/* Writes all sections, each from the end of the previous one, with zeros up to the next. */
static tokmap_status put_sections(tokmap_i_index_writer *w, tokmap_i_header *h,
                                  const void *metadata, size_t metadata_bytes, tokmap_error *err)
{
    static const uint8_t zeros[TOKMAP_I_SECTION_ALIGNMENT];
    uint32_t n = 0;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t kind = TOKMAP_I_DOCUMENTS; !status && kind <= TOKMAP_I_LAST_SECTION; kind++) {
        if (!tokmap_i_index_writer_has(w, kind))
            continue;
        if (kind == TOKMAP_I_DOCUMENTS)
            status = put_rest_of_documents(w, err);
        else if (kind == TOKMAP_I_CHECKSUMS)
            status = tokmap_i_index_writer_put(w, w->blocks.data, w->blocks.n_bytes, err);
        else if (kind == TOKMAP_I_INPUTS)
            status = put_table(w, &w->inputs, TOKMAP_I_INPUT_ENTRY_BYTES, &w->names, err);
        else if (kind == TOKMAP_I_METADATA)
            status = tokmap_i_index_writer_put(w, metadata, metadata_bytes, err);
        else if (kind == TOKMAP_I_META)
            status = tokmap_i_put_values(w->meta, w, err);
        else if (kind == TOKMAP_I_SPANS)
            status = put_spans(w, err);
        else
            status =
                put_table(w, &w->segments, TOKMAP_I_SEGMENT_ENTRY_BYTES, &w->segment_names, err);
        const uint64_t checksum = tokmap_i_index_writer_checksum(w);
        const uint64_t start = tokmap_i_section_start(h, n), end = w->written + w->out_used;
        h->sections[n++] = (tokmap_i_section){kind, 0, start, end - start, checksum};
        const uint64_t padded =
            n == h->n_sections ? end : round_up(end, TOKMAP_I_SECTION_ALIGNMENT);
        if (!status)
            status = tokmap_i_index_writer_put(w, zeros, (size_t)(padded - end), err);
        tokmap_i_hasher_reset(w->hasher);
        w->out_hashed = w->out_used;
    }
    return status ? status : tokmap_i_index_writer_flush(w, err);
}

tokmap_status tokmap_i_index_writer_finish(tokmap_i_index_writer *w, tokmap_i_header *h,
                                           const void *metadata, size_t metadata_bytes,
                                           tokmap_error *err)
{
    h->format_version = h->lowest_reader = TOKMAP_I_FORMAT_VERSION;
    h->n_sections = tokmap_i_index_writer_n_sections(w);
    h->n_documents = w->n_documents;
    const tokmap_status status = put_sections(w, h, metadata, metadata_bytes, err);
    if (status)
        return status;
    h->index_bytes = w->written;
    h->documents_hash = w->documents_hash;
    uint8_t head[TOKMAP_I_HEADER_BYTES + TOKMAP_I_LAST_SECTION * TOKMAP_I_SECTION_ENTRY_BYTES +
                 TOKMAP_I_SECTION_ALIGNMENT] = {0};
    tokmap_i_header_encode(h, head);
    int error = tokmap_i_file_write(w->fd, head, tokmap_i_section_start(h, 0), 0);
    if (!error)
        error = tokmap_i_file_sync(w->fd);
    return CHECK_IO(err, error, "%s: cannot write to the disk", w->path);
}
