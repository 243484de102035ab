/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/pair_filter.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint64_t find_scalar(const pair_filter *f, const uint8_t *text)
{
    uint64_t places = 0;
    for (size_t i = 0; i < PAIR_FILTER_BLOCK; i++)
        places |= (uint64_t)((f->first[text[i]] & f->second[text[i + 1]]) != 0) << i;
    return places;
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i table(const uint8_t halves[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)halves));
}

AVX2 static inline __m256i groups(__m256i low, __m256i high, const uint8_t *text)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)text);
    const __m256i mask = _mm256_set1_epi8(15);
    return _mm256_and_si256(
        _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, mask)),
        _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask)));
}

AVX2 static uint64_t find_avx2(const pair_filter *f, const uint8_t *text)
{
    const __m256i low = table(f->halves[0]), high = table(f->halves[1]);
    const __m256i next_low = table(f->halves[2]), next_high = table(f->halves[3]);
    uint64_t none = 0;
    for (int i = 0; i < 2; i++) {
        const uint8_t *at = text + 32 * i;
        const __m256i both =
            _mm256_and_si256(groups(low, high, at), groups(next_low, next_high, at + 1));
        const __m256i empty = _mm256_cmpeq_epi8(both, _mm256_setzero_si256());
        none |= (uint64_t)(uint32_t)_mm256_movemask_epi8(empty) << 32 * i;
    }
    return ~none;
}

#endif

void pair_filter_init(pair_filter *f, simd_level level)
{
    memset(f, 0, sizeof *f);
    f->find = find_scalar;
#if defined(__x86_64__)
    if (level != SIMD_SCALAR && simd_works(SIMD_AVX2))
        f->find = find_avx2;
#else
    (void)level;
#endif
}

void pair_filter_add(pair_filter *f, const uint8_t *bytes, size_t n_bytes, unsigned group)
{
    const uint8_t bit = (uint8_t)(1u << group);
    f->halves[0][bytes[0] & 15] |= bit;
    f->halves[1][bytes[0] >> 4] |= bit;
    for (unsigned i = 0; n_bytes == 1 && i < 16; i++) { /* any byte may follow */
        f->halves[2][i] |= bit;
        f->halves[3][i] |= bit;
    }
    if (n_bytes > 1) {
        f->halves[2][bytes[1] & 15] |= bit;
        f->halves[3][bytes[1] >> 4] |= bit;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        f->first[byte] = f->halves[0][byte & 15] & f->halves[1][byte >> 4];
        f->second[byte] = f->halves[2][byte & 15] & f->halves[3][byte >> 4];
    }
}
