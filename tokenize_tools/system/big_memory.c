#include "system/big_memory.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static size_t round_to_pages(size_t n_bytes)
{
    const size_t unit = n_bytes < HUGE_PAGE ? 4096 : HUGE_PAGE;
    return (n_bytes + unit - 1) & ~(unit - 1);
}

/* Maps more than needed and trims it, so that the memory starts at a huge page. */
void *big_memory_new(size_t n_bytes)
{
    const size_t size = round_to_pages(n_bytes);
    const size_t mapped = size < HUGE_PAGE ? size : size + HUGE_PAGE;
    uint8_t *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mapped == size)
        return p;
    uint8_t *start = p + (-(uintptr_t)p & (HUGE_PAGE - 1));
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
