/* SPDX-License-Identifier: Apache-2.0 */
/* name_table.h - a table from byte strings to numbers.
 *
 * The strings are copied. Time is linear for any set of strings: one in which too many have the
 * same hash is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_TABLE_NONE UINT32_MAX

typedef struct name_entry {
    size_t offset;
    uint32_t n_bytes, value; /* value NAME_TABLE_NONE: free */
    uint32_t hash;
} name_entry;

typedef struct name_table { /* starts as {0} */
    name_entry *entries;
    size_t n_entries, n_used;
    uint8_t *bytes;
    size_t n_bytes, capacity;
} name_table;

typedef enum name_result {
    NAME_ADDED,
    NAME_THERE, /* already there; its value is unchanged */
    NAME_NO_MEMORY,
    NAME_CROWDED /* too many names with the same hash */
} name_result;

void name_table_free(name_table *t);
/* Adds a name. value must be less than NAME_TABLE_NONE. */
name_result name_table_add(name_table *t, const void *name, size_t n_bytes, uint32_t value);
uint32_t name_table_find(const name_table *t, const void *name, size_t n_bytes);
