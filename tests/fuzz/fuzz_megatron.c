/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_megatron.c - u64 size of the .bin, then any bytes as its .idx: refused, or documents that
 * cover the .bin exactly. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_memory idx;
    foreign_layout layout;
    failure err;
    foreign_counter counter = {0};
    foreign_sink sink = {foreign_counter_add, &counter};
    if (size < 8)
        return 0;
    uint64_t bin_bytes = le_get64(data);
    foreign_memory_init(&idx, data + 8, size - 8, size - 8);
    const foreign_bytes bin = {.size = bin_bytes};
    const foreign_files files = {.tokens = &bin, .table = &idx.bytes};
    if (!foreign_megatron.decode(&layout, &files, &err))
        return 0;
    if (layout.n_tokens * layout.token_bytes != bin_bytes)
        abort();
    bool covered = foreign_megatron.documents(&layout, &idx.bytes, &sink, &err);
    if (counter.n_tokens > layout.n_tokens || (covered && counter.n_tokens != layout.n_tokens) ||
        (covered && counter.n_documents + 1 != layout.n_table_items))
        abort();
    return 0;
}
