/* SPDX-License-Identifier: Apache-2.0 */
/* flatbuffer.h - reads flatbuffers, the metadata of Arrow, with every offset checked; pure.
 *
 * The first damage that is found is kept in `damage`; calls then return what an absent field has.
 * So a caller may read all that it wants, and look at `damage` before it uses any of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct flatbuffer {
    const uint8_t *bytes;
    size_t n_bytes;
    const char *damage; /* static; NULL: none so far */
    size_t damage_at;   /* in the bytes */
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
/* Each slot holds a field. Absent fields: `otherwise`, an absent table, an empty list. n_bytes: 1,
 * 2, 4 or 8; the number is signed. */
int64_t flat_number(const flat_table *t, unsigned slot, size_t n_bytes, int64_t otherwise);
flat_table flat_child(const flat_table *t, unsigned slot);
flat_list flat_items(const flat_table *t, unsigned slot, size_t item_bytes);
flat_table flat_item(const flat_list *l, size_t index); /* of a list of tables */
