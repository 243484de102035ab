/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_vector.h - compiles a walk over blocks for each vector engine. */
#pragma once

#include "tokenizer/split/splitter_algebra.h"

#if defined(__x86_64__)

#include "tokenizer/split/splitter_avx2.h"
#include "tokenizer/split/splitter_avx512.h"

#define SPLIT_WALKER(target, engine, x, wanted, first)                                             \
    target static size_t x##_##engine(const splitter *s, unsigned stage, const uint8_t *text,      \
                                      size_t n_bytes, size_t stop, uint64_t *starts)               \
    {                                                                                              \
        text_reader r = {.text = text, .n_bytes = n_bytes};                                        \
        return walk_blocks(s, stage, &r, stop, starts, wanted, first, classify_##engine,           \
                           x##_words);                                                             \
    }
/* Defines x_walkers. x_words is the algebra; `wanted`, what it needs of a block, and `first`,
 * whether no stage comes before, are faster if they are constant. */
#define SPLIT_WALKERS(x, wanted, first)                                                            \
    SPLIT_WALKER(TARGET_AVX2, avx2, x, wanted, first)                                              \
    SPLIT_WALKER(TARGET_AVX512, avx512, x, wanted, first)                                          \
    const split_walkers x##_walkers = {x##_avx2, x##_avx512};

#else

#define SPLIT_WALKERS(x, wanted, first) const split_walkers x##_walkers = {NULL, NULL};

#endif
