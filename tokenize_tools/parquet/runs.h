/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - Parquet's hybrid of run lengths and bit packing: definition levels, indexes of a
 * dictionary, and booleans. */
#ifndef TOKMAP_PARQUET_RUNS_H
#define TOKMAP_PARQUET_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* width bits, at most 64, from bit number `bit` on; bits after `end` are 0. */
uint64_t parquet_bits(const uint8_t *bytes, const uint8_t *end, uint64_t bit, uint32_t width);

#endif /* TOKMAP_PARQUET_RUNS_H */
