/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - bytes that grow. */
#pragma once

#include <stdlib.h>

#include "base/base.h"

typedef struct tokmap_i_bytes {
    uint8_t *data; /* the owner frees it */
    size_t n_bytes, capacity;
} tokmap_i_bytes;

/* Adds n_bytes, which the caller fills in. NULL when out of memory. */
static inline uint8_t *tokmap_i_bytes_add(tokmap_i_bytes *b, size_t n_bytes)
{
    if (!b->data || b->capacity - b->n_bytes < n_bytes) {
        const size_t capacity = MAX(b->capacity * 2, b->n_bytes + n_bytes + 4096);
        uint8_t *data = realloc(b->data, capacity);
        if (!data)
            return NULL;
        b->data = data;
        b->capacity = capacity;
    }
    b->n_bytes += n_bytes;
    return b->data + b->n_bytes - n_bytes;
}

/* Adds a copy of these bytes. False when out of memory. */
static inline bool tokmap_i_bytes_append(tokmap_i_bytes *b, const void *data, size_t n_bytes)
{
    uint8_t *p = tokmap_i_bytes_add(b, n_bytes);
    if (p && n_bytes > 0)
        memcpy(p, data, n_bytes);
    return p != NULL;
}
