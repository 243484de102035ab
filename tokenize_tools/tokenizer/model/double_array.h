/* SPDX-License-Identifier: Apache-2.0 */
/* double_array.h - a trie over bytes in the layout of Darts-clone, which sentencepiece stores in
 * its models: one 32-bit unit for each node, children at `offset ^ byte`.
 *
 *     unit of a node   bits 0-7 the byte that leads to it, bit 8 it has a value, bit 9 the offset
 *                      is shifted by 8 bits, bits 10-31 the offset, to be xored with the position
 *     unit of a value  bit 31 set, the value in bits 0-30
 *
 * A state is the place where the children of a node begin; a value lies at the state itself. A key
 * cannot have NUL, but with has_nul the byte 0xFF, which no UTF-8 has, stands for it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/model/model.h"

#define DOUBLE_ARRAY_MAX_VALUE 0x7FFFFFFFu
#define SENTENCEPIECE_USER_MATCHES 64 /* its max_keys for user-defined pieces */

/* Starts as {0}, in which nothing is found, and what texts mean: */
typedef struct double_array {
    bool spaces_are_marks; /* a blank in a text stands for U+2581 */
    bool has_nul;          /* keys and texts may have NUL */
    size_t max_keys;       /* of the keys that a text begins with, only so many count; 0: all */
    uint32_t *units;       /* freed by double_array_free */
    size_t n_units;
} double_array;

typedef struct double_array_key {
    const uint8_t *bytes;
    uint32_t n_bytes; /* > 0 */
    uint32_t value;
} double_array_key;

/* Builds a trie in one that is empty. keys are sorted as by memcmp, a prefix first, without
 * duplicates. No keys make a trie that matches nothing. false: out of memory, or more nodes than
 * offsets can reach. */
bool double_array_build(double_array *a, const double_array_key *keys, size_t n_keys);
void double_array_free(double_array *a);
/* Compares keys for qsort, in the order that double_array_build needs. */
int double_array_compare(const void *a, const void *b);
/* Builds a trie of the tokens of these kinds, 1 << TOKEN_..., that are not empty: from their texts,
 * which are different, to their ids. Without such tokens, it stays empty. */
bool double_array_of_tokens(double_array *a, const model *m, unsigned kinds, failure *err);
/* Whether the keys are the same, whatever their values. */
bool double_array_same(const double_array_key *a, const double_array_key *b);

/* Checks units from a file: whether no walk can leave them, and all values are below the limit. */
bool double_array_check(const double_array *a, uint32_t value_limit);

static inline uint32_t double_array_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

static inline uint32_t double_array_root(const double_array *a)
{
    return double_array_offset(a->units[0]);
}

/* Follows the byte from *state; false: there is no such child. *has_value is about the child. */
static inline bool double_array_step(const double_array *a, uint32_t *state, uint8_t byte,
                                     bool *has_value)
{
    const uint32_t at = *state ^ byte;
    const uint32_t unit = a->units[at];
    if ((unit & 0x800000FFu) != byte)
        return false;
    *state = at ^ double_array_offset(unit);
    *has_value = unit >> 8 & 1;
    return true;
}

/* The same as double_array_step, but takes a byte of a text with spaces_are_marks. */
static inline bool double_array_follow(const double_array *a, uint32_t *state, uint8_t byte,
                                       bool *has_value)
{
    if (byte != ' ' || !a->spaces_are_marks)
        return double_array_step(a, state, byte, has_value);
    return double_array_step(a, state, 0xE2, has_value) &&
           double_array_step(a, state, 0x96, has_value) &&
           double_array_step(a, state, 0x81, has_value);
}

static inline uint32_t double_array_value(const double_array *a, uint32_t state)
{
    return a->units[state] & DOUBLE_ARRAY_MAX_VALUE;
}

/* The same as double_array_step, but also with has_nul. */
bool double_array_walk(const double_array *a, uint32_t *state, uint8_t byte, bool *has_value);
/* Returns the length of the longest key below the state that text begins with, or 0. */
size_t double_array_longest(const double_array *a, uint32_t state, const uint8_t *text,
                            size_t n_bytes, uint32_t *value);
/* Returns the value of exactly this key. Not with has_nul. */
bool double_array_find(const double_array *a, const uint8_t *key, size_t n_bytes, uint32_t *value);
