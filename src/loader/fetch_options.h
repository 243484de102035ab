/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_options.h - which rows a fetch reads ahead, and how. */
#pragma once

#include "dataset/token_files.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_fetch_row {
    tokmap_sample at; /* its pieces are in the list of the step; none: there is nothing to read */
    uint32_t dataset; /* index in the list of the options */
    /* set by the fetch: the tokens of all pieces in the order of the row. With POPULATE, NULL for
     * several pieces, and for a piece that is not in the map of one file */
    const void *tokens;
    bool is_mapped; /* its tokens are already in the map */
} tokmap_i_fetch_row;

/* The pieces of the rows of a step. */
typedef struct tokmap_i_fetch_pieces {
    tokmap_piece *list;
    size_t n, capacity;
} tokmap_i_fetch_pieces;

/* Adds n pieces. Returns false when out of memory. */
bool tokmap_i_fetch_add_pieces(tokmap_i_fetch_pieces *to, const tokmap_piece *pieces, size_t n);

/* Fills in the n_rows rows of a step, from this position on (order/skips.h), and adds their pieces.
 * Called only in the thread of the fetch, and again for a step that is tried again. A row is inside
 * its dataset, and has 1 to max_tokens tokens, or no piece. The first one has a piece.
 * TOKMAP_END: this step and later ones do not exist. */
typedef tokmap_status tokmap_i_fetch_plan(void *context, uint64_t position, uint32_t n_rows,
                                          tokmap_i_fetch_row *rows, tokmap_i_fetch_pieces *pieces,
                                          tokmap_error *err);

typedef struct tokmap_i_fetch_options {
    tokmap_io io; /* POPULATE, DIRECT, READ or STORE */
    tokmap_dataset *const *datasets;
    uint32_t n_datasets;
    /* Rows and datasets are in so many groups of equal size: rows of a group are of its datasets,
     * and have places of their own width. 0 means 1. */
    uint32_t n_groups;
    uint32_t n_steps;    /* read ahead: 1 to 1024 */
    uint32_t most_steps; /* the most that adapt may use; 0: it may not change it */
    uint32_t max_rows;   /* of a step; at most 2^26 in n_steps + 1 steps */
    uint32_t max_tokens; /* of a row */
    /* STORE: the steps that are read ahead at first; 0: always n_steps */
    uint32_t first_steps;
    bool verifies;    /* STORE: compares blocks with their checksums */
    bool drop_behind; /* POPULATE, READ: used rows are dropped from the page cache */
    tokmap_i_fetch_plan *plan;
    /* NULL, or called in the same thread before a step is planned, with its first position. It
     * reads larger pieces than rows, so POPULATE does not request rows one by one. */
    void (*ahead)(void *context, uint64_t position);
    void *context;
} tokmap_i_fetch_options;
