/* SPDX-License-Identifier: Apache-2.0 */
/* word_positions.h - turns a bitmap of word starts into a list. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

#define WORD_POSITIONS_MAX 320 /* the most positions after a call */
#define WORD_POSITIONS_ROOM (WORD_POSITIONS_MAX + 64)

/* Appends the positions of the bits from bitmap[*word] on to positions[0 .. n), until there are 256
 * or more, or n_words of the bitmap are done; sets *word to the next one. Returns the number of
 * positions. n must be less than 256. */
typedef size_t word_positions_fn(const uint64_t *bitmap, size_t *word, size_t n_words,
                                 uint32_t *positions, size_t n);

/* Returns the function for a level, which must work on this machine. */
word_positions_fn *word_positions(simd_level level);
