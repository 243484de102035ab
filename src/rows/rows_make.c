/* SPDX-License-Identifier: Apache-2.0 */
/* rows_make.c - packs the lengths of all documents into chunks of rows. */
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "dataset/index_reader.h"
#include "dataset/store.h"
#include "rows/best_fit.h"
#include "rows/rows.h"
#include "system/platform.h"

typedef struct maker {
    tokmap_i_rows *r;
    const tokmap_rows_options *progress; /* or NULL */
    tokmap_i_best_fit fit;

    tokmap_i_fit_piece *pieces; /* pieces that are in no chunk yet */
    uint32_t n_pieces;
    size_t capacity; /* of pieces */
    uint64_t room;   /* the room that these need */

    uint64_t document, end; /* the next document, and where it begins */
    tokmap_i_view_reader views;
    uint64_t used;          /* the documents of the group that are in the view */
    uint32_t *starts;       /* for chunk_encode */
    tokmap_i_bytes out;     /* all bytes, or the bytes to be written next */
    tokmap_i_bytes offsets; /* 8 bytes each: where chunks begin */
} maker;

/* ---- Output ---- */

static tokmap_status flush(maker *m, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    const uint64_t at = h->n_bytes;
    if (m->r->file.fd < 0) {
        h->n_bytes = m->out.n_bytes;
        return TOKMAP_OK;
    }
    h->n_bytes += m->out.n_bytes;
    const int error = tokmap_i_file_write(m->r->file.fd, m->out.data, m->out.n_bytes, at);
    m->out.n_bytes = 0;
    return CHECK_IO_AT(err, error, at, "%s: cannot write", m->r->file.path);
}

static tokmap_status put(maker *m, const void *bytes, size_t n_bytes, tokmap_error *err)
{
    return tokmap_i_bytes_append(&m->out, bytes, n_bytes) ? flush(m, err) : FAIL_MEMORY(err);
}

static tokmap_status put_chunk(maker *m, const tokmap_i_packed *p, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    uint8_t *offset = tokmap_i_bytes_add(&m->offsets, 8);
    uint8_t *to = tokmap_i_bytes_add(&m->out, tokmap_i_chunk_most(p));
    if (!offset || !to)
        return FAIL_MEMORY(err);
    le_put64(offset, h->n_bytes);
    const size_t n_bytes = tokmap_i_chunk_encode(p, m->starts, to);
    if (n_bytes == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: more than 2^32 documents without a piece lie in a chunk of rows",
                    m->r->ds->index_path);
    m->out.n_bytes -= tokmap_i_chunk_most(p) - n_bytes;
    h->n_chunks++;
    h->largest_chunk = MAX(h->largest_chunk, n_bytes);
    h->n_rows += p->n_rows;
    h->n_pieces += p->n_pieces;
    if (m->progress && m->progress->on_progress &&
        m->progress->on_progress(m->progress->context, m->document, h->n_documents))
        return FAIL(err, TOKMAP_ERR_STOPPED, "stopped by on_progress");
    return flush(m, err);
}

/* ---- Pieces ---- */

static tokmap_status pack_chunk(maker *m, bool last, tokmap_error *err)
{
    const uint32_t limit = tokmap_i_best_fit_limit(&m->fit, m->pieces, m->n_pieces);
    tokmap_i_packed p = {m->r->header.n_chunks, m->pieces, 0, 0, m->fit.room};
    p.n_pieces =
        tokmap_i_best_fit_pack(&m->fit, m->pieces, limit, last && limit == m->n_pieces, &p.n_rows);
    if (p.n_pieces == 0)
        return FAIL_MEMORY(err);
    const tokmap_status status = put_chunk(m, &p, err);
    for (uint32_t i = 0; i < p.n_pieces; i++)
        m->room -= m->pieces[i].size;
    m->n_pieces -= p.n_pieces;
    memmove(m->pieces, m->pieces + p.n_pieces, m->n_pieces * sizeof *m->pieces);
    return status;
}

static tokmap_status add_document(maker *m, uint64_t n_tokens, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    const bool is_wanted = m->document >= m->r->first_document &&
                           m->document < m->r->end_document &&
                           m->used >> m->document % TOKMAP_I_GROUP_DOCUMENTS & 1;
    const uint64_t n_parts = is_wanted ? tokmap_i_rows_pieces(&h->kind, n_tokens) : 0;
    const uint64_t most_room = (uint64_t)m->fit.n_rows * m->fit.room;
    const uint64_t most_pieces = (uint64_t)m->fit.n_rows * m->fit.most_pieces;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t part = 0; part < n_parts && !status; part++) {
        const uint64_t n = MIN(n_tokens - part * h->kind.length, h->kind.length + 1ull);
        const tokmap_i_fit_piece piece = {m->document, part, tokmap_i_rows_size(&h->kind, n), 0};
        if (!array_reserve(&m->pieces, &m->capacity, m->n_pieces + 1ull, sizeof piece))
            return FAIL_MEMORY(err);
        m->pieces[m->n_pieces++] = piece;
        m->room += piece.size;
        h->n_labels += n - 1;
        if (m->room > most_room || m->n_pieces > most_pieces)
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
    m->used = UINT64_MAX;
    if (m->r->view)
        status = tokmap_i_view_group(m->r->view, &m->views, m->document / TOKMAP_I_GROUP_DOCUMENTS,
                                     &m->used, err);
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
    /* The file that is open: its path may lead to another one by now. */
    tokmap_i_index_reader reader = {
        ds, {ds->index_fd, ds->index_path}, malloc(TOKMAP_I_READER_BUFFER_BYTES)};
    if (!reader.buffer)
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_index_reader_documents(&reader, add_documents, m, err);
    free(reader.buffer);
    while (!status && m->n_pieces > 0)
        status = pack_chunk(m, true, err);
    return status;
}

static tokmap_status make_rows(maker *m, const tokmap_i_rows_kind *kind, tokmap_error *err)
{
    tokmap_i_rows_header *h = &m->r->header;
    uint8_t bytes[TOKMAP_I_SIDE_HEADER_BYTES] = {0};
    const tokmap_i_header *of_dataset = &m->r->ds->header;
    h->kind = *kind;
    h->n_tokens = of_dataset->n_tokens;
    h->n_documents = of_dataset->n_documents;
    h->set_hash = m->r->view ? m->r->view->header.set_hash : 0;
    tokmap_i_content_hash_store(&of_dataset->documents_hash, h->documents_hash);
    tokmap_status status = put(m, bytes, sizeof bytes, err);
    if (!status)
        status = make_chunks(m, err);
    if (!status)
        status = put(m, m->offsets.data, m->offsets.n_bytes, err);
    if (status)
        return status;
    tokmap_i_side_header_encode(&tokmap_i_rows_file_kind, h, bytes);
    if (m->r->file.fd >= 0)
        return CHECK_IO_AT(err, tokmap_i_file_write(m->r->file.fd, bytes, sizeof bytes, 0), 0,
                           "%s: cannot write", m->r->file.path);
    memcpy(m->out.data, bytes, sizeof bytes);
    m->r->bytes = m->out.data;
    m->out.data = NULL;
    return TOKMAP_OK;
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
    const tokmap_status read = tokmap_i_need_index(r->ds, err);
    if (read)
        return read;
    r->chunk_rows = m.fit.n_rows;
    m.starts = malloc((m.fit.n_rows + 1) * sizeof *m.starts);
    const tokmap_view *view = r->view;
    const bool opened =
        tokmap_i_best_fit_open(&m.fit) &&
        tokmap_i_view_reader_open(&m.views, view && !view->bytes ? view->header.n_bytes : 0);
    const tokmap_status status = m.starts && opened ? make_rows(&m, kind, err) : FAIL_MEMORY(err);
    tokmap_i_best_fit_close(&m.fit);
    tokmap_i_view_reader_close(&m.views);
    free(m.pieces);
    free(m.starts);
    free(m.out.data);
    free(m.offsets.data);
    return status;
}
