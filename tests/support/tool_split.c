/* SPDX-License-Identifier: Apache-2.0 */
/* tool_split PATTERN ENGINE - splits texts into words for tests in other languages.
 *
 * stdin: texts, each after its length; stdout: for each text the number of words and the byte where
 * each ends. All numbers are 32 bits, little-endian. ENGINE: best, scalar, avx2, avx512, blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/pipes.h"
#include "support/split_words.h"

static void split_one(split_pattern p, simd_level e, size_t n_bytes)
{
    uint8_t *text = get_bytes(n_bytes, TEXT_PADDING, 0);
    const size_t n = n_bytes / 64 + 1;
    uint64_t *starts = malloc(n * sizeof *starts);
    size_t n_words = 0;
    split_words(p, e, text, n_bytes, starts);
    for (size_t k = 0; k < n; k++)
        n_words += (size_t)__builtin_popcountll(starts[k]);
    put_number(n_words, 4);
    for (size_t i = 1; i < n_bytes; i++)
        if (starts[i / 64] >> i % 64 & 1)
            put_number(i, 4);
    if (n_bytes > 0)
        put_number(n_bytes, 4);
    free(text);
    free(starts);
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"best", "scalar", "avx2", "avx512", "blocks"};
    size_t e = 0;
    while (argc == 3 && e < 5 && strcmp(argv[2], engines[e]) != 0)
        e++;
    size_t i = argc == 3 ? 0 : SIZE_MAX;
    while (i < SIZE_MAX && split_known(i) != SPLIT_UNKNOWN &&
           strcmp(split_pattern_name(split_known(i)), argv[1]) != 0)
        i++;
    const split_pattern p = i < SIZE_MAX ? split_known(i) : SPLIT_UNKNOWN;
    if (p == SPLIT_UNKNOWN || e == 5) {
        fprintf(stderr, "usage: tool_split PATTERN best|scalar|avx2|avx512|blocks\n");
        return 2;
    }
    if (!simd_works((simd_level)e))
        return 77;
    for (size_t n_bytes; get_length(&n_bytes);)
        split_one(p, (simd_level)e, n_bytes);
    return fflush(stdout) == 0 ? 0 : 1;
}
