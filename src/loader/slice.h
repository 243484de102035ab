/* SPDX-License-Identifier: Apache-2.0 */
/* slice.h - cuts from a row the slice that a rank of context parallelism gets. */
#pragma once

#include "loader/fetch_options.h"
#include "loader/row_parts.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_slice {
    uint32_t rank, size; /* size 1: whole rows */
    tokmap_cp_mode mode;
    uint32_t length; /* inputs of a whole row */
} tokmap_i_slice;

/* Returns TOKMAP_ERR_ARGUMENT if rows cannot be cut like this. align: the alignment of pieces; 0
 * without best fit. */
tokmap_status tokmap_i_slice_check(const tokmap_i_slice *s, uint32_t align, tokmap_error *err);
/* Replaces the last n_pieces of the list, the pieces of row i of a batch, and its parts by their
 * slice. Rows are cut in order. ranges: where the tokens of a row of one piece are in the dataset;
 * NULL for pieces of documents. Returns false when out of memory. */
bool tokmap_i_slice_row(const tokmap_i_slice *s, tokmap_row *row, uint32_t i,
                        const tokmap_i_extent *ranges, tokmap_i_fetch_pieces *list,
                        tokmap_i_row_parts *parts);
