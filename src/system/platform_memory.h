/* platform_memory.h - how much memory there is for the page cache, and memory for devices. */
#ifndef TOKMAP_PLATFORM_MEMORY_H
#define TOKMAP_PLATFORM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that this process may hope to keep cached: what the system has available, or less by the
 * limit of its control group. UINT64_MAX: not known. */
uint64_t tokmap_i_memory_available(void);

/* Memory that a device will read: begins with a page, in huge pages where the system has them, on
 * the memory node `node` (below 0: any) if it can be, touched, and not there in forked children.
 * Returns 0 or an errno value. */
int tokmap_i_device_memory_take(size_t n_bytes, int node, void **out);
void tokmap_i_device_memory_give_back(void *memory, size_t n_bytes);

#endif /* TOKMAP_PLATFORM_MEMORY_H */
