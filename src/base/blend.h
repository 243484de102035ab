/* SPDX-License-Identifier: Apache-2.0 */
/* blend.h - chooses between the bytes of two vectors of AVX2, for files that compile such code. */
#pragma once

#include <immintrin.h>

/* Returns the bytes of `set` where the highest bit of the mask's byte is 1, and those of `clear`
 * elsewhere. Not by _mm256_blendv_epi8: gcc 12 compares the mask with 0 as chars, and with
 * -funsigned-char drops the blend. */
static inline __attribute__((always_inline, target("avx2"))) __m256i
blend_bytes(__m256i clear, __m256i set, __m256i mask)
{
    __m256i chosen;
    __asm__("vpblendvb %3, %2, %1, %0" : "=x"(chosen) : "x"(clear), "x"(set), "x"(mask));
    return chosen;
}
