/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_llmc.c - u64 size of the file, then its bytes: not recognised, refused, or tokens that fill
 * it; the documents are the same in pieces of any size. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

static foreign_counter scan(const foreign_layout *layout, const uint8_t *tokens, size_t piece)
{
    foreign_scan state;
    failure err;
    foreign_counter counter = {0};
    foreign_sink sink = {foreign_counter_add, &counter};
    foreign_scan_begin(&state, layout);
    for (uint64_t i = 0; i < layout->n_tokens; i += piece) {
        size_t n = layout->n_tokens - i < piece ? (size_t)(layout->n_tokens - i) : piece;
        if (!foreign_scan_feed(&state, tokens + i * layout->token_bytes, n, &sink, &err))
            return (foreign_counter){0};
    }
    if (!foreign_scan_end(&state, &sink) || counter.n_tokens != layout->n_tokens)
        abort();
    return counter;
}

static void scan_in_pieces(const foreign_layout *layout, const uint8_t *tokens)
{
    void *aligned = malloc((size_t)layout->n_tokens * layout->token_bytes + 1);
    if (!aligned)
        return;
    memcpy(aligned, tokens, (size_t)layout->n_tokens * layout->token_bytes);
    foreign_counter whole = scan(layout, aligned, SIZE_MAX / 2);
    foreign_counter pieces = scan(layout, aligned, 7);
    if (whole.n_documents != pieces.n_documents || whole.hash != pieces.hash)
        abort();
    free(aligned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_memory file;
    foreign_layout layout;
    failure err;
    if (size < 8)
        return 0;
    uint64_t file_bytes = le_get64(data);
    data += 8;
    size -= 8;
    foreign_other_kind(data, size, file_bytes);
    foreign_memory_init(&file, data, size, file_bytes);
    if (!foreign_llmc.decode(&layout, &(foreign_files){.tokens = &file.bytes}, &err))
        return 0;
    if (layout.token_offset + layout.n_tokens * layout.token_bytes != file_bytes ||
        !foreign_llmc.recognise(data, size, file_bytes))
        abort();
    if (file_bytes <= size)
        scan_in_pieces(&layout, data + layout.token_offset);
    return 0;
}
