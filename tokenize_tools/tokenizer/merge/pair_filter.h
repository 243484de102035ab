/* SPDX-License-Identifier: Apache-2.0 */
/* pair_filter.h - finds where in a text one of some strings may begin, by its first two bytes, 64
 * places at once. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

#define PAIR_FILTER_BLOCK 64
#define PAIR_FILTER_GROUPS 8

typedef struct pair_filter pair_filter;
typedef uint64_t pair_filter_fn(const pair_filter *f, const uint8_t *text);

/* The strings are in groups, one bit each. A place remains if the halves of its two bytes are all
 * found in one group. The tables are indexed by half bytes: first byte low and high, second byte
 * low and high. */
struct pair_filter {
    uint8_t halves[4][16];
    uint8_t first[256], second[256]; /* the same by whole bytes, for the scalar code */
    pair_filter_fn *find;
};

void pair_filter_init(pair_filter *f, simd_level level);
/* Adds a string. group < PAIR_FILTER_GROUPS; fewer places remain if the strings of a group are
 * similar. n_bytes must not be 0. */
void pair_filter_add(pair_filter *f, const uint8_t *bytes, size_t n_bytes, unsigned group);

/* Returns bits; bit i: a string may begin at text[i]. Reads text[0] to text[PAIR_FILTER_BLOCK]. */
static inline uint64_t pair_filter_find(const pair_filter *f, const uint8_t *text)
{
    return f->find(f, text);
}
