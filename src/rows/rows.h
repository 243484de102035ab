/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - the rows of a dataset that hold several documents: docs/ORDER.md, section 11.
 *
 * They come from a rows file, or are made in memory; both have the same bytes. A row is found in
 * constant time: the chunk, its documents, and where those are. */
#pragma once

#include "dataset/index_cache.h"
#include "dataset/side_file.h"
#include "rows/rows_file.h"
#include "tokmap_loader.h"
#include "views/view.h"

typedef struct tokmap_i_rows {
    const tokmap_dataset *ds;
    tokmap_i_rows_header header;
    uint32_t chunk_rows;
    uint64_t first_document, end_document; /* rows are made of these documents */
    const tokmap_view *view;               /* only documents of this view; NULL: all */
    uint64_t end_token; /* of the last document; set only if rows are in memory */
    tokmap_i_side file; /* fd -1: in memory */
    uint8_t *bytes;     /* the rows in memory, or NULL */
} tokmap_i_rows;

/* Returns TOKMAP_ERR_ARGUMENT if such rows cannot exist. */
tokmap_status tokmap_i_rows_check(const tokmap_i_rows_kind *kind, tokmap_error *err);
/* Opens the rows file at `path`; NULL: the file beside the dataset. The caller has set ds and view,
 * and file.fd to -1. *exists: there is such a file. TOKMAP_ERR_MISMATCH: it was made from other
 * documents, or has rows of another kind. */
tokmap_status tokmap_i_rows_open(tokmap_i_rows *r, const tokmap_i_rows_kind *kind, const char *path,
                                 bool *exists, tokmap_error *err);
/* Makes the rows in memory, or in r->file, which is open. The caller has set ds, view, file.fd
 * and the documents. progress: receives the progress, or NULL. TOKMAP_ERR_MISMATCH: the
 * document boundaries are not known. */
tokmap_status tokmap_i_rows_make(tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                 const tokmap_rows_options *progress, tokmap_error *err);
/* Closes the rows, which may be all 0. */
void tokmap_i_rows_close(tokmap_i_rows *r);
/* Returns the name of the rows file beside a dataset; the caller frees it. view: NULL for all
 * documents. NULL: out of memory. */
char *tokmap_i_rows_path(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind,
                         const tokmap_view *view);

enum {
    TOKMAP_I_ROWS_COMMAND_BYTES = 160
};

/* Writes the command that makes rows of this kind, for messages. of_view: of the documents of a
 * view. */
void tokmap_i_rows_command(const tokmap_i_rows_kind *kind, bool of_view, char *text);

/* ---- Lookups ---- */

/* What one thread has cached of rows files and the index. */
typedef struct tokmap_i_rows_reader {
    tokmap_i_index_cache *index; /* of the caller; NULL: documents are looked up in the map */
    tokmap_i_index_cache *files; /* NULL: all rows are in memory */
    tokmap_piece *pieces;        /* the pieces of the last row */
    uint32_t n_pieces;
    size_t capacity;
} tokmap_i_rows_reader;

/* Opens a reader. n_bytes: size of all files, 0 if there are none. Returns false when out of
 * memory. */
bool tokmap_i_rows_reader_open(tokmap_i_rows_reader *reader, uint64_t n_bytes);
void tokmap_i_rows_reader_close(tokmap_i_rows_reader *reader);
/* Returns the memory that the reader has allocated; reader may be NULL. Any thread may call it. */
uint64_t tokmap_i_rows_reader_bytes(const tokmap_i_rows_reader *reader);

/* Returns chunk number < n_chunks, valid until the reader uses another file. */
tokmap_status tokmap_i_rows_chunk(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                  uint64_t number, tokmap_i_chunk *out, tokmap_error *err);
/* Sets the pieces of the reader to the pieces of a row; row < n_rows. */
tokmap_status tokmap_i_rows_get(const tokmap_i_rows *r, tokmap_i_rows_reader *reader, uint64_t row,
                                tokmap_error *err);
/* Finds the tokens from the first piece of a chunk to the first piece of the next one, or to the
 * end. */
tokmap_status tokmap_i_rows_extent(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                   uint64_t number, uint64_t *begin, uint64_t *end,
                                   tokmap_error *err);
/* Returns the tokens of a row up to its last label, with padding between pieces. */
uint32_t tokmap_i_rows_tokens(const tokmap_i_rows_kind *kind, const tokmap_piece *last);
