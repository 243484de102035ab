/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays that grow. */
#ifndef TOKMAP_ARRAY_H
#define TOKMAP_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns the array with room for one more element after n, maybe at another address. Capacities
 * are powers of two, so none is kept. NULL: out of memory, and the array is as it was. */
static inline void *array_grow(void *array, size_t n, size_t element_bytes)
{
    return array && (n & (n - 1)) ? array : realloc(array, (n ? 2 * n : 1) * element_bytes);
}

/* Returns the array with room for n elements, for arrays that are emptied and filled again. NULL:
 * out of memory, and the array and its capacity are as they were. */
static inline void *array_reserve(void *array, size_t *capacity, size_t n, size_t element_bytes)
{
    if (array && n <= *capacity)
        return array;
    const size_t larger = *capacity + *capacity / 2 + 64, next = n > larger ? n : larger;
    void *moved = next <= SIZE_MAX / element_bytes ? realloc(array, next * element_bytes) : NULL;
    *capacity = moved ? next : *capacity;
    return moved;
}

#endif /* TOKMAP_ARRAY_H */
