/* platform_memory.h - how much memory there is for the page cache. */
#ifndef TOKMAP_PLATFORM_MEMORY_H
#define TOKMAP_PLATFORM_MEMORY_H

#include <stdint.h>

/* Bytes that this process may hope to keep cached: what the system has available, or less by the
 * limit of its control group. UINT64_MAX: not known. */
uint64_t tokmap_i_memory_available(void);
#endif /* TOKMAP_PLATFORM_MEMORY_H */
