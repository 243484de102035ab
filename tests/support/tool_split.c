/* SPDX-License-Identifier: Apache-2.0 */
/* tool_split PATTERN ENGINE - splits texts into words for tests in other languages.
 *
 * stdin: texts, each after its length; stdout: for each text the number of words and the byte where
 * each ends. All numbers are 32 bits, little-endian. ENGINE: best, scalar, avx2, avx512. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/little_endian.h"
#include "support/split_words.h"

static bool put32(uint64_t number)
{
    uint8_t bytes[4];
    le_put(bytes, number, sizeof bytes);
    return fwrite(bytes, sizeof bytes, 1, stdout) == 1;
}

static bool print_words(const uint64_t *starts, size_t n_bytes)
{
    size_t n_words = 0;
    for (size_t k = 0; k < n_bytes / 64 + 1; k++)
        n_words += (size_t)__builtin_popcountll(starts[k]);
    bool ok = put32(n_words);
    for (size_t i = 1; ok && i < n_bytes; i++) {
        if (starts[i / 64] >> i % 64 & 1)
            ok = put32(i);
    }
    return ok && (n_bytes == 0 || put32(n_bytes));
}

static bool split_one(split_pattern p, simd_level e, size_t n_bytes)
{
    uint8_t *text = calloc(1, n_bytes + TEXT_PADDING);
    uint64_t *starts = malloc((n_bytes / 64 + 1) * sizeof *starts);
    bool ok = text && starts && fread(text, 1, n_bytes, stdin) == n_bytes;
    if (ok) {
        split_words(p, e, text, n_bytes, starts);
        ok = print_words(starts, n_bytes);
    }
    free(text);
    free(starts);
    return ok;
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"best", "scalar", "avx2", "avx512"};
    size_t e = 0;
    while (argc == 3 && e < 4 && strcmp(argv[2], engines[e]) != 0)
        e++;
    size_t i = argc == 3 ? 0 : SIZE_MAX;
    while (i < SIZE_MAX && split_known(i) != SPLIT_UNKNOWN &&
           strcmp(split_pattern_name(split_known(i)), argv[1]) != 0)
        i++;
    const split_pattern p = i < SIZE_MAX ? split_known(i) : SPLIT_UNKNOWN;
    if (p == SPLIT_UNKNOWN || e == 4) {
        fprintf(stderr, "usage: tool_split PATTERN best|scalar|avx2|avx512\n");
        return 2;
    }
    if (!simd_works((simd_level)e))
        return 77;
    uint8_t size[4];
    bool ok = true;
    while (ok && fread(size, sizeof size, 1, stdin) == 1)
        ok = split_one(p, (simd_level)e, le_get32(size));
    return ok && fflush(stdout) == 0 ? 0 : 1;
}
