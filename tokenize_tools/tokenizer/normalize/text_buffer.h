/* SPDX-License-Identifier: Apache-2.0 */
/* text_buffer.h - a text buffer that grows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_buffer { /* starts as {0} */
    uint8_t *bytes;
    size_t n_bytes, capacity;
    size_t limit; /* of n_bytes, beyond which text_buffer_append fails; 0: none */
    bool over;    /* the last text_buffer_append failed for it */
} text_buffer;

/* A read-only text; TEXT_PADDING more bytes after it are readable. */
typedef struct text_span {
    const uint8_t *bytes;
    size_t n_bytes;
} text_span;

/* Makes room for n_more bytes and TEXT_PADDING after them; false: out of memory. */
bool text_buffer_reserve(text_buffer *t, size_t n_more);
bool text_buffer_append(text_buffer *t, const void *bytes, size_t n_bytes);
/* Replaces the contents by the prefix and the text, and makes *text the result. */
bool text_buffer_prefix(text_buffer *t, const void *prefix, size_t n_bytes, text_span *text);
/* Returns the text written so far, followed by zeroed padding. */
text_span text_buffer_span(text_buffer *t);
void text_buffer_free(text_buffer *t);
/* Frees the contents if the buffer is larger than ARRAY_KEPT_BYTES. */
void text_buffer_free_large(text_buffer *t);
