/* SPDX-License-Identifier: Apache-2.0 */
/* The vector code that finds the largest id against the scalar code, at every length and
 * alignment. */
#include "support/check.h"

#include "base/token_scan.h"

static uint32_t naive_largest(const uint8_t *p, size_t n_tokens, uint32_t width)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n_tokens; i++) {
        uint32_t id = 0;
        for (uint32_t k = 0; k < width; k++)
            id |= (uint32_t)p[i * width + k] << 8 * k;
        largest = id > largest ? id : largest;
    }
    return largest;
}

static void compare_at_every_alignment(uint8_t *bytes, size_t n_tokens, uint32_t width)
{
    static uint32_t seed = 1;
    for (size_t offset = 0; offset < 64; offset += width) {
        for (size_t i = 0; i < n_tokens * width; i++)
            bytes[offset + i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
        const uint32_t expected = naive_largest(bytes + offset, n_tokens, width);
        CHECK_EQ(tokmap_i_largest_id(bytes + offset, n_tokens, width), expected);
        CHECK_EQ(tokmap_i_largest_id_scalar(bytes + offset, n_tokens, width), expected);
    }
}

TEST(vector_and_scalar_find_the_same_largest_id)
{
    enum {
        MAX_TOKENS = 300
    };
    uint8_t *bytes = malloc(4 * MAX_TOKENS + 64);
    for (uint32_t width = 2; width <= 4; width += 2)
        for (size_t n = 0; n <= MAX_TOKENS; n++)
            compare_at_every_alignment(bytes, n, width);
    free(bytes);
}

TEST(the_largest_possible_ids_are_found)
{
    const uint16_t narrow[3] = {1, UINT16_MAX, 2};
    const uint32_t wide[3] = {1, UINT32_MAX, 2};
    CHECK_EQ(tokmap_i_largest_id(narrow, 3, 2), UINT16_MAX);
    CHECK_EQ(tokmap_i_largest_id(wide, 3, 4), UINT32_MAX);
}

TEST(ids_are_stored_the_same_with_and_without_vector_code)
{
    enum {
        MAX_IDS = 200
    };
    uint32_t ids[MAX_IDS], seed = 7;
    uint8_t fast[4 * MAX_IDS + 8], slow[4 * MAX_IDS + 8];
    for (uint32_t width = 2; width <= 4; width += 2) {
        for (size_t n = 0; n <= MAX_IDS; n++) {
            uint32_t largest = 0;
            for (size_t i = 0; i < n; i++) {
                seed = seed * 1664525 + 1013904223;
                ids[i] = seed >> (seed & 16);
                largest = ids[i] > largest ? ids[i] : largest;
            }
            memset(fast, 0x5A, sizeof fast);
            memset(slow, 0x5A, sizeof slow);
            CHECK_EQ(tokmap_i_store_ids(fast, ids, n, width), largest);
            CHECK_EQ(tokmap_i_store_ids_scalar(slow, ids, n, width), largest);
            CHECK(memcmp(fast, slow, sizeof fast) == 0);
            for (size_t i = 0; i < n * width; i++)
                CHECK_EQ(fast[i], ids[i / width] >> 8 * (i % width) & 0xFF);
            CHECK_EQ(fast[n * width], 0x5A);
        }
    }
}
