/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays that grow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A pointer to elements of any type. */
typedef void *__attribute__((may_alias)) array_elements;

static inline bool array_resize(array_elements *array, size_t n, size_t element_bytes)
{
    void *moved = n <= SIZE_MAX / element_bytes ? realloc(*array, n * element_bytes) : NULL;
    if (moved)
        *array = moved;
    return moved != NULL;
}

/* Makes room for one more element after n. `array` is the address of the pointer to the elements,
 * which may change. Capacities are powers of two, so none is kept. False: out of memory, and all is
 * as it was. */
static inline bool array_grow(void *array, size_t n, size_t element_bytes)
{
    array_elements *elements = array;
    return (*elements && (n & (n - 1))) || array_resize(elements, n ? 2 * n : 1, element_bytes);
}

/* The same: room for n elements, for arrays that are emptied and filled again. */
static inline bool array_reserve(void *array, size_t *capacity, size_t n, size_t element_bytes)
{
    array_elements *elements = array;
    if (*elements && n <= *capacity)
        return true;
    const size_t larger = *capacity + *capacity / 2 + 64, next = n > larger ? n : larger;
    const bool done = array_resize(elements, next, element_bytes);
    *capacity = done ? next : *capacity;
    return done;
}
