/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays that grow by one element at a time. */
#ifndef TOKMAP_ARRAY_H
#define TOKMAP_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/* Returns the array with room for one more element after n, maybe at another address. Capacities
 * are powers of two, so none is kept. NULL: out of memory, and the array is as it was. */
static inline void *array_grow(void *array, size_t n, size_t element_bytes)
{
    return array && (n & (n - 1)) ? array : realloc(array, (n ? 2 * n : 1) * element_bytes);
}

#endif /* TOKMAP_ARRAY_H */
