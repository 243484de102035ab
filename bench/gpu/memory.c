/* memory.c - host memory of the kinds that copies are measured from. */
#include "gpubench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

const char *const memory_names[N_MEMORY_KINDS] = {"registered small pages", "registered",
                                                  "cudaHostAlloc", "write-combined", "pageable"};

static size_t whole_pages(size_t n_bytes)
{
    return (n_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

uint8_t *memory_map(size_t n_bytes, int advice)
{
    const size_t whole = whole_pages(n_bytes);
    uint8_t *at =
        mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    const size_t before = -(uintptr_t)at % HUGE_PAGE;
    if (before > 0)
        munmap(at, before);
    munmap(at + before + whole, HUGE_PAGE - before);
    (void)madvise(at + before, whole, advice);
    return at + before;
}

static bool map_memory(host_memory *m)
{
    const int advice = m->kind == REGISTERED_SMALL ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
    void *device = NULL;
    m->n_bytes = whole_pages(m->n_bytes);
    m->bytes = memory_map(m->n_bytes, advice);
    if (!m->bytes)
        return fine(cudaErrorMemoryAllocation, "mapping host memory");
    memset(m->bytes, 0x5A, m->n_bytes);
    if (m->kind == PAGEABLE)
        return true;
    if (!fine(cudaHostRegister(m->bytes, m->n_bytes,
                               cudaHostRegisterPortable | cudaHostRegisterMapped),
              "cudaHostRegister")) {
        munmap(m->bytes, m->n_bytes);
        m->bytes = NULL;
        return false;
    }
    if (!fine(cudaHostGetDevicePointer(&device, m->bytes, 0), "cudaHostGetDevicePointer"))
        device = NULL;
    m->device = device;
    return true;
}

bool memory_open(host_memory *m, memory_kind kind, size_t n_bytes)
{
    *m = (host_memory){.kind = kind, .n_bytes = n_bytes};
    if (kind != HOST_ALLOC && kind != WRITE_COMBINED)
        return map_memory(m);
    const unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped |
                           (kind == WRITE_COMBINED ? cudaHostAllocWriteCombined : 0);
    void *bytes = NULL;
    if (!fine(cudaHostAlloc(&bytes, n_bytes, flags), "cudaHostAlloc"))
        return false;
    m->bytes = bytes;
    memset(m->bytes, 0x5A, m->n_bytes);
    return true;
}

void memory_close(host_memory *m)
{
    if (!m->bytes)
        return;
    if (m->kind == HOST_ALLOC || m->kind == WRITE_COMBINED) {
        cudaFreeHost(m->bytes);
    } else {
        if (m->kind != PAGEABLE)
            cudaHostUnregister(m->bytes);
        munmap(m->bytes, m->n_bytes);
    }
    m->bytes = NULL;
}
