/* SPDX-License-Identifier: Apache-2.0 */
/* meta_spool.h - P.tmv.partial: values of documents on their way into the index.
 *
 * Values come by document and are stored by column, so they wait in this file until finish. It is a
 * list of chunks; a chunk has a segment for each column, with the values of the same documents.
 * docs/FORMAT.md section 9.4. */
#ifndef TOKMAP_META_SPOOL_H
#define TOKMAP_META_SPOOL_H

#include "base/bytes.h"
#include "base/hash.h"
#include "format/format_limits.h"
#include "tokmap.h"

typedef struct tokmap_i_meta_spool {
    char *path;
    int fd; /* -1: not open */
    uint32_t n_columns;
    uint64_t head_bytes;     /* of the file: the names */
    uint64_t n_bytes;        /* written or checked so far */
    tokmap_i_hasher *hasher; /* of the heads, which have the checksums of the rest */
    char *names[TOKMAP_I_MAX_META_COLUMNS];
    uint64_t n_rows;                                    /* in the segments */
    tokmap_i_bytes segments[TOKMAP_I_MAX_META_COLUMNS]; /* of the chunk that is being filled */
} tokmap_i_meta_spool;

/* For close. */
#define TOKMAP_I_NO_META_SPOOL ((tokmap_i_meta_spool){.fd = -1})

/* Creates the file. The names are valid. */
tokmap_status tokmap_i_meta_spool_create(tokmap_i_meta_spool *s, const char *path,
                                         const char *const *names, uint32_t n_columns,
                                         tokmap_error *err);
/* Opens a file of at least n_bytes, to continue it there, and reads the names. */
tokmap_status tokmap_i_meta_spool_open(tokmap_i_meta_spool *s, const char *path, uint64_t n_bytes,
                                       tokmap_error *err);
void tokmap_i_meta_spool_close(tokmap_i_meta_spool *s);

/* Adds a value of a column to the chunk. False when out of memory. */
bool tokmap_i_meta_spool_add(tokmap_i_meta_spool *s, uint32_t column, const tokmap_value *value);
/* Every column has a value more. Writes the chunk if it is large enough. */
tokmap_status tokmap_i_meta_spool_end_row(tokmap_i_meta_spool *s, tokmap_error *err);
/* Writes the chunk. */
tokmap_status tokmap_i_meta_spool_flush(tokmap_i_meta_spool *s, tokmap_error *err);

/* ---- Reading what was written ---- */

typedef struct tokmap_i_meta_cursor {
    tokmap_i_meta_spool *spool;
    uint32_t column;
    uint64_t chunk; /* where the next chunk begins */
    uint64_t rows_left;
    size_t at;
    tokmap_i_bytes segment;
} tokmap_i_meta_cursor;

/* Before the first value of a column; the caller frees segment.data. */
tokmap_i_meta_cursor tokmap_i_meta_cursor_at(tokmap_i_meta_spool *s, uint32_t column);
/* The next value, valid until the next call. TOKMAP_END after the last one. TOKMAP_ERR_CORRUPT: the
 * file does not hold what was written to it. */
tokmap_status tokmap_i_meta_cursor_next(tokmap_i_meta_cursor *c, tokmap_value *out,
                                        tokmap_error *err);
/* After the last value of a column: adds all heads to the hasher. */
tokmap_status tokmap_i_meta_spool_hash(tokmap_i_meta_spool *s, tokmap_error *err);

#endif /* TOKMAP_META_SPOOL_H */
