/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <string.h>

#include "base/simd.h"
#include "tokenizer/split/expression.h"
#include "tokenizer/split/text_cursor.h"

enum {
    N_PLACES = 70 /* more than two vectors */
};

/* From each place of a text whose other bytes begin no match. */
static void search_everywhere(const expression *x, text_cursor v, uint8_t byte)
{
    for (size_t at = 0; at < N_PLACES; at++) {
        uint8_t text[N_PLACES + TEXT_PADDING];
        memset(text, '\n', sizeof text);
        text[at] = byte;
        v.text = text;
        v.n_bytes = N_PLACES;
        for (size_t i = 0; i <= at; i += 1 + at / 3) {
            v.vectors = false;
            const size_t wanted = expression_next(x, &v, i);
            v.vectors = true;
            CHECK_INT(expression_next(x, &v, i), wanted);
        }
    }
}

TEST(vectors_find_the_same_bytes_that_begin_a_match)
{
    static const char *const texts[] = {"[a-z]",
                                        "\\p{L}",
                                        "\\p{N}",
                                        "[\\x{4E00}-\\x{9FA5}]",
                                        "[^\\x{00}-\\x{7F}]",
                                        "[\\x{00}-\\x{09}\\x{FF}]"};
    expression_error err;
    if (!simd_works(SIMD_AVX2))
        SKIP("no AVX2");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        expression *x = expression_new(texts[k], strlen(texts[k]), EXPRESSION_RUST, &err);
        CHECK(x != NULL);
        for (unsigned byte = 0; byte < 256; byte++) {
            search_everywhere(x, (text_cursor){.as_bytes = false}, (uint8_t)byte);
            search_everywhere(x, (text_cursor){.as_bytes = true}, (uint8_t)byte);
        }
        expression_free(x);
    }
}
