/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/id_buffer.h"

#include <stdlib.h>

bool id_buffer_reserve(id_buffer *b, size_t n_more)
{
    if (b->capacity - b->n >= n_more)
        return true;
    if (n_more > SIZE_MAX / 16 - b->n)
        return false;
    const size_t capacity = b->n + n_more + b->capacity / 2 + 64;
    uint32_t *ids = realloc(b->ids, capacity * sizeof *ids);
    if (!ids)
        return false;
    b->ids = ids;
    b->capacity = capacity;
    return true;
}

bool id_buffer_append(id_buffer *b, uint32_t id)
{
    if (!id_buffer_reserve(b, 1))
        return false;
    b->ids[b->n++] = id;
    return true;
}

void id_buffer_free(id_buffer *b)
{
    free(b->ids);
    *b = (id_buffer){0};
}
