/* name_table.h - byte strings and a number for each.
 *
 * The strings are copied. Time is linear whatever the strings are: a set of them that was made to
 * fall on one place is refused. */
#ifndef TOKMAP_NAME_TABLE_H
#define TOKMAP_NAME_TABLE_H

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
    NAME_THERE, /* and keeps its value */
    NAME_NO_MEMORY,
    NAME_CROWDED /* too many on one place: they were made to collide */
} name_result;

void name_table_free(name_table *t);
/* value is below NAME_TABLE_NONE. */
name_result name_table_add(name_table *t, const void *name, size_t n_bytes, uint32_t value);
uint32_t name_table_find(const name_table *t, const void *name, size_t n_bytes);

#endif /* TOKMAP_NAME_TABLE_H */
