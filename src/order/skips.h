/* SPDX-License-Identifier: Apache-2.0 */
/* skips.h - the samples that a run leaves out: docs/ORDER.md, section 10. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The samples from `begin` to `end` - 1 are left out, and `before` samples before them. */
typedef struct tokmap_i_gap {
    uint64_t begin, end, before;
} tokmap_i_gap;

/* Ascending, with a sample between any two. */
typedef struct tokmap_i_skips {
    tokmap_i_gap *gaps;
    size_t n_gaps;
} tokmap_i_skips;

/* Adds a gap after the others, for which there must be memory. Returns false if it is empty, or
 * begins before the end of the last one. */
bool tokmap_i_skips_add(tokmap_i_skips *s, uint64_t begin, uint64_t end);
/* Returns the position of a sample: the number of samples before it that are not left out. In a
 * gap, it is the position of the gap's end. */
uint64_t tokmap_i_skips_position(const tokmap_i_skips *s, uint64_t sample);
/* Returns the sample at a position that is not left out. */
uint64_t tokmap_i_skips_sample(const tokmap_i_skips *s, uint64_t position);
/* Returns the next gap that begins after a sample, or NULL. */
const tokmap_i_gap *tokmap_i_skips_after(const tokmap_i_skips *s, uint64_t sample);
/* Returns the hash of the gaps that end after a sample; 0 if there are none. */
uint64_t tokmap_i_skips_hash(const tokmap_i_skips *s, uint64_t sample);
