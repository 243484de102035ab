/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - the rows of a dataset that hold several documents: docs/ORDER.md, section 11.
 *
 * Either from a rows file, or made in memory; both have the same bytes. A row is found in constant
 * time: the chunk, its documents, and where those are. */
#pragma once

#include "dataset/index_cache.h"
#include "rows/rows_file.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_rows {
    const tokmap_dataset *ds;
    tokmap_i_rows_header header;
    uint32_t chunk_rows;
    uint64_t first_document, end_document; /* rows are made of these */
    uint64_t end_token;                    /* of them, in memory */
    int fd;                                /* -1: in memory */
    char *path;                            /* of the file, or NULL */
    uint8_t *bytes;                        /* in memory, or NULL */
    uint8_t *checked; /* of a file: a bit for each chunk that has been checked; readers set them */
} tokmap_i_rows;

/* TOKMAP_ERR_ARGUMENT: there are no such rows. */
tokmap_status tokmap_i_rows_check(const tokmap_i_rows_kind *kind, tokmap_error *err);
/* Opens the rows file at `path`; NULL: the one beside the dataset. *exists: there is one.
 * TOKMAP_ERR_MISMATCH: it is of other documents, or of rows of another kind. */
tokmap_status tokmap_i_rows_open(tokmap_i_rows *r, const tokmap_dataset *ds,
                                 const tokmap_i_rows_kind *kind, const char *path, bool *exists,
                                 tokmap_error *err);
/* Makes the rows in memory, or in an open file whose name is in r->path. The caller has set ds, fd
 * and which documents. progress: whom to tell, or NULL. TOKMAP_ERR_MISMATCH: the document
 * boundaries are not known. */
tokmap_status tokmap_i_rows_make(tokmap_i_rows *r, const tokmap_i_rows_kind *kind,
                                 const tokmap_rows_options *progress, tokmap_error *err);
/* Also of rows that are all 0. */
void tokmap_i_rows_close(tokmap_i_rows *r);
/* The name of the rows file beside a dataset; the caller frees it. NULL: no memory. */
char *tokmap_i_rows_path(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind);

enum {
    TOKMAP_I_ROWS_COMMAND_BYTES = 128
};

/* The command that makes rows of this kind, for messages. */
void tokmap_i_rows_command(const tokmap_i_rows_kind *kind, char *text);

/* ---- Lookups ---- */

/* Of one thread: what it has read of rows files, and documents. */
typedef struct tokmap_i_rows_reader {
    tokmap_i_index_cache *index; /* of the caller; NULL: documents are looked up in the map */
    tokmap_i_index_cache *files; /* NULL: all rows are in memory */
    uint64_t place;              /* for the caller: where the last row is in its epoch */
    tokmap_piece *pieces;        /* of the last row */
    uint32_t n_pieces;
    size_t capacity;
} tokmap_i_rows_reader;

/* n_bytes: of all files, 0 if there are none. false: no memory. */
bool tokmap_i_rows_reader_open(tokmap_i_rows_reader *reader, uint64_t n_bytes);
void tokmap_i_rows_reader_close(tokmap_i_rows_reader *reader);
/* What it has had since it was opened; reader may be NULL. Any thread may ask. */
uint64_t tokmap_i_rows_reader_bytes(const tokmap_i_rows_reader *reader);

/* number < n_chunks. The chunk is valid until the next file of this reader. */
tokmap_status tokmap_i_rows_chunk(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                  uint64_t number, tokmap_i_chunk *out, tokmap_error *err);
/* Sets the pieces of the reader to those of a row; row < n_rows. */
tokmap_status tokmap_i_rows_get(const tokmap_i_rows *r, tokmap_i_rows_reader *reader, uint64_t row,
                                tokmap_error *err);
/* The tokens from the first piece of a chunk to that of the next one, or to the end. */
tokmap_status tokmap_i_rows_extent(const tokmap_i_rows *r, tokmap_i_rows_reader *reader,
                                   uint64_t number, uint64_t *begin, uint64_t *end,
                                   tokmap_error *err);
/* Tokens of a row up to its last label, with padding between pieces. */
uint32_t tokmap_i_rows_tokens(const tokmap_i_rows_kind *kind, const tokmap_piece *last);
