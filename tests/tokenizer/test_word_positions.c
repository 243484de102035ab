/* SPDX-License-Identifier: Apache-2.0 */
/* test_word_positions.c - all ways to list the bits of a bitmap give the same list. */

#include "support/check.h"
#include "tokenizer/merge/word_positions.h"

#define N_WORDS 400

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ *state >> 29;
    return x * 0xBF58476D1CE4E5B9u ^ x >> 32;
}

/* From no bits at all to all of them. */
static void fill(uint64_t *bitmap, uint64_t *state)
{
    const unsigned density = random_bits(state) % 6;
    for (size_t i = 0; i < N_WORDS; i++) {
        uint64_t bits = density == 5 ? UINT64_MAX : random_bits(state);
        for (unsigned k = 0; k < density && density < 5; k++)
            bits &= random_bits(state);
        bitmap[i] = random_bits(state) % 50 == 0 ? 0 : bits;
    }
}

static void expect_all_bits(simd_level level, const uint64_t *bitmap, size_t n_words)
{
    uint32_t positions[WORD_POSITIONS_ROOM];
    word_positions_fn *find = word_positions(level);
    size_t bit = 0;
    for (size_t word = 0, n = 0; word < n_words; n = 0) {
        const size_t from = word, kept = bit % 3;
        memset(positions, 0x77, sizeof positions);
        n = find(bitmap, &word, n_words, positions, kept);
        CHECK(word > from && n <= WORD_POSITIONS_MAX);
        CHECK(word == n_words || n >= 256);
        for (size_t i = 0; i < kept; i++)
            CHECK_EQ(positions[i], 0x77777777);
        for (size_t i = kept; i < n; i++, bit++) {
            while (bit < 64 * word && !(bitmap[bit / 64] >> bit % 64 & 1))
                bit++;
            CHECK_EQ(positions[i], bit);
        }
        while (bit < 64 * word && !(bitmap[bit / 64] >> bit % 64 & 1))
            bit++;
        CHECK_EQ(bit, 64 * word);
    }
}

TEST(each_level_lists_each_bit_once)
{
    static const simd_level levels[] = {SIMD_BEST, SIMD_SCALAR, SIMD_AVX2, SIMD_AVX512};
    uint64_t bitmap[N_WORDS], state = 7;
    for (int round = 0; round < 300; round++) {
        fill(bitmap, &state);
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            if (simd_works(levels[i]))
                expect_all_bits(levels[i], bitmap, random_bits(&state) % (N_WORDS + 1));
    }
}
