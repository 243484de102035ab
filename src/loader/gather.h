/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - copies rows of tokens into one buffer: at their stored width or wider, whole or as
 * inputs and labels. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap_loader.h"

typedef struct tokmap_i_gather_row {
    const void *tokens;         /* little-endian, aligned to token_bytes */
    uint32_t token_bytes;       /* 2 or 4 */
    uint32_t n_tokens;          /* 2 to n_inputs + 1; the rest of a short row is filled */
    const uint8_t *mask;        /* n_inputs bytes: labels with 0 become `ignore`; NULL: all count */
    const tokmap_piece *pieces; /* if tokens is NULL */
    size_t n_pieces;
} tokmap_i_gather_row;

typedef struct tokmap_i_gather {
    const tokmap_i_gather_row *rows;
    size_t n_rows, n_inputs;
    unsigned width; /* bytes of an output number: 2, 4 or 8, not less than in the rows */
    /* Outputs of n_rows * n_inputs each, aligned to width; either may be NULL. With `whole`, n_rows
     * * (n_inputs + 1) in inputs, and labels is NULL. */
    bool whole;
    void *inputs, *labels;
    uint32_t pad_id; /* the fill of inputs and of whole rows */
    int64_t ignore;  /* labels that do not count; truncated to the width */
} tokmap_i_gather;

/* Copies the rows with the best instructions of the machine; `_by` is for tests. Bypasses the
 * caches where that pays. */
void tokmap_i_gather_run(const tokmap_i_gather *g);

typedef enum tokmap_i_gather_level {
    TOKMAP_I_GATHER_SCALAR, /* the reference */
    TOKMAP_I_GATHER_AVX2,
    TOKMAP_I_GATHER_AVX512
} tokmap_i_gather_level;

bool tokmap_i_gather_works(tokmap_i_gather_level level);
/* The same as tokmap_i_gather_run, with these instructions. streaming: bypass the caches, for any
 * size. */
void tokmap_i_gather_run_by(const tokmap_i_gather *g, tokmap_i_gather_level level, bool streaming);
