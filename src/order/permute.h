/* SPDX-License-Identifier: Apache-2.0 */
/* permute.h - a keyed permutation of [0, N) for any N up to 2^48: docs/ORDER.md, section 2.
 *
 * A Feistel network over two digits of about sqrt(N) values each, so that hardly any result is
 * outside [0, N) and has to go through the network again. Small digits need more rounds; up to 128
 * numbers are shuffled in a table instead. Constant time and memory. Pure. */
#pragma once

#include <stdint.h>

#define TOKMAP_I_PERMUTE_MAX ((uint64_t)1 << 48)

enum {
    TOKMAP_I_PERMUTE_ROUNDS = 15, /* at most */
    TOKMAP_I_PERMUTE_TABLE = 128, /* up to this many numbers, a table is used */
    /* how many numbers permute_many finds: MANY take the least time each */
    TOKMAP_I_PERMUTE_SOME = 8,
    TOKMAP_I_PERMUTE_MANY = 32
};

typedef struct tokmap_i_permutation {
    uint64_t n;
    uint32_t a, b;
    uint64_t inverse; /* (2^64 - 1) / b, for dividing by b */
    uint32_t n_rounds;
    union {
        uint64_t keys[TOKMAP_I_PERMUTE_ROUNDS]; /* of the rounds */
        /* the results, if n is at most TOKMAP_I_PERMUTE_TABLE */
        uint8_t table[TOKMAP_I_PERMUTE_TABLE];
    };
} tokmap_i_permutation;

/* Prepares a permutation of n numbers, 1 <= n <= TOKMAP_I_PERMUTE_MAX. */
void tokmap_i_permutation_init(tokmap_i_permutation *p, uint64_t n, uint64_t key);
/* Returns number x < n of the permutation, which is below n too. */
uint64_t tokmap_i_permute(const tokmap_i_permutation *p, uint64_t x);
/* Finds numbers x to x + n - 1, all below p->n; n is SOME or MANY. That takes at most a third of
 * the time, because the rounds of one number do not wait for the rounds of another. */
void tokmap_i_permute_many(const tokmap_i_permutation *p, uint64_t x, unsigned n, uint64_t *out);
/* Returns the x whose result is y < n. */
uint64_t tokmap_i_permute_back(const tokmap_i_permutation *p, uint64_t y);
