/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/id_buffer.h"

#include <stdlib.h>

#include "base/array.h"

bool id_buffer_reserve(id_buffer *b, size_t n_more)
{
    return b->capacity - b->n >= n_more ||
           (n_more <= SIZE_MAX / 16 - b->n &&
            array_reserve(&b->ids, &b->capacity, b->n + n_more, sizeof *b->ids));
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

void id_buffer_free_large(id_buffer *b)
{
    array_free_large(&b->ids, &b->capacity, sizeof *b->ids);
    b->n = b->capacity > 0 ? b->n : 0;
}
