/* SPDX-License-Identifier: Apache-2.0 */
/* integers.h - the two ways in which Parquet packs integers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Run lengths and bit packing: definition levels, indexes of a dictionary, booleans ---- */

typedef struct parquet_runs {
    const uint8_t *at, *end; /* of what follows the current run */
    uint32_t width;          /* bits of a value, at most 32 */
    uint64_t left;           /* values of the current run */
    uint32_t value;          /* which all of them are, unless: */
    const uint8_t *packed;   /* they are here, width bits each, lowest bits first */
    uint64_t bit;            /* of the next one */
} parquet_runs;

void parquet_runs_begin(parquet_runs *r, uint32_t width, const uint8_t *bytes, size_t n_bytes);
/* false: there are no more values, or the run that should follow is malformed. */
bool parquet_runs_next(parquet_runs *r, uint32_t *value);

/* ---- DELTA_BINARY_PACKED: numbers as differences, in blocks that have a smallest difference and
 * miniblocks with as many bits for each as they need ---- */

typedef struct parquet_delta {
    const uint8_t *at, *end;
    uint64_t left;          /* values to come */
    uint64_t last;          /* the next value is this plus a difference */
    uint64_t least;         /* difference of the block */
    uint64_t per_miniblock; /* values */
    uint64_t n_miniblocks;  /* of a block */
    uint64_t miniblock;     /* the current one */
    uint64_t in_miniblock;  /* values taken from it */
    const uint8_t *widths;  /* of the miniblocks of the block; NULL: no block yet */
    const uint8_t *packed;  /* the current miniblock */
} parquet_delta;

bool parquet_delta_begin(parquet_delta *d, const uint8_t *bytes, size_t n_bytes);
/* The next value, modulo 2^64; false: there is none, or the bytes are malformed. */
bool parquet_delta_next(parquet_delta *d, uint64_t *value);
/* Where the bytes after the last value begin, before a value was read. NULL: malformed. */
const uint8_t *parquet_delta_end(const parquet_delta *d);
