/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#if defined(__x86_64__)
#include "base/blend.h"
#include "base/simd.h"

__attribute__((target("avx2"))) static void blend(const uint8_t *clear, const uint8_t *set,
                                                  const uint8_t *mask, uint8_t *out)
{
    _mm256_storeu_si256((__m256i *)out, blend_bytes(_mm256_loadu_si256((const __m256i *)clear),
                                                    _mm256_loadu_si256((const __m256i *)set),
                                                    _mm256_loadu_si256((const __m256i *)mask)));
}

/* Also where char is unsigned. */
TEST(each_byte_is_chosen_by_the_highest_bit_of_its_mask)
{
    uint8_t clear[32], set[32], mask[32], out[32];
    if (!simd_works(SIMD_AVX2))
        SKIP("no AVX2");
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned i = 0; i < 32; i++) {
            clear[i] = (uint8_t)i;
            set[i] = (uint8_t)(0xFF - i);
            mask[i] = (uint8_t)(first + 37 * i);
        }
        blend(clear, set, mask, out);
        for (unsigned i = 0; i < 32; i++)
            CHECK_INT(out[i], mask[i] >= 0x80 ? set[i] : clear[i]);
    }
}

#else

TEST(each_byte_is_chosen_by_the_highest_bit_of_its_mask)
{
    SKIP("no AVX2");
}

#endif
