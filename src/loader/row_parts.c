/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/row_parts.h"

#include <stdlib.h>

#include "base/base.h"

bool tokmap_i_row_parts_use(tokmap_i_row_parts *p, uint32_t n_rows, int32_t *position_ids,
                            int32_t *document_ids, uint8_t *loss_mask)
{
    const size_t n = (size_t)p->length * n_rows;
    const bool positions = p->wanted & TOKMAP_ROW_POSITION_IDS;
    const bool documents = p->wanted & TOKMAP_ROW_DOCUMENT_IDS;
    const bool masks = p->wanted & TOKMAP_ROW_LOSS_MASK;
    if ((position_ids && !positions) || (document_ids && !documents) || (loss_mask && !masks))
        return false;
    if (!p->cu_seqlens)
        return true;
    int32_t *const ids = p->cu_seqlens + n + n_rows; /* all parts are one after another */
    uint8_t *const mask = (uint8_t *)(ids + n * positions + n * documents);
    p->position_ids = position_ids ? position_ids : positions ? ids : NULL;
    p->document_ids = document_ids ? document_ids : documents ? ids + n * positions : NULL;
    p->loss_mask = loss_mask ? loss_mask : masks ? mask : NULL;
    return true;
}

bool tokmap_i_row_parts_open(tokmap_i_row_parts *p, uint32_t wanted, uint32_t length,
                             uint32_t n_rows)
{
    const size_t n = (size_t)length * n_rows;
    *p = (tokmap_i_row_parts){.wanted = wanted, .length = length};
    if (wanted == 0)
        return true;
    const size_t n_ids =
        ((wanted & TOKMAP_ROW_POSITION_IDS) != 0) + ((wanted & TOKMAP_ROW_DOCUMENT_IDS) != 0);
    p->n_bytes = 4 * (n + n_rows + n * n_ids) + (wanted & TOKMAP_ROW_LOSS_MASK ? n : 0);
    p->cu_seqlens = malloc(p->n_bytes);
    return p->cu_seqlens && tokmap_i_row_parts_use(p, n_rows, NULL, NULL, NULL);
}

void tokmap_i_row_parts_close(tokmap_i_row_parts *p)
{
    free(p->cu_seqlens);
    *p = (tokmap_i_row_parts){0};
}

/* ---- Boundaries ---- */

/* The boundaries of a row: cu[0] is 0, and cu[1 .. n) are the positions (1 to n_inputs) before
 * which a document ends. */
typedef struct boundaries {
    int32_t *cu;
    uint32_t n;
    tokmap_i_index_cache *index;
} boundaries;

/* Adds the boundaries of tokens first .. first + n - 1, which are the inputs from position `at`
 * on. */
static tokmap_status add_boundaries(boundaries *b, const tokmap_dataset *ds, uint64_t first,
                                    uint32_t n, uint32_t at)
{
    tokmap_i_pieces *from = tokmap_i_index_cache_of(b->index, ds);
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS];
    tokmap_document d;
    tokmap_status status = tokmap_i_documents_find(&ds->documents, from, first, &d);
    if (status)
        return status;
    uint64_t group = d.index / TOKMAP_I_GROUP_DOCUMENTS, last = first + 1;
    uint32_t j = d.index % TOKMAP_I_GROUP_DOCUMENTS;
    for (; group < ds->documents.layout.n_groups; group++, j = 0) {
        const uint32_t n_ends = tokmap_i_documents_group(&ds->documents, from, group, ends);
        for (; j < n_ends; j++) {
            if (ends[j] > first + n)
                return TOKMAP_OK;
            if (ends[j] < last)
                return TOKMAP_ERR_CORRUPT;
            last = ends[j];
            const int32_t position = (int32_t)(at + (ends[j] - first));
            if (b->cu[b->n - 1] != position) /* else an empty document is between them */
                b->cu[b->n++] = position;
        }
        if (n_ends == 0)
            return TOKMAP_ERR_CORRUPT;
    }
    return TOKMAP_OK;
}

/* Clears the mask of labels in spans of roles that are not trained; mask[0] is for token
 * `first`. */
static tokmap_status mask_spans(const tokmap_i_row_parts *p, const tokmap_dataset *ds,
                                const tokmap_i_roles *trained, uint64_t first, uint64_t n,
                                uint8_t *mask)
{
    tokmap_i_span_cursor c = {.spans = &ds->spans};
    tokmap_span s;
    if (ds->spans.n_spans == 0 || n == 0)
        return TOKMAP_OK;
    c.from = tokmap_i_index_cache_spans(p->index, ds);
    tokmap_status status = tokmap_i_spans_seek(&c, first);
    while (!status && !(status = tokmap_i_spans_next(&c, &s)) && s.first_token < first + n) {
        const uint64_t begin = MAX(s.first_token, first), end = s.first_token + s.n_tokens;
        if (end <= begin)
            return TOKMAP_ERR_CORRUPT; /* spans are not in order */
        if (!tokmap_i_roles_have(trained, s.role))
            memset(mask + (begin - first), 0, MIN(end, first + n) - begin);
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

/* ---- Parts ---- */

enum {
    BLOCK = 16 /* ids */
};
typedef int32_t eight_ids __attribute__((vector_size(32), aligned(4), may_alias));

/* Writes first, first + step, ... to ids[begin .. end), and to at most BLOCK - 1 places after them,
 * but not at `limit` or after it. */
static inline __attribute__((always_inline)) void
fill_run(int32_t *ids, int32_t begin, int32_t end, int32_t limit, int32_t first, int32_t step)
{
    const int32_t whole = end <= limit - BLOCK ? end : begin + (end - begin) / BLOCK * BLOCK;
    eight_ids low = (eight_ids){0, 1, 2, 3, 4, 5, 6, 7} * step + first, high = low + 8 * step;
    int32_t at = begin;
    for (; at < whole; at += BLOCK) {
        *(eight_ids *)(ids + at) = low;
        *(eight_ids *)(ids + at + 8) = high;
        low += BLOCK * step;
        high += BLOCK * step;
    }
    for (; at < end; at++)
        ids[at] = first + (at - begin) * step;
}

/* Fills in ids. Writes whole blocks, because the lengths of documents cannot be predicted; the next
 * document overwrites the excess. Compiled once for each target below, because a portable
 * build only has vectors of four numbers. */
static inline __attribute__((always_inline)) void fill_ids(int32_t *positions, int32_t *documents,
                                                           const int32_t *cu, uint32_t n_documents)
{
    const int32_t limit = cu[n_documents];
    for (uint32_t k = 0; k < n_documents && positions; k++)
        fill_run(positions, cu[k], cu[k + 1], limit, 0, 1);
    for (uint32_t k = 0; k < n_documents && documents; k++)
        fill_run(documents, cu[k], cu[k + 1], limit, (int32_t)k, 0);
}

void tokmap_i_fill_ids_scalar(int32_t *positions, int32_t *documents, const int32_t *cu,
                              uint32_t n_documents)
{
    fill_ids(positions, documents, cu, n_documents);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void fill_ids_avx2(int32_t *positions, int32_t *documents,
                                                          const int32_t *cu, uint32_t n_documents)
{
    fill_ids(positions, documents, cu, n_documents);
}
#endif

void tokmap_i_fill_ids(int32_t *positions, int32_t *documents, const int32_t *cu,
                       uint32_t n_documents)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        fill_ids_avx2(positions, documents, cu, n_documents);
        return;
    }
#endif
    fill_ids(positions, documents, cu, n_documents);
}

/* Fills the rest of a short row. */
static void fill_rest(int32_t *ids, uint32_t from, uint32_t length, uint32_t value)
{
    for (uint32_t i = from; ids && i < length; i++)
        ids[i] = (int32_t)value;
}

/* Makes the wanted parts from the boundaries and the loss mask. */
static void fill_parts(tokmap_i_row_parts *p, uint32_t i, boundaries *b, tokmap_row *row)
{
    const uint32_t n_inputs = row->n_tokens - 1;
    const size_t at = (size_t)i * p->length;
    if (b->cu[b->n - 1] != (int32_t)n_inputs)
        b->cu[b->n++] = (int32_t)n_inputs;
    const uint32_t n_documents = b->n - 1;
    if (p->wanted & TOKMAP_ROW_DOCUMENTS) {
        int32_t longest = 0;
        for (uint32_t k = 0; k < n_documents; k++)
            longest = MAX(longest, b->cu[k + 1] - b->cu[k]);
        row->cu_seqlens = b->cu;
        row->n_documents = n_documents;
        row->longest_document = (uint32_t)longest;
    }
    int32_t *positions = p->position_ids ? p->position_ids + at : NULL;
    int32_t *documents = p->document_ids ? p->document_ids + at : NULL;
    row->position_ids = positions;
    row->document_ids = documents;
    tokmap_i_fill_ids(positions, documents, b->cu, n_documents);
    fill_rest(positions, n_inputs, p->length, 0);
    fill_rest(documents, n_inputs, p->length, n_documents);
}

tokmap_status tokmap_i_row_parts_fill(tokmap_i_row_parts *p, uint32_t i, const tokmap_dataset *ds,
                                      const tokmap_piece *pieces, size_t n_pieces,
                                      bool by_documents, const tokmap_i_roles *trained,
                                      tokmap_row *row)
{
    const size_t at = (size_t)i * p->length;
    uint8_t *mask = p->loss_mask ? p->loss_mask + at : NULL;
    boundaries b = {.cu = p->cu_seqlens + at + i, .index = p->index};
    tokmap_status status = TOKMAP_OK;
    b.cu[b.n++] = 0;
    row->loss_mask = mask;
    if (mask)
        memset(mask, 0, p->length);
    for (size_t k = 0; k < n_pieces && !status; k++) {
        const tokmap_piece *piece = &pieces[k];
        if (by_documents && k > 0)
            b.cu[b.n++] = (int32_t)piece->place;
        else if (!by_documents && piece->n_inputs > 0)
            status = add_boundaries(&b, ds, piece->first_token, piece->n_inputs, piece->place);
        /* The label of input j of the row is token j + 1. */
        const uint32_t skip = k == 0 || by_documents, n_labels = piece->n_tokens - skip;
        if (mask && trained && !status) {
            memset(mask + piece->place + skip - 1, 1, n_labels);
            status = mask_spans(p, ds, trained, piece->first_token + skip, n_labels,
                                mask + piece->place + skip - 1);
        }
    }
    const bool crosses = (p->wanted & TOKMAP_ROW_SPAN_MASK) == TOKMAP_ROW_SPAN_MASK;
    for (uint32_t k = 1; k < b.n && mask && !by_documents && !crosses; k++)
        mask[b.cu[k] - 1] = 0;
    if (!status)
        fill_parts(p, i, &b, row);
    return status;
}
