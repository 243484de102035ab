/* SPDX-License-Identifier: Apache-2.0 */
/* best_fit.h - packs pieces of documents into the rows of a chunk: docs/ORDER.md, section 11.
 *
 * Best fit decreasing: the largest pieces first, each into the row with the least room that is
 * enough. Rows that have the same room are a stack, and a bitmap marks the stacks that are not
 * empty, so a piece costs a few instructions. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tokmap_i_fit_piece {
    uint64_t document, part; /* identify the piece */
    uint32_t size;           /* 1 to the room of a row */
    uint32_t row;            /* set by tokmap_i_best_fit_pack */
} tokmap_i_fit_piece;

typedef struct tokmap_i_best_fit {
    uint32_t room;        /* of a row, in units: 1 to 2^24 + 1 */
    uint32_t n_rows;      /* of a chunk */
    uint32_t most_pieces; /* of a row */

    /* stacks of rows by their room, and the number of pieces in each row */
    uint32_t *tops, *below, *n_pieces;
    /* a bit for each stack that is not empty, and for each word of bits that is not 0 */
    uint64_t *filled, *filled_words;
    uint32_t *places; /* for each size, where its pieces begin in sorted */
    uint32_t *sorted; /* pieces, by size and number */
    size_t capacity;  /* entries of sorted */
} tokmap_i_best_fit;

/* Allocates the memory; the caller has set the first three fields. Returns false when out of
 * memory. */
bool tokmap_i_best_fit_open(tokmap_i_best_fit *b);
void tokmap_i_best_fit_close(tokmap_i_best_fit *b);

/* Returns how many of the first n pieces may be in a chunk: as many as have room in its rows by
 * their sum. If that is less than n, the pieces after them are not needed. */
uint32_t tokmap_i_best_fit_limit(const tokmap_i_best_fit *b, const tokmap_i_fit_piece *pieces,
                                 uint32_t n);
/* Packs a chunk from n pieces, which are all that its limit allows. `last`: no other pieces follow.
 * Sets the row of each piece of the chunk, and the number of rows. Returns how many pieces the
 * chunk has; 0: out of memory. The rows of pieces that fill one come first. */
uint32_t tokmap_i_best_fit_pack(tokmap_i_best_fit *b, tokmap_i_fit_piece *pieces, uint32_t n,
                                bool last, uint32_t *n_rows);
