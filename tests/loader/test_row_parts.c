/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_parts - position and document ids with and without vector code, against counting. What
 * rows say of documents is in test_loader. */
#include "support/check.h"

#include "loader/row_parts.h"

enum {
    MAX_INPUTS = 400
};

static void check_fill(void (*fill)(int32_t *, int32_t *, const int32_t *, uint32_t),
                       const int32_t *cu, uint32_t n_documents, uint32_t offset)
{
    int32_t positions[MAX_INPUTS + 32], documents[MAX_INPUTS + 32];
    memset(positions, 0x5A, sizeof positions);
    memset(documents, 0x5A, sizeof documents);
    fill(positions + offset, documents + offset, cu, n_documents);
    fill(NULL, NULL, cu, n_documents);
    for (uint32_t k = 0; k < n_documents; k++) {
        for (int32_t i = cu[k]; i < cu[k + 1]; i++) {
            CHECK_INT(positions[offset + (uint32_t)i], i - cu[k]);
            CHECK_INT(documents[offset + (uint32_t)i], (int64_t)k);
        }
    }
    CHECK_INT(positions[offset + (uint32_t)cu[n_documents]], 0x5A5A5A5A);
    CHECK_INT(documents[offset + (uint32_t)cu[n_documents]], 0x5A5A5A5A);
    CHECK(offset == 0 || positions[offset - 1] == 0x5A5A5A5A);
}

TEST(ids_are_the_same_with_and_without_vector_code)
{
    for (int round = 0; round < 20000; round++) {
        int32_t cu[MAX_INPUTS + 1] = {0};
        const uint32_t n_inputs = 1 + check_below(MAX_INPUTS), mean = 1 + check_below(100);
        uint32_t n_documents = 0;
        while (cu[n_documents] < (int32_t)n_inputs) {
            const int32_t end = cu[n_documents] + 1 + (int32_t)check_below(2 * mean);
            cu[++n_documents] = end < (int32_t)n_inputs ? end : (int32_t)n_inputs;
        }
        const uint32_t offset = check_below(16);
        check_fill(tokmap_i_fill_ids, cu, n_documents, offset);
        check_fill(tokmap_i_fill_ids_scalar, cu, n_documents, offset);
    }
}
