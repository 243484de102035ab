/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/rows_find.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"

void tokmap_i_rows_finder_close(tokmap_i_rows_finder *f)
{
    free(f->shared_in);
    *f = (tokmap_i_rows_finder){0};
}

/* Stores the shared row of each document of a chunk. */
static tokmap_status learn(tokmap_i_rows_finder *f, const tokmap_i_chunk *c, tokmap_error *err)
{
    const uint64_t starts = c->n_alone, documents = starts + c->n_shared;
    uint32_t last = 0;
    for (uint32_t i = 0; i < c->n_pieces; i++)
        last = MAX(last, tokmap_i_chunk_number(c, documents + i));
    free(f->shared_in);
    f->n_documents = last + 1ull;
    f->shared_in = calloc(f->n_documents, sizeof *f->shared_in);
    if (!f->shared_in)
        return FAIL_MEMORY(err);
    f->chunk = c->number;
    for (uint32_t i = 0, row = 0; i < c->n_pieces; i++) {
        while (row + 1 < c->n_shared && tokmap_i_chunk_number(c, starts + row + 1) <= i)
            row++;
        f->shared_in[tokmap_i_chunk_number(c, documents + i)] = row + 1;
    }
    return TOKMAP_OK;
}

/* Loads the last chunk that does not begin after the piece. */
static tokmap_status search(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                            tokmap_error *err)
{
    uint64_t at = 0, n = f->rows->header.n_chunks;
    tokmap_i_chunk c;
    tokmap_status status = TOKMAP_OK;
    while (n > 1 && !status) {
        status = tokmap_i_rows_chunk(f->rows, f->reader, at + n / 2, &c, err);
        const bool behind = !status && (document < c.first_document ||
                                        (document == c.first_document && part < c.first_part));
        at += behind ? 0 : n / 2;
        n = behind ? n / 2 : n - n / 2;
    }
    if (!status)
        status = tokmap_i_rows_chunk(f->rows, f->reader, at, &c, err);
    return status ? status : learn(f, &c, err);
}

/* Sets *row if the loaded chunk has the piece; `fills` a row. */
static bool has_piece(const tokmap_i_rows_finder *f, const tokmap_i_chunk *c, uint64_t document,
                      uint64_t part, bool fills, uint64_t *row)
{
    const uint64_t relative = document - c->first_document;
    const uint64_t first_part = relative == 0 ? c->first_part : 0;
    *row = f->chunk * f->rows->chunk_rows;
    if (document < c->first_document || relative > UINT32_MAX || part < first_part)
        return false;
    if (!fills) {
        *row += c->n_alone + (relative < f->n_documents ? f->shared_in[relative] : 0) - 1ull;
        return relative < f->n_documents && f->shared_in[relative] > 0;
    }
    const uint64_t at = tokmap_i_chunk_first(c, (uint32_t)relative) + (part - first_part);
    *row += at;
    return at < c->n_alone && tokmap_i_chunk_number(c, at) == relative;
}

tokmap_status tokmap_i_rows_find(tokmap_i_rows_finder *f, uint64_t document, uint64_t part,
                                 uint64_t n_tokens, uint64_t *row, tokmap_error *err)
{
    const tokmap_i_rows_kind *kind = &f->rows->header.kind;
    const bool fills = tokmap_i_rows_size(kind, n_tokens) == tokmap_i_rows_room(kind);
    tokmap_i_chunk c;
    tokmap_status status = TOKMAP_OK;
    for (int tries = 0; tries < 2 && !status; tries++) {
        if (tries > 0)
            status = search(f, document, part, err);
        if (!status && f->shared_in)
            status = tokmap_i_rows_chunk(f->rows, f->reader, f->chunk, &c, err);
        if (!status && f->shared_in && has_piece(f, &c, document, part, fills, row))
            return TOKMAP_OK;
    }
    if (!status)
        status = tokmap_i_index_cache_check(f->reader->files, err);
    return status ? status
                  : FAIL(err, TOKMAP_ERR_CORRUPT, "%s: damaged: a document is missing in its rows",
                         f->rows->file.path ? f->rows->file.path : f->rows->ds->index_path);
}
