/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/library/library.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/base.h"
#include "system/platform_memory.h"

/* glibc keeps smaller blocks, so that the next call gets the same pages. */
#define LARGE_BYTES ((size_t)32 << 20)

/* Before the memory. */
typedef struct result_header {
    _Alignas(max_align_t) size_t mapped_bytes; /* 0: malloced */
} result_header;

void *result_memory_new(size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2)
        return NULL;
    const size_t all_bytes = sizeof(result_header) + n_bytes;
    const bool large = all_bytes >= LARGE_BYTES;
    result_header *header = large ? tokmap_i_big_memory_new(all_bytes) : malloc(all_bytes);
    if (!header)
        return NULL;
    header->mapped_bytes = large ? all_bytes : 0;
    return header + 1;
}

void *result_memory_shrink(void *memory, size_t n_bytes)
{
    result_header *header = (result_header *)memory - 1;
    const size_t all_bytes = sizeof *header + n_bytes;
    if (header->mapped_bytes == 0) {
        result_header *smaller = realloc(header, all_bytes);
        return (smaller ? smaller : header) + 1; /* cppcheck-suppress memleak */
    }
    const size_t kept_bytes = round_up(all_bytes, TOKMAP_I_HUGE_PAGE_BYTES);
    if (kept_bytes < header->mapped_bytes) {
        tokmap_i_big_memory_free((uint8_t *)header + kept_bytes, header->mapped_bytes - kept_bytes);
        header->mapped_bytes = kept_bytes;
    }
    return memory;
}

void result_memory_free(const void *memory)
{
    if (!memory)
        return;
    result_header *header = (result_header *)(uintptr_t)memory - 1;
    if (header->mapped_bytes > 0)
        tokmap_i_big_memory_free(header, header->mapped_bytes);
    else
        free(header);
}
