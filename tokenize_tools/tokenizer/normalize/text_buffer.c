/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/text_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/simd.h"

bool text_buffer_reserve(text_buffer *t, size_t n_more)
{
    return n_more <= SIZE_MAX / 4 && t->n_bytes <= SIZE_MAX / 4 &&
           array_reserve(&t->bytes, &t->capacity, t->n_bytes + n_more + TEXT_PADDING, 1);
}

bool text_buffer_append(text_buffer *t, const void *bytes, size_t n_bytes)
{
    t->over = t->limit > 0 && t->n_bytes + n_bytes > t->limit;
    if (t->over || !text_buffer_reserve(t, n_bytes))
        return false;
    if (n_bytes > 0)
        memcpy(t->bytes + t->n_bytes, bytes, n_bytes);
    t->n_bytes += n_bytes;
    return true;
}

bool text_buffer_prefix(text_buffer *t, const void *prefix, size_t n_bytes, text_span *text)
{
    t->n_bytes = 0;
    if (!text_buffer_append(t, prefix, n_bytes) ||
        !text_buffer_append(t, text->bytes, text->n_bytes))
        return false;
    *text = text_buffer_span(t);
    return true;
}

text_span text_buffer_span(text_buffer *t)
{
    static const uint8_t nothing[TEXT_PADDING];
    if (t->capacity == 0)
        return (text_span){nothing, 0};
    memset(t->bytes + t->n_bytes, 0, TEXT_PADDING);
    return (text_span){t->bytes, t->n_bytes};
}

void text_buffer_free(text_buffer *t)
{
    free(t->bytes);
    *t = (text_buffer){0};
}

void text_buffer_free_large(text_buffer *t)
{
    array_free_large(&t->bytes, &t->capacity, 1);
    t->n_bytes = t->capacity > 0 ? t->n_bytes : 0;
}
