/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_olmo_csv.c - u8 size of the pieces, u8 token count, then any bytes as OLMo's table: refused,
 * or documents that cover the tokens; the same for pieces of any size. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

static bool parse(const uint8_t *text, size_t n_bytes, size_t piece, foreign_counter *counter,
                  uint64_t n_tokens)
{
    foreign_csv csv = {.n_tokens = n_tokens};
    failure err;
    foreign_sink sink = {foreign_counter_add, counter};
    for (size_t i = 0; i < n_bytes; i += piece) {
        size_t n = n_bytes - i < piece ? n_bytes - i : piece;
        if (!foreign_csv_feed(&csv, (const char *)text + i, n, &sink, &err))
            return false;
    }
    return foreign_csv_end(&csv, &sink, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_counter whole = {0}, pieces = {0};
    if (size < 2)
        return 0;
    size_t piece = data[0] > 0 ? data[0] : 1;
    uint64_t n_tokens = data[1];
    bool ok = parse(data + 2, size - 2, SIZE_MAX / 2, &whole, n_tokens);
    if (parse(data + 2, size - 2, piece, &pieces, n_tokens) != ok || whole.hash != pieces.hash ||
        whole.n_tokens > n_tokens || (ok && whole.n_tokens != n_tokens))
        abort();
    return 0;
}
