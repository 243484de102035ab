/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_numpy.c - u64 size of the file, then its first bytes: refused, or tokens that fill it. */
#include "fuzz/fuzz.h"
#include "foreign/foreign_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_memory file;
    foreign_layout layout;
    failure err;
    if (size < 8)
        return 0;
    uint64_t file_bytes = le_get64(data);
    foreign_memory_init(&file, data + 8, size - 8, file_bytes);
    if (!foreign_numpy.decode(&layout, &(foreign_files){.tokens = &file.bytes}, &err))
        return 0;
    if (layout.token_offset > size - 8 || layout.token_offset % layout.token_bytes != 0 ||
        layout.n_tokens != (file_bytes - layout.token_offset) / layout.token_bytes ||
        layout.boundaries != FOREIGN_BOUNDARIES_UNKNOWN)
        abort();
    return 0;
}
