/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/rows_find.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"

void tokmap_i_rows_finder_close(tokmap_i_rows_finder *f)
{
    free(f->places);
    *f = (tokmap_i_rows_finder){0};
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_before(uint64_t document, uint64_t part, uint64_t other, uint64_t other_part)
{
    return document < other || (document == other && part < other_part);
}

/* The index of the first place that is not below x. */
static uint32_t first_from(const tokmap_i_rows_finder *f, uint64_t x)
{
    uint32_t at = 0, n = f->n_places;
    while (n > 0) {
        const uint32_t half = n / 2;
        const bool before = f->places[at + half] < x;
        at += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return at;
}

/* Learns where the shared pieces of a chunk are. */
static tokmap_status learn(tokmap_i_rows_finder *f, const tokmap_i_chunk *c, tokmap_error *err)
{
    tokmap_i_chunk next;
    if (c->n_pieces > f->capacity) {
        free(f->places);
        f->capacity = 2 * c->n_pieces;
        f->places = malloc(f->capacity * sizeof *f->places);
        if (!f->places) {
            f->capacity = 0;
            return FAIL_MEMORY(err);
        }
    }
    f->n_places = c->n_pieces;
    const uint64_t documents = (uint64_t)c->n_alone + c->n_shared;
    for (uint32_t i = 0, row = 0; i < c->n_pieces; i++) {
        while (row + 1 < c->n_shared && tokmap_i_chunk_number(c, c->n_alone + row + 1ull) <= i)
            row++;
        f->places[i] = (uint64_t)tokmap_i_chunk_number(c, documents + i) << 32 | row;
    }
    qsort(f->places, f->n_places, sizeof *f->places, compare);
    f->chunk = c->number;
    f->first_document = c->first_document;
    f->first_part = c->first_part;
    f->end_document = UINT64_MAX;
    f->is_known = true;
    if (c->number + 1 == f->rows->header.n_chunks)
        return TOKMAP_OK;
    const tokmap_status status = tokmap_i_rows_chunk(f->rows, f->reader, c->number + 1, &next, err);
    f->is_known = !status;
    f->end_document = next.first_document;
    f->end_part = next.first_part;
    return status;
}

/* The last chunk that does not begin behind the piece. */
static tokmap_status search(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                            tokmap_error *err)
{
    uint64_t at = 0, n = f->rows->header.n_chunks;
    tokmap_i_chunk c;
    tokmap_status status = TOKMAP_OK;
    while (n > 1 && !status) {
        status = tokmap_i_rows_chunk(f->rows, f->reader, at + n / 2, &c, err);
        const bool behind = !status && is_before(document, part, c.first_document, c.first_part);
        at += behind ? 0 : n / 2;
        n -= behind ? n - n / 2 : n / 2;
    }
    if (!status)
        status = tokmap_i_rows_chunk(f->rows, f->reader, at, &c, err);
    return status ? status : learn(f, &c, err);
}

tokmap_status tokmap_i_rows_find(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                                 uint64_t n_tokens, uint64_t *row, tokmap_error *err)
{
    const tokmap_i_rows_kind *kind = &f->rows->header.kind;
    tokmap_i_chunk c;
    tokmap_status status = TOKMAP_OK;
    if (!f->is_known || is_before(document, part, f->first_document, f->first_part) ||
        !is_before(document, part, f->end_document, f->end_part))
        status = search(f, document, part, err);
    if (!status)
        status = tokmap_i_rows_chunk(f->rows, f->reader, f->chunk, &c, err);
    if (status)
        return status;
    const uint64_t relative = document - f->first_document;
    *row = f->chunk * f->rows->chunk_rows;
    if (tokmap_i_rows_size(kind, n_tokens) == tokmap_i_rows_room(kind)) {
        const uint64_t earlier = relative == 0 ? f->first_part : 0;
        *row += tokmap_i_chunk_first(&c, (uint32_t)relative) + (part - earlier);
        return TOKMAP_OK;
    }
    const uint32_t at = first_from(f, relative << 32);
    if (at == f->n_places || f->places[at] >> 32 != relative)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: damaged: a document is missing in its rows",
                    f->rows->path ? f->rows->path : f->rows->ds->index_path);
    *row += c.n_alone + (uint32_t)f->places[at];
    return TOKMAP_OK;
}
