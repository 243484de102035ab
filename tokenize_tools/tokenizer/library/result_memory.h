/* SPDX-License-Identifier: Apache-2.0 */
/* result_memory.h - the memory of what calls return: in huge pages when it is large, because small
 * ones would cost a fifth of the time of encoding. */
#ifndef TOKMAP_RESULT_MEMORY_H
#define TOKMAP_RESULT_MEMORY_H

#include <stddef.h>

/* NULL: out of memory. Never NULL otherwise. */
void *result_memory_new(size_t n_bytes);
/* Gives back what is behind the first n_bytes, and returns the memory, which may have moved. */
void *result_memory_shrink(void *memory, size_t n_bytes);
/* NULL is accepted. */
void result_memory_free(const void *memory);

#endif /* TOKMAP_RESULT_MEMORY_H */
