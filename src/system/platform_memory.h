/* SPDX-License-Identifier: Apache-2.0 */
/* platform_memory.h - how much memory there is for the page cache; memory in huge pages, for large
 * tables and for devices. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes that this process can expect to keep cached: the memory that the system has
 * available, or the limit of its control group if that is less. UINT64_MAX: unknown. */
uint64_t tokmap_i_memory_available(void);

/* Returns how many bytes this process may use: the memory of the machine, or the limit of its
 * control group or of its address space if that is less. */
uint64_t tokmap_i_memory_allowed(void);

#define TOKMAP_I_HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Takes zeroed memory for large tables with random access, in huge pages where the system has them.
 * The end may be freed from a multiple of a huge page on. NULL: out of memory. */
void *tokmap_i_big_memory_new(size_t n_bytes);
void tokmap_i_big_memory_free(void *memory, size_t n_bytes);

/* Returns the memory node that is nearest to a PCI device; -1: unknown. */
int tokmap_i_pci_node(int domain, int bus, int device);

/* Takes memory that a device will read: aligned to a page, in huge pages where the system has them,
 * if possible on memory node `node` (below 0: any), already touched, and not inherited by forked
 * children. Returns 0 or an errno value. */
int tokmap_i_device_memory_take(size_t n_bytes, int node, void **out);
void tokmap_i_device_memory_give_back(void *memory, size_t n_bytes);
