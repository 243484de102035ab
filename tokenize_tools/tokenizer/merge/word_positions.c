/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/word_positions.h"

#define ENOUGH 256

/* Writes eight positions at a time, often more than there are, so that few branches depend on the
 * text. */
static inline __attribute__((always_inline)) size_t
by_bits(const uint64_t *bitmap, size_t *word, size_t n_words, uint32_t *positions, size_t n)
{
    size_t at = *word;
    for (; at < n_words && n < ENOUGH; at++) {
        uint64_t bits = bitmap[at];
        const uint32_t base = (uint32_t)(at * 64);
        const size_t end = n + (size_t)__builtin_popcountll(bits);
        while (n < end) {
            for (size_t i = 0; i < 8; i++) {
                positions[n + i] = base + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
                bits &= bits - 1;
            }
            n += 8;
        }
        n = end;
    }
    *word = at;
    return n;
}

static size_t positions_scalar(const uint64_t *bitmap, size_t *word, size_t n_words,
                               uint32_t *positions, size_t n)
{
    return by_bits(bitmap, word, n_words, positions, n);
}

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")))

TARGET_AVX2 static size_t positions_avx2(const uint64_t *bitmap, size_t *word, size_t n_words,
                                         uint32_t *positions, size_t n)
{
    return by_bits(bitmap, word, n_words, positions, n);
}

/* Selects the numbers 0 to 63 whose bit is set: mostly 16 or fewer, as a word has about 5 bytes. */
TARGET_AVX512 static size_t positions_avx512(const uint64_t *bitmap, size_t *word, size_t n_words,
                                             uint32_t *positions, size_t n)
{
    static const uint8_t numbers[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i all = _mm512_loadu_si512(numbers);
    size_t at = *word;
    for (; at < n_words && n < ENOUGH; at++) {
        const uint64_t bits = bitmap[at];
        const size_t end = n + (size_t)_mm_popcnt_u64(bits);
        const __m512i base = _mm512_set1_epi32((int)(at * 64));
        __m512i picked = _mm512_maskz_compress_epi8(bits, all);
        for (; n < end; n += 16) {
            const __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(picked));
            _mm512_storeu_si512(positions + n, _mm512_add_epi32(base, wide));
            picked = _mm512_alignr_epi32(picked, picked, 4);
        }
        n = end;
    }
    *word = at;
    return n;
}

#endif

word_positions_fn *word_positions(simd_level level)
{
#if defined(__x86_64__)
    if (level == SIMD_BEST)
        level = simd_best();
    if (level == SIMD_AVX512)
        return positions_avx512;
    if (level == SIMD_AVX2)
        return positions_avx2;
#endif
    (void)level;
    return positions_scalar;
}
