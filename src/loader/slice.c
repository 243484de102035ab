/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/slice.h"

#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"

tokmap_status tokmap_i_slice_check(const tokmap_i_slice *s, uint32_t align, tokmap_error *err)
{
    const uint64_t n_chunks = s->mode == TOKMAP_CP_CONTIGUOUS ? s->size : 2ull * s->size;
    if (s->rank >= s->size)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "cp_rank is %" PRIu32 " and cp_size %" PRIu32 ": cp_rank must be below cp_size",
                    s->rank, s->size);
    if (s->mode < TOKMAP_CP_CONTIGUOUS || s->mode > TOKMAP_CP_DOCUMENTS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "cp_mode is %d: must be 0 to 2", (int)s->mode);
    if (s->size > 1 && s->length % n_chunks != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "sequence_length is %" PRIu32 ": must be a multiple of %" PRIu64
                    " with this cp_size and cp_mode",
                    s->length, n_chunks);
    if (s->size > 1 && s->mode == TOKMAP_CP_DOCUMENTS && (align == 0 || align % n_chunks != 0))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "slices of each document need windows of the kind best fit, and an align that "
                    "is a multiple of %" PRIu64 ", twice cp_size",
                    n_chunks);
    return TOKMAP_OK;
}

typedef struct cut {
    const tokmap_i_slice *s;
    tokmap_row *row;
    uint32_t i;
    const tokmap_piece *pieces; /* of the whole row */
    size_t n_pieces;
    tokmap_i_fetch_pieces *list;
    tokmap_i_row_parts *parts;
} cut;

/* Parts of slices are closer to each other than parts of whole rows, so they move down. */
static bool take(void *context, uint32_t from, uint32_t n, uint32_t place)
{
    const cut *c = context;
    const size_t to_part = (size_t)c->i * (c->s->length / c->s->size) + place;
    const size_t part = (size_t)c->i * c->s->length + from;
    if (c->parts->position_ids)
        memmove(c->parts->position_ids + to_part, c->parts->position_ids + part,
                n * sizeof(int32_t));
    if (c->parts->document_ids)
        memmove(c->parts->document_ids + to_part, c->parts->document_ids + part,
                n * sizeof(int32_t));
    if (c->parts->loss_mask)
        memmove(c->parts->loss_mask + to_part, c->parts->loss_mask + part, n);
    for (size_t k = 0; k < c->n_pieces; k++) {
        const tokmap_piece *p = &c->pieces[k];
        const uint32_t width = c->row->token_bytes, n_tokens = p->n_tokens + p->continues;
        const uint8_t *tokens =
            c->row->tokens ? (const uint8_t *)c->row->tokens + (size_t)p->place * width : p->tokens;
        const uint32_t begin = MAX(from, p->place), end = MIN(from + n, p->place + p->n_inputs);
        if (begin >= end)
            continue;
        tokmap_piece taken = *p;
        taken.tokens = tokens + (size_t)(begin - p->place) * width;
        taken.first_token += begin - p->place;
        taken.n_inputs = end - begin;
        taken.n_tokens = MIN(end - begin + 1, p->place + n_tokens - begin);
        taken.place = place + begin - from;
        taken.continues = 0; /* the label of its last token follows it in memory */
        if (!tokmap_i_fetch_add_pieces(c->list, &taken, 1))
            return false;
    }
    return true;
}

typedef struct parts_of_row {
    const tokmap_i_slice *s;
    tokmap_i_slice_take *take;
    void *context;
} parts_of_row;

/* Takes the first and the last remaining chunk of 2 * size, so that attention takes each rank
 * equally long. */
static bool take_zigzag(const parts_of_row *p, uint32_t begin, uint32_t n, uint32_t place)
{
    const uint32_t chunk = n / (2 * p->s->size), mirror = 2 * p->s->size - 1 - p->s->rank;
    return p->take(p->context, begin + p->s->rank * chunk, chunk, place) &&
           p->take(p->context, begin + mirror * chunk, chunk, place + chunk);
}

/* Takes a part of each document with the padding after it, and then of the rest of the row. */
static bool take_documents(const parts_of_row *p, uint32_t n_inputs, const tokmap_piece *pieces,
                           size_t n_pieces)
{
    const uint32_t size = p->s->size;
    bool taken = true;
    for (size_t k = 0; k < n_pieces && taken; k++) {
        const uint32_t begin = pieces[k].place;
        const uint32_t end = k + 1 < n_pieces ? pieces[k + 1].place : n_inputs;
        taken = take_zigzag(p, begin, end - begin, begin / size);
    }
    return taken &&
           p->take(p->context, n_inputs, (p->s->length - n_inputs) / size, n_inputs / size);
}

bool tokmap_i_slice_take_parts(const tokmap_i_slice *s, uint32_t n_inputs,
                               const tokmap_piece *pieces, size_t n_pieces,
                               tokmap_i_slice_take *take_part, void *context)
{
    const parts_of_row p = {s, take_part, context};
    const uint32_t n = s->length / s->size;
    return s->size == 1 || s->mode == TOKMAP_CP_CONTIGUOUS ? take_part(context, s->rank * n, n, 0)
           : s->mode == TOKMAP_CP_ZIGZAG                   ? take_zigzag(&p, 0, s->length, 0)
                                         : take_documents(&p, n_inputs, pieces, n_pieces);
}

bool tokmap_i_slice_row(const tokmap_i_slice *s, tokmap_row *row, uint32_t i,
                        const tokmap_piece *pieces, tokmap_i_fetch_pieces *list,
                        tokmap_i_row_parts *parts)
{
    const uint32_t n = s->length / s->size;
    const size_t first = list->n;
    cut c = {s, row, i, pieces, row->n_pieces, list, parts};
    const bool taken =
        tokmap_i_slice_take_parts(s, row->n_tokens - 1, pieces, row->n_pieces, take, &c);
    row->tokens = NULL;
    row->n_pieces = list->n - first;
    row->n_tokens = n + 1;
    row->position_ids = parts->position_ids ? parts->position_ids + (size_t)i * n : NULL;
    row->document_ids = parts->document_ids ? parts->document_ids + (size_t)i * n : NULL;
    row->loss_mask = parts->loss_mask ? parts->loss_mask + (size_t)i * n : NULL;
    return taken;
}
