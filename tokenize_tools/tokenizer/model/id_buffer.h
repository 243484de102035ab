/* SPDX-License-Identifier: Apache-2.0 */
/* id_buffer.h - a growing array of ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct id_buffer { /* starts as {0} */
    uint32_t *ids;
    size_t n, capacity;
} id_buffer;

/* Makes room for n_more; false: out of memory, nothing has changed. */
bool id_buffer_reserve(id_buffer *b, size_t n_more);
bool id_buffer_append(id_buffer *b, uint32_t id);
void id_buffer_free(id_buffer *b);
/* Frees the ids if the buffer is larger than ARRAY_KEPT_BYTES. */
void id_buffer_free_large(id_buffer *b);
