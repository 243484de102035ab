/* The vector code for the largest id against its scalar twin, at every length and alignment. */
#include "check.h"

#include "token_scan.h"

TEST(vector_and_scalar_find_the_same_largest_id)
{
    enum {
        MAX_TOKENS = 300
    };
    uint8_t *bytes = malloc(4 * MAX_TOKENS + 64);
    uint32_t seed = 1;
    for (uint32_t width = 2; width <= 4; width += 2) {
        for (size_t n = 0; n <= MAX_TOKENS; n++) {
            for (size_t offset = 0; offset < 64; offset += width) {
                for (size_t i = 0; i < n * width; i++)
                    bytes[offset + i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
                uint32_t naive = 0;
                for (size_t i = 0; i < n; i++) {
                    uint32_t id = 0;
                    for (uint32_t k = 0; k < width; k++)
                        id |= (uint32_t)bytes[offset + i * width + k] << 8 * k;
                    naive = id > naive ? id : naive;
                }
                CHECK_EQ(tokmap_i_largest_id(bytes + offset, n, width), naive);
                CHECK_EQ(tokmap_i_largest_id_scalar(bytes + offset, n, width), naive);
            }
        }
    }
    free(bytes);
}

TEST(the_largest_possible_ids_are_found)
{
    const uint16_t narrow[3] = {1, UINT16_MAX, 2};
    const uint32_t wide[3] = {1, UINT32_MAX, 2};
    CHECK_EQ(tokmap_i_largest_id(narrow, 3, 2), UINT16_MAX);
    CHECK_EQ(tokmap_i_largest_id(wide, 3, 4), UINT32_MAX);
}
