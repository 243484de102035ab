/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_olmo_csv.c - u8 that is ignored, u8 token count, then any bytes as OLMo's table: refused, or
 * documents that cover the tokens. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

static bool parse(const uint8_t *text, size_t n_bytes, foreign_counter *counter, uint64_t n_tokens)
{
    foreign_csv csv = {.n_tokens = n_tokens};
    failure err;
    foreign_sink sink = {foreign_counter_add, counter};
    for (size_t i = 0, n; i < n_bytes; i += n + 1) {
        const uint8_t *newline = memchr(text + i, '\n', n_bytes - i);
        n = newline ? (size_t)(newline - text) - i : n_bytes - i;
        if (!foreign_csv_line(&csv, (const char *)text + i, n, &sink, &err))
            return false;
    }
    return foreign_csv_end(&csv, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_counter counter = {0};
    if (size < 2)
        return 0;
    uint64_t n_tokens = data[1];
    bool ok = parse(data + 2, size - 2, &counter, n_tokens);
    if (counter.n_tokens > n_tokens || (ok && counter.n_tokens != n_tokens))
        abort();
    return 0;
}
