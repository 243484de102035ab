/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_datatrove.c - u64 size of X.ds, u8 dtype asked for, u8 size of the metadata, the metadata,
 * the rest is X.ds.index: refused, or documents that cover X.ds exactly. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_memory index, metadata;
    foreign_layout layout;
    failure err;
    foreign_counter counter = {0};
    foreign_sink sink = {foreign_counter_add, &counter};
    if (size < 10 || size - 10 < data[9])
        return 0;
    size_t n_metadata = data[9];
    foreign_memory_init(&metadata, data + 10, n_metadata, n_metadata);
    foreign_memory_init(&index, data + 10 + n_metadata, size - 10 - n_metadata,
                        size - 10 - n_metadata);
    const foreign_bytes ds = {.size = le_get64(data)};
    const foreign_files files = {.tokens = &ds,
                                 .table = &index.bytes,
                                 .metadata = n_metadata > 0 ? &metadata.bytes : NULL,
                                 .token_bytes = data[8] == 2 || data[8] == 4 ? data[8] : 0};
    if (!foreign_datatrove.decode(&layout, &files, &err))
        return 0;
    if (layout.n_tokens != ds.size / layout.token_bytes || ds.size % layout.token_bytes != 0)
        abort();
    bool covered = foreign_datatrove.documents(&layout, &index.bytes, &sink, &err);
    if (counter.n_tokens > layout.n_tokens || (covered && counter.n_tokens != layout.n_tokens))
        abort();
    return 0;
}
