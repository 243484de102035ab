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
/* Takes the n positions of a whole row from `from` on, which are those of the slice from `place`
 * on. Returns false to stop. */
typedef bool tokmap_i_slice_take(void *context, uint32_t from, uint32_t n, uint32_t place);
/* Takes the parts of a row that the slice has, until a call returns false; then so does this.
 * n_inputs, pieces: of the whole row. */
bool tokmap_i_slice_take_parts(const tokmap_i_slice *s, uint32_t n_inputs,
                               const tokmap_piece *pieces, size_t n_pieces,
                               tokmap_i_slice_take *take, void *context);
/* Reduces row i of a batch and its parts to their slice, whose pieces are added to a list, and
 * counted in row->n_pieces. Rows are cut in order. pieces: row->n_pieces of them, of the whole row;
 * if row->tokens is not NULL, their tokens are there. Returns false when out of memory. */
bool tokmap_i_slice_row(const tokmap_i_slice *s, tokmap_row *row, uint32_t i,
                        const tokmap_piece *pieces, tokmap_i_fetch_pieces *list,
                        tokmap_i_row_parts *parts);
