/* SPDX-License-Identifier: Apache-2.0 */
/* splitter_vector.h - compiles a walk over blocks for each engine. */
#pragma once

#include "tokenizer/split/splitter_algebra.h"
#include "tokenizer/split/splitter_plain.h"

#define SPLIT_SCANNER(target, engine, x, wanted, first)                                            \
    target static size_t x##_##engine(const splitter *s, unsigned stage, const uint8_t *text,      \
                                      size_t n_bytes, size_t stop, uint64_t *starts)               \
    {                                                                                              \
        block_reader r = {.text = text, .n_bytes = n_bytes};                                       \
        return scan_blocks(s, stage, &r, stop, starts, wanted, first, classify_##engine,           \
                           x##_words);                                                             \
    }
/* Defines x_scanners. x_words is the algebra; `wanted`, what it needs of a block, and `first`,
 * whether no stage comes before, are faster if they are constant. */
#if defined(__x86_64__)

#include "tokenizer/split/splitter_avx2.h"
#include "tokenizer/split/splitter_avx512.h"

#define SPLIT_SCANNERS(x, wanted, first)                                                           \
    SPLIT_SCANNER(, blocks, x, wanted, first)                                                      \
    SPLIT_SCANNER(TARGET_AVX2, avx2, x, wanted, first)                                             \
    SPLIT_SCANNER(TARGET_AVX512, avx512, x, wanted, first)                                         \
    const split_scanners x##_scanners = {                                                          \
        {[SIMD_AVX2] = x##_avx2, [SIMD_AVX512] = x##_avx512, [SIMD_BLOCKS] = x##_blocks}};

#else

#define SPLIT_SCANNERS(x, wanted, first)                                                           \
    SPLIT_SCANNER(, blocks, x, wanted, first)                                                      \
    const split_scanners x##_scanners = {{[SIMD_BLOCKS] = x##_blocks}};

#endif
