/* SPDX-License-Identifier: Apache-2.0 */
/* rows_make.c - from the lengths of all documents to chunks of rows. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"
#include "dataset/index_reader.h"
#include "rows/best_fit.h"
#include "rows/rows.h"
#include "system/platform.h"

typedef struct maker {
    tokmap_i_rows *r;
    const tokmap_rows_options *progress; /* or NULL */
    tokmap_i_best_fit fit;

    tokmap_i_fit_piece *pieces; /* that are in no chunk yet */
    uint32_t n, capacity;
    uint64_t room; /* that they need */

    uint64_t document, end; /* the next one, and where it begins */
    uint32_t *starts;       /* for chunk_encode */
    uint8_t *chunk;         /* to be written */
    size_t chunk_capacity;
    uint64_t *offsets; /* where chunks begin; the first offset_capacity of them have memory */
    uint64_t offset_capacity, memory;
} maker;

/* ---- Output ---- */

static tokmap_status put(maker *m, const void *bytes, size_t n_bytes, uint64_t at,
                         tokmap_error *err)
{
    tokmap_i_rows *r = m->r;
    if (r->fd >= 0)
        return CHECK_IO_AT(err, tokmap_i_file_write(r->fd, bytes, n_bytes, at), at,
                           "%s: cannot write", r->path);
    if (at + n_bytes > m->memory) {
        const uint64_t wanted = 2 * (at + n_bytes);
        uint8_t *larger = realloc(r->bytes, (size_t)wanted);
        if (!larger)
            return FAIL_MEMORY(err);
        r->bytes = larger;
        m->memory = wanted;
    }
    memcpy(r->bytes + at, bytes, n_bytes);
    return TOKMAP_OK;
}

static tokmap_status put_chunk(maker *m, uint32_t n_pieces, uint32_t n_rows, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    const tokmap_i_packed p = {h->n_chunks, m->pieces, n_pieces, n_rows, m->fit.room};
    const size_t most = tokmap_i_chunk_most(&p);
    if (h->n_chunks == m->offset_capacity) {
        m->offset_capacity = 2 * m->offset_capacity + 64;
        uint64_t *larger = realloc(m->offsets, m->offset_capacity * sizeof *m->offsets);
        if (!larger)
            return FAIL_MEMORY(err);
        m->offsets = larger;
    }
    if (most > m->chunk_capacity) {
        free(m->chunk);
        m->chunk_capacity = 2 * most;
        m->chunk = malloc(m->chunk_capacity);
        if (!m->chunk)
            return FAIL_MEMORY(err);
    }
    const size_t n_bytes = tokmap_i_chunk_encode(&p, m->starts, m->chunk);
    if (n_bytes == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: more than 2^32 documents without a piece lie in a chunk of rows",
                    m->r->ds->index_path);
    store_le64((uint8_t *)(m->offsets + h->n_chunks++), h->n_bytes);
    const tokmap_status status = put(m, m->chunk, n_bytes, h->n_bytes, err);
    h->n_bytes += n_bytes;
    h->largest_chunk = MAX(h->largest_chunk, n_bytes);
    h->n_rows += n_rows;
    h->n_pieces += n_pieces;
    if (m->progress && m->progress->on_progress)
        m->progress->on_progress(m->progress->context, m->document, h->n_documents);
    return status;
}

/* ---- Pieces ---- */

static tokmap_status pack_chunk(maker *m, bool last, tokmap_error *err)
{
    const uint32_t limit = tokmap_i_best_fit_limit(&m->fit, m->pieces, m->n);
    uint32_t n_rows;
    const uint32_t n =
        tokmap_i_best_fit_pack(&m->fit, m->pieces, limit, last && limit == m->n, &n_rows);
    if (n == 0)
        return FAIL_MEMORY(err);
    const tokmap_status status = put_chunk(m, n, n_rows, err);
    for (uint32_t i = 0; i < n; i++)
        m->room -= m->pieces[i].size;
    m->n -= n;
    memmove(m->pieces, m->pieces + n, m->n * sizeof *m->pieces);
    return status;
}

static bool grow(maker *m)
{
    const size_t n = 2 * (size_t)m->capacity + 4096;
    tokmap_i_fit_piece *larger = realloc(m->pieces, n * sizeof *larger);
    if (!larger)
        return false;
    m->pieces = larger;
    m->capacity = (uint32_t)n;
    return true;
}

static tokmap_status add_document(maker *m, uint64_t n_tokens, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    const uint64_t n_parts = tokmap_i_rows_pieces(&h->kind, n_tokens);
    const uint64_t most_room = (uint64_t)m->fit.n_rows * m->fit.room;
    const uint64_t most_pieces = (uint64_t)m->fit.n_rows * m->fit.most_pieces;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t part = 0; part < n_parts && !status; part++) {
        const uint64_t n = MIN(n_tokens - part * h->kind.length, h->kind.length + 1ull);
        if (m->n == m->capacity && !grow(m))
            return FAIL_MEMORY(err);
        const tokmap_i_fit_piece piece = {m->document, part, tokmap_i_rows_size(&h->kind, n), 0};
        m->pieces[m->n++] = piece;
        m->room += piece.size;
        h->n_labels += n - 1;
        if (m->room > most_room || m->n > most_pieces)
            status = pack_chunk(m, false, err);
    }
    m->document++;
    return status;
}

static tokmap_status add_documents(void *context, const uint64_t *ends, uint32_t n_ends,
                                   tokmap_error *err)
{
    maker *m = context;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < n_ends && !status; i++) {
        status = add_document(m, ends[i] - m->end, err);
        m->end = ends[i];
    }
    return status;
}

/* ---- All ---- */

static tokmap_status make_chunks(maker *m, tokmap_error *err)
{
    const tokmap_dataset *ds = m->r->ds;
    /* The open file: its path may mean another one by now. */
    tokmap_i_index_reader reader = {ds, ds->index_fd, malloc(TOKMAP_I_READER_BUFFER_BYTES)};
    if (!reader.buffer)
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_index_reader_documents(&reader, add_documents, m, err);
    free(reader.buffer);
    while (!status && m->n > 0)
        status = pack_chunk(m, true, err);
    return status;
}

static tokmap_status make_rows(maker *m, const tokmap_i_rows_kind *kind, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    uint8_t bytes[TOKMAP_I_ROWS_HEADER_BYTES];
    const tokmap_i_header *of_dataset = &m->r->ds->header;
    h->kind = *kind;
    h->n_tokens = of_dataset->n_tokens;
    h->n_documents = of_dataset->n_documents;
    tokmap_i_content_hash_store(&of_dataset->documents_hash, h->documents_hash);
    h->n_bytes = TOKMAP_I_ROWS_HEADER_BYTES;
    tokmap_status status = make_chunks(m, err);
    if (!status)
        status = put(m, m->offsets, h->n_chunks * sizeof *m->offsets, h->n_bytes, err);
    h->n_bytes += h->n_chunks * sizeof *m->offsets;
    tokmap_i_rows_header_encode(h, bytes);
    return status ? status : put(m, bytes, sizeof bytes, 0, err);
}

tokmap_status tokmap_i_rows_make(tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                 const tokmap_rows_options *progress, tokmap_error *err)
{
    maker m = {.r = r,
               .progress = progress,
               .fit = {.room = tokmap_i_rows_room(kind),
                       .n_rows = tokmap_i_chunk_rows(kind->length),
                       .most_pieces = kind->most ? kind->most : UINT32_MAX}};
    if (r->ds->header.n_tokens > 0 && r->ds->header.n_documents == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its document boundaries are not known; rows of documents need them",
                    r->ds->index_path);
    r->chunk_rows = m.fit.n_rows;
    m.starts = malloc((m.fit.n_rows + 1) * sizeof *m.starts);
    const bool opened = tokmap_i_best_fit_open(&m.fit);
    const tokmap_status status = m.starts && opened ? make_rows(&m, kind, err) : FAIL_MEMORY(err);
    tokmap_i_best_fit_close(&m.fit);
    free(m.pieces);
    free(m.starts);
    free(m.chunk);
    free(m.offsets);
    return status;
}
