/* SPDX-License-Identifier: Apache-2.0 */
/* integers.h - the two ways in which Parquet packs integers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Run lengths and bit packing: definition levels, indexes of a dictionary, booleans ---- */

typedef struct parquet_runs {
    const uint8_t *at, *end; /* the bytes after the current run */
    uint32_t width;          /* of a value, in bits; at most 32 */
    uint64_t left;           /* values left in the current run */
    uint32_t value;          /* of each of them, if `packed` is NULL */
    const uint8_t *packed;   /* values of `width` bits, lowest bits first */
    uint64_t bit;            /* index of the next value in `packed` */
} parquet_runs;

void parquet_runs_begin(parquet_runs *r, uint32_t width, const uint8_t *bytes, size_t n_bytes);
/* Reads the next value. False: there are no more, or the next run is malformed. */
bool parquet_runs_next(parquet_runs *r, uint32_t *value);

/* ---- DELTA_BINARY_PACKED: differences of numbers, in blocks. A block has its smallest difference,
 * and miniblocks of what the others have above it, in as few bits as each miniblock needs. ---- */

typedef struct parquet_delta {
    const uint8_t *at, *end;
    uint64_t left;          /* values to come */
    uint64_t last;          /* value, to which the next difference is added */
    uint64_t least;         /* smallest difference of the block */
    uint64_t per_miniblock; /* values */
    uint64_t n_miniblocks;  /* in a block */
    uint64_t miniblock;     /* index of the current one */
    uint64_t in_miniblock;  /* values taken from it */
    const uint8_t *widths;  /* of the miniblocks of the block; NULL: no block yet */
    const uint8_t *packed;  /* the current miniblock */
} parquet_delta;

bool parquet_delta_begin(parquet_delta *d, const uint8_t *bytes, size_t n_bytes);
/* Reads the next value, modulo 2^64. False: there are no more, or the bytes are malformed. */
bool parquet_delta_next(parquet_delta *d, uint64_t *value);
/* Returns where the bytes after the last value begin; to be called before a value is read. NULL:
 * the bytes are malformed. */
const uint8_t *parquet_delta_end(const parquet_delta *d);
