/* SPDX-License-Identifier: Apache-2.0 */
/* meta_writer.h - takes the values of documents row by row.
 *
 * Values come by document and are stored by column, so they wait in P.tmv.partial until finish. It
 * is a list of chunks; a chunk has a segment for each column, with the values of the same
 * documents. docs/FORMAT.md section 9.4. */
#pragma once

#include "base/array.h"
#include "base/hash.h"
#include "format/format_limits.h"
#include "format/journal_record.h"
#include "tokmap.h"
#include "writer/value_types.h"

typedef struct tokmap_i_meta_writer {
    const char *path; /* owned by the caller */
    int fd;           /* -1: not open */
    uint32_t n_columns;
    uint64_t head_bytes;     /* of the file: the names */
    uint64_t n_bytes;        /* written or checked so far */
    tokmap_i_hasher *hasher; /* hashes the heads, which have the checksums of the rest */
    char *names[TOKMAP_I_MAX_META_COLUMNS];
    uint64_t n_in_chunk; /* documents in the segments */
    /* segments of the chunk that is being filled */
    tokmap_i_bytes segments[TOKMAP_I_MAX_META_COLUMNS];
    uint64_t n_rows; /* documents that have ended */
    bool has_row;    /* the next document has values: */
    tokmap_value row[TOKMAP_I_MAX_META_COLUMNS];
    tokmap_i_bytes row_text;
    tokmap_i_meta_state columns[TOKMAP_I_MAX_META_COLUMNS];
} tokmap_i_meta_writer;

/* Begins with these columns. TOKMAP_ERR_ARGUMENT: a name is not valid. */
tokmap_status tokmap_i_meta_writer_open(tokmap_i_meta_writer **out, const char *path,
                                        const char *const *names, uint32_t n_columns,
                                        tokmap_error *err);
/* Reads again what the file held at a checkpoint, without changing it. TOKMAP_ERR_CORRUPT if it
 * does not match the checksum. */
tokmap_status tokmap_i_meta_writer_resume(tokmap_i_meta_writer **out, const char *path,
                                          const tokmap_i_checkpoint *c, tokmap_error *err);
/* Closes the file without removing it. Accepts NULL. */
void tokmap_i_meta_writer_close(tokmap_i_meta_writer *w);

/* Adds the values of the document that ends next, one for each column. */
tokmap_status tokmap_i_meta_writer_add(tokmap_i_meta_writer *w, const tokmap_value *values,
                                       tokmap_error *err);
/* Ends a document. */
tokmap_status tokmap_i_meta_writer_end(tokmap_i_meta_writer *w, tokmap_error *err);
/* Makes the documents that have ended durable, and fills in their part of a checkpoint. */
tokmap_status tokmap_i_meta_writer_save(tokmap_i_meta_writer *w, tokmap_i_checkpoint *now,
                                        tokmap_error *err);

/* ---- For meta_transpose.c: reading what was written ---- */

/* Writes the chunk. */
tokmap_status tokmap_i_meta_writer_flush(tokmap_i_meta_writer *w, tokmap_error *err);

typedef struct tokmap_i_meta_cursor {
    tokmap_i_meta_writer *w;
    uint32_t column;
    uint64_t chunk; /* where the next chunk begins */
    uint64_t rows_left;
    size_t at;
    tokmap_i_bytes segment;
} tokmap_i_meta_cursor;

/* Returns a cursor before the first value of a column; the caller frees segment.data. */
tokmap_i_meta_cursor tokmap_i_meta_cursor_at(tokmap_i_meta_writer *w, uint32_t column);
/* Reads the next value, valid until the next call. TOKMAP_END after the last one.
 * TOKMAP_ERR_CORRUPT: the file does not hold what was written to it. */
tokmap_status tokmap_i_meta_cursor_next(tokmap_i_meta_cursor *c, tokmap_value *out,
                                        tokmap_error *err);
