/* SPDX-License-Identifier: Apache-2.0 */
#include "system/big_memory.h"

#include <stdint.h>
#include <sys/mman.h>

static size_t round_to_pages(size_t n_bytes)
{
    const size_t unit = n_bytes < BIG_MEMORY_UNIT ? 4096 : BIG_MEMORY_UNIT;
    return (n_bytes + unit - 1) & ~(unit - 1);
}

/* Maps more than needed and trims it, so that the memory starts at a huge page. */
void *big_memory_new(size_t n_bytes)
{
    const size_t size = round_to_pages(n_bytes);
    const size_t mapped = size < BIG_MEMORY_UNIT ? size : size + BIG_MEMORY_UNIT;
    uint8_t *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mapped == size)
        return p;
    uint8_t *start = p + (-(uintptr_t)p & (BIG_MEMORY_UNIT - 1));
    if (start > p)
        munmap(p, (size_t)(start - p));
    if (start + size < p + mapped)
        munmap(start + size, (size_t)(p + mapped - start) - size);
    madvise(start, size, MADV_HUGEPAGE); /* may fail: only advice */
    return start;
}

void big_memory_free(void *memory, size_t n_bytes)
{
    if (memory)
        munmap(memory, round_to_pages(n_bytes));
}
