/* SPDX-License-Identifier: Apache-2.0 */
/* flatbuffer.h - reads flatbuffers, the metadata of Arrow, and checks every offset. Pure.
 *
 * The first damage found is kept in `damage`; later calls return what they do for absent fields. So
 * a caller may read everything it needs, and then check `damage` before it uses any of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct flatbuffer {
    const uint8_t *bytes;
    size_t n_bytes;
    const char *damage; /* a static text; NULL: none so far */
    size_t damage_at;   /* offset in `bytes` */
} flatbuffer;

typedef struct flat_table {
    flatbuffer *buffer; /* NULL: the table is absent */
    size_t at, n_bytes;
    size_t slots_at, n_slots; /* of its vtable */
} flat_table;

typedef struct flat_list { /* of tables, strings, structs, numbers or bytes */
    flatbuffer *buffer;
    size_t at, n;
} flat_list;

flat_table flat_root(flatbuffer *buffer);
/* Read the field in a slot. If it is absent, they return `otherwise`, an absent table, or an empty
 * list. n_bytes is 1, 2, 4 or 8; numbers are signed. */
int64_t flat_number(const flat_table *t, unsigned slot, size_t n_bytes, int64_t otherwise);
flat_table flat_child(const flat_table *t, unsigned slot);
flat_list flat_items(const flat_table *t, unsigned slot, size_t item_bytes);
flat_table flat_item(const flat_list *l, size_t index); /* of a list of tables */
