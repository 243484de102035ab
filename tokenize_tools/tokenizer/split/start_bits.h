/* SPDX-License-Identifier: Apache-2.0 */
/* start_bits.h - a bitmap of where words start: bit i % 64 of starts[i / 64] is byte i. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline void split_set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

/* Clears the bit, and returns i. */
static inline size_t split_clear_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << i % 64);
    return i;
}

/* Returns the first start from `at` on, or `end` if there is none before it. */
size_t split_next_start(const uint64_t *starts, size_t at, size_t end);
/* Clears the last start among the first n_bytes > 0, and returns it; 0: only byte 0 is one. */
size_t split_take_last_start(uint64_t *starts, size_t n_bytes);
