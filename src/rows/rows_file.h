/* SPDX-License-Identifier: Apache-2.0 */
/* rows_file.h - the bytes of a rows file: docs/FORMAT.md, section 13.
 *
 *     header | chunk, chunk, ... | where each chunk begins
 *
 * A chunk lists the documents in its rows. It has its own checksum, because a file can be too
 * large to be read at open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataset/index_cache.h"
#include "format/side_header.h"
#include "rows/best_fit.h"

enum {
    TOKMAP_I_CHUNK_HEADER_BYTES = 48
};

extern const tokmap_i_side_kind tokmap_i_rows_file_kind; /* its header: tokmap_i_rows_header */

/* How documents become rows. */
typedef struct tokmap_i_rows_kind {
    uint32_t length; /* inputs of a row */
    uint32_t align;  /* at least 1 */
    uint32_t most;   /* pieces in a row; 0: any number */
    uint32_t whole;  /* tokmap_whole_documents */
} tokmap_i_rows_kind;

/* Returns the rows of a whole chunk. */
uint32_t tokmap_i_chunk_rows(uint32_t length);
/* Return the room of a row, and the part of it that a piece of n_tokens takes, in units of `align`
 * tokens. */
uint32_t tokmap_i_rows_room(const tokmap_i_rows_kind *kind);
uint32_t tokmap_i_rows_size(const tokmap_i_rows_kind *kind, uint64_t n_tokens);
/* Returns the number of pieces of a document. */
uint64_t tokmap_i_rows_pieces(const tokmap_i_rows_kind *kind, uint64_t n_tokens);

typedef struct tokmap_i_rows_header {
    tokmap_i_rows_kind kind;
    uint64_t n_tokens, n_documents; /* of the dataset */
    uint8_t documents_hash[16];     /* of the dataset */
    uint64_t n_rows, n_labels, n_pieces, n_chunks;
    uint64_t largest_chunk; /* bytes */
    uint64_t n_bytes;       /* of the file */
    uint64_t set_hash;      /* of the view whose documents were packed; 0: all documents */
} tokmap_i_rows_header;

/* A chunk, whose numbers are `number_bytes` wide. The rows of pieces that fill one come first: for
 * each, the document. Then for each other row, where its pieces begin, and the documents of these
 * pieces. All documents are counted from first_document. */
typedef struct tokmap_i_chunk {
    const uint8_t *numbers; /* NULL: they are in the file from offset `at` on */
    tokmap_i_pieces *file;  /* after a failed read of the file, numbers are 0 */
    uint64_t at;
    uint64_t number; /* the number of the chunk */
    uint64_t first_document, first_part;
    /* rows of one piece, rows of several, and the pieces of the latter */
    uint32_t n_alone, n_shared, n_pieces;
    uint32_t number_bytes;
} tokmap_i_chunk;

/* A chunk that is to be encoded. */
typedef struct tokmap_i_packed {
    uint64_t number;
    const tokmap_i_fit_piece *pieces;
    uint32_t n_pieces, n_rows, room;
} tokmap_i_packed;

size_t tokmap_i_chunk_bytes(const tokmap_i_chunk *c);
/* Makes a view of a chunk that was checked. */
void tokmap_i_chunk_view(tokmap_i_chunk *c, const uint8_t *bytes);
/* Checks a chunk, then makes a view of it. n_bytes is at least the header. Returns what is wrong;
 * NULL: nothing. */
const char *tokmap_i_chunk_check(tokmap_i_chunk *c, const uint8_t *bytes, size_t n_bytes);
/* Encodes a chunk into memory with room for tokmap_i_chunk_most(p) bytes. Returns the number of
 * bytes; 0: the documents are more than 2^32 apart. Uses `starts`, with room for n_rows + 1
 * numbers. */
size_t tokmap_i_chunk_most(const tokmap_i_packed *p);
size_t tokmap_i_chunk_encode(const tokmap_i_packed *p, uint32_t *starts, uint8_t *bytes);

/* Returns a number of the three lists, which follow one another. */
uint32_t tokmap_i_chunk_number(const tokmap_i_chunk *c, uint64_t i);
/* Returns the first row of a single piece whose document is not before this one. */
uint32_t tokmap_i_chunk_first(const tokmap_i_chunk *c, uint32_t document);
