/* SPDX-License-Identifier: Apache-2.0 */
/* order_key.h - the keys of everything that is random in the order of samples: docs/ORDER.md,
 * section 1. Pure. */
#pragma once

#include <stdint.h>

#define TOKMAP_I_GOLDEN 0x9E3779B97F4A7C15u
#define TOKMAP_I_MIX_1 0xBF58476D1CE4E5B9u
#define TOKMAP_I_MIX_2 0x94D049BB133111EBu
#define TOKMAP_I_HASH_START 0x31646572726F6D74u

/* The purpose of a key. */
enum {
    TOKMAP_I_KEY_FULL = 1,
    TOKMAP_I_KEY_BLOCKS = 2,
    TOKMAP_I_KEY_GROUP = 3,
    TOKMAP_I_KEY_ROTATION = 4,
    TOKMAP_I_KEY_OFFSET = 5
};

static inline uint64_t tokmap_i_mix(uint64_t z)
{
    z = (z ^ z >> 30) * TOKMAP_I_MIX_1;
    z = (z ^ z >> 27) * TOKMAP_I_MIX_2;
    return z ^ z >> 31;
}

/* Adds a number to a hash: hash(v0, v1, ...) is add(add(TOKMAP_I_HASH_START, v0), v1) ... */
static inline uint64_t tokmap_i_hash_add(uint64_t h, uint64_t v)
{
    return tokmap_i_mix(h ^ v) + TOKMAP_I_GOLDEN;
}

/* Turns a 64-bit random number into one below n: the upper half of the product. */
static inline uint64_t tokmap_i_scale(uint64_t random, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)random * n >> 64);
}

/* The data to which an order belongs. */
typedef struct tokmap_i_order_id {
    uint64_t seed, source_id, copy;
} tokmap_i_order_id;

static inline uint64_t tokmap_i_order_key(const tokmap_i_order_id *id, uint64_t purpose,
                                          uint64_t epoch, uint64_t n)
{
    uint64_t h = tokmap_i_hash_add(TOKMAP_I_HASH_START, purpose);
    h = tokmap_i_hash_add(h, id->seed);
    h = tokmap_i_hash_add(h, id->source_id);
    h = tokmap_i_hash_add(h, id->copy);
    h = tokmap_i_hash_add(h, epoch);
    return tokmap_i_hash_add(h, n);
}
