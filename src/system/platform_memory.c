/* SPDX-License-Identifier: Apache-2.0 */
#include "system/platform_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "system/control_group.h"
#include "system/platform.h"

/* Returns what the system has, limited by our control group. */
uint64_t tokmap_i_memory_available(void)
{
    char text[4096];
    const uint64_t limit = tokmap_i_group_limits_now().memory;
    const char *line = tokmap_i_small_file_read("/proc/meminfo", text, sizeof text)
                           ? strstr(text, "MemAvailable:")
                           : NULL;
    return line ? MIN(limit, strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024) : limit;
}

uint64_t tokmap_i_memory_allowed(void)
{
    struct rlimit space;
    const uint64_t limit = tokmap_i_group_limits_now().memory;
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * tokmap_i_page_bytes();
    const bool is_limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    return MIN(MIN(limit, machine), is_limited ? space.rlim_cur : UINT64_MAX);
}

/* ---- Huge pages ---- */

static size_t round_to_pages(size_t n_bytes)
{
    const size_t huge = TOKMAP_I_HUGE_PAGE_BYTES;
    return round_up(n_bytes, n_bytes < huge ? tokmap_i_page_bytes() : huge);
}

/* Maps more than needed and trims it, so that the memory starts at a huge page. */
void *tokmap_i_big_memory_new(size_t n_bytes)
{
    const size_t size = round_to_pages(n_bytes);
    const bool huge = size >= TOKMAP_I_HUGE_PAGE_BYTES;
    const size_t mapped = huge ? size + TOKMAP_I_HUGE_PAGE_BYTES : size;
    uint8_t *at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || !huge)
        return at == MAP_FAILED ? NULL : at;
    const size_t before = -(uintptr_t)at % TOKMAP_I_HUGE_PAGE_BYTES;
    if (before > 0)
        munmap(at, before);
    munmap(at + before + size, TOKMAP_I_HUGE_PAGE_BYTES - before);
    madvise(at + before, size, MADV_HUGEPAGE); /* may fail: only advice */
    return at + before;
}

void tokmap_i_big_memory_free(void *memory, size_t n_bytes)
{
    if (memory)
        munmap(memory, round_to_pages(n_bytes));
}

/* ---- Memory for devices ---- */

#define POLICY_PREFERRED 1 /* of mbind: this node, or another one when it is full */

int tokmap_i_pci_node(int domain, int bus, int device)
{
    char path[80], text[32];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", (unsigned)domain,
             (unsigned)bus, (unsigned)device);
    return tokmap_i_small_file_read(path, text, sizeof text) && *text ? (int)strtol(text, NULL, 10)
                                                                      : -1;
}

int tokmap_i_device_memory_take(size_t n_bytes, int node, void **out)
{
    const size_t whole = round_up(n_bytes, TOKMAP_I_HUGE_PAGE_BYTES);
    void *at = tokmap_i_big_memory_new(whole);
    if (!at)
        return ENOMEM;
    (void)madvise(at, whole, MADV_DONTFORK);
    unsigned long nodes[16] = {0};
    const size_t bits = 8 * sizeof nodes[0];
    if (node >= 0 && (size_t)node < 16 * bits) {
        nodes[(size_t)node / bits] = 1ul << (size_t)node % bits;
        (void)syscall(SYS_mbind, at, whole, POLICY_PREFERRED, nodes, 16 * bits, 0);
    }
    memset(at, 0, whole);
    *out = at;
    return 0;
}

void tokmap_i_device_memory_give_back(void *memory, size_t n_bytes)
{
    tokmap_i_big_memory_free(memory, round_up(n_bytes, TOKMAP_I_HUGE_PAGE_BYTES));
}
