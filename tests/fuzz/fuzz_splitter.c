/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_splitter.c - two bytes: how often the text is repeated, and the bytes before it; the rest is
 * text. For all patterns, and for a list of stages that depends on the text, compares the vector
 * engines with the scalar one; and that one with the expressions, if the text is short enough for a
 * backtracking matcher. */
#include "fuzz/fuzz.h"
#include "oracles/naive_splitter.h"
#include "support/split_words.h"

enum {
    MAX_NAIVE = 300,
    MAX_TEXT = 1 << 12,
    MAX_WORDS = MAX_TEXT / 64 + 1
};

static void compare(const uint64_t *got, const uint64_t *wanted, size_t n_bytes)
{
    if (memcmp(got, wanted, (n_bytes / 64 + 1) * sizeof *got) != 0)
        abort();
}

static uint64_t scalar[MAX_WORDS], other[MAX_WORDS];

static void compare_engines(split_pattern pattern, const uint8_t *text, size_t n_bytes)
{
    split_words(pattern, SIMD_SCALAR, text, n_bytes, scalar);
    if (n_bytes > 0 && !(scalar[0] & 1))
        abort();
    for (int e = SIMD_BEST; e <= SIMD_BLOCKS; e++) {
        if (e == SIMD_SCALAR || !simd_works((simd_level)e))
            continue;
        split_words(pattern, (simd_level)e, text, n_bytes, other);
        compare(other, scalar, n_bytes);
    }
    if (n_bytes <= MAX_NAIVE) {
        naive_words(pattern, text, n_bytes, other);
        compare(scalar, other, n_bytes);
    }
}

static void split_all(const uint8_t *text, size_t n_bytes)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ text[i]) * 16777619U;
    split_pattern list = SPLIT_NONE;
    for (unsigned k = 0; k < 3; k++)
        list = SPLIT_THEN(list, 1 + (hash >> 8 * (k + 1) & 0xFF) % (STAGE_N - 1), k);
    compare_engines(list, text, n_bytes);
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++)
        compare_engines(split_known(i), text, n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    if (size < 2)
        return 0;
    size_t n_before = data[1] % 64, n_unit = size - 2, n = n_before;
    size_t n_times = data[0] < 128 ? 1 : data[0];
    if (n_before + n_unit * n_times > MAX_TEXT)
        return 0;
    uint8_t *text = malloc(n_before + n_unit * n_times + TEXT_PADDING);
    memcpy(text, before, n_before);
    for (; n_times > 0; n_times--, n += n_unit)
        memcpy(text + n, data + 2, n_unit);
    memset(text + n, 0xBF, TEXT_PADDING); /* what a cut character at the end might take */
    split_all(text, n);
    free(text);
    return 0;
}
