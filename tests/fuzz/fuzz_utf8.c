/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_utf8.c - any bytes as UTF-8: every engine finds the same end of the valid prefix as the
 * plain decoder, and what is repaired with U+FFFD is valid, with at most three bytes for each. */
#include "fuzz/fuzz.h"
#include "oracles/unicode_naive.h"

#include "base/utf8.h"

static void engines_agree(const uint8_t *text, size_t n_bytes, size_t prefix)
{
    for (simd_level e = SIMD_BEST; e <= SIMD_AVX512; e++) {
        if (simd_works(e))
            require(utf8_valid_prefix_by(e, text, n_bytes) == prefix);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    uint8_t *text = exact_copy(data, n_bytes), *repaired = malloc(n_bytes * 3 + 3);
    size_t n_repaired = 0, i = 0;
    while (i < n_bytes) {
        const size_t prefix = naive_valid_prefix(text + i, n_bytes - i);
        engines_agree(text + i, n_bytes - i, prefix);
        memcpy(repaired + n_repaired, text + i, prefix);
        n_repaired += prefix;
        i += prefix;
        if (i == n_bytes)
            break;
        const size_t n_bad = utf8_bad_bytes(text + i, n_bytes - i);
        require(n_bad <= 3 && n_bad <= n_bytes - i);
        n_repaired += utf8_encode(0xFFFD, repaired + n_repaired);
        i += n_bad > 0 ? n_bad : n_bytes - i;
    }
    engines_agree(repaired, n_repaired, n_repaired);
    free(text);
    free(repaired);
    return 0;
}
