/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays and bytes that grow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
 * which may change. The capacity is the next power of two, so nobody has to remember it. Returns
 * false, and changes nothing, when out of memory. */
static inline bool array_grow(void *array, size_t n, size_t element_bytes)
{
    array_elements *elements = array;
    return (*elements && (n & (n - 1))) || array_resize(elements, n ? 2 * n : 1, element_bytes);
}

/* The same as array_grow, but makes room for n elements and keeps the capacity: for arrays that are
 * emptied and filled again. */
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

/* Frees an array of array_reserve if it is larger than ARRAY_KEPT_BYTES: for one that waits for its
 * next use. */
#define ARRAY_KEPT_BYTES ((size_t)1 << 20)
static inline void array_free_large(void *array, size_t *capacity, size_t element_bytes)
{
    array_elements *elements = array;
    if (*capacity <= ARRAY_KEPT_BYTES / element_bytes)
        return;
    free(*elements);
    *elements = NULL;
    *capacity = 0;
}

/* ---- Bytes ---- */

typedef struct tokmap_i_bytes {
    uint8_t *data; /* the owner frees it */
    size_t n_bytes, capacity;
} tokmap_i_bytes;

/* Adds n_bytes, which the caller fills in, and returns their address; NULL when out of memory. */
static inline uint8_t *tokmap_i_bytes_add(tokmap_i_bytes *b, size_t n_bytes)
{
    if (!array_reserve(&b->data, &b->capacity, b->n_bytes + n_bytes, 1))
        return NULL;
    b->n_bytes += n_bytes;
    return b->data + b->n_bytes - n_bytes;
}

/* Adds a copy of these bytes. Returns false when out of memory. */
static inline bool tokmap_i_bytes_append(tokmap_i_bytes *b, const void *data, size_t n_bytes)
{
    uint8_t *p = tokmap_i_bytes_add(b, n_bytes);
    if (p && n_bytes > 0)
        memcpy(p, data, n_bytes);
    return p != NULL;
}
