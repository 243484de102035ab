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

/* Adds a gap behind the others, for which there must be memory. false: it is empty, or begins
 * before the end of the last one. */
bool tokmap_i_skips_add(tokmap_i_skips *s, uint64_t begin, uint64_t end);
/* The position of a sample is the number of samples before it that are not left out; in a gap, that
 * of the gap's end. */
uint64_t tokmap_i_skips_position(const tokmap_i_skips *s, uint64_t sample);
/* The sample with that position that is not left out. */
uint64_t tokmap_i_skips_sample(const tokmap_i_skips *s, uint64_t position);
/* The next gap that begins after a sample, or NULL. */
const tokmap_i_gap *tokmap_i_skips_after(const tokmap_i_skips *s, uint64_t sample);
/* Of the gaps that end after a sample; 0: there are none. */
uint64_t tokmap_i_skips_hash(const tokmap_i_skips *s, uint64_t sample);
