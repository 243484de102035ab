/* SPDX-License-Identifier: Apache-2.0 */
/* big_memory.h - zeroed memory for large tables with random access, in huge pages where the system
 * has them. The only system call of the tokenizers. */
#ifndef TOKMAP_BIG_MEMORY_H
#define TOKMAP_BIG_MEMORY_H

#include <stddef.h>

/* A huge page. The end of larger memory may be freed from a multiple of it on. */
#define BIG_MEMORY_UNIT ((size_t)2 << 20)

/* NULL: out of memory. */
void *big_memory_new(size_t n_bytes);
void big_memory_free(void *memory, size_t n_bytes);

#endif /* TOKMAP_BIG_MEMORY_H */
