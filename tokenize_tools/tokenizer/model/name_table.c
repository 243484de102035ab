/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/le.h"

/* At half load, no set of names comes near this unless it was made to. */
#define MAX_PROBES 1024

static uint32_t hash_name(const uint8_t *name, size_t n_bytes)
{
    uint64_t hash = n_bytes;
    for (size_t i = 0; i + 8 < n_bytes; i += 8) {
        hash = (hash ^ le_get64(name + i)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    const uint64_t last = n_bytes >= 8 ? le_get64(name + n_bytes - 8) : le_get(name, n_bytes);
    hash = (hash ^ last) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32; /* without it the last bytes would not reach the low bits */
    return (uint32_t)(hash * 0xC2B2AE3D27D4EB4Fu >> 32);
}

/* Returns the entry of the name, or the free one for it; NULL: too many probes. */
static name_entry *find_entry(const name_table *t, const uint8_t *name, size_t n_bytes,
                              uint32_t hash)
{
    for (size_t i = 0; i < MAX_PROBES; i++) {
        name_entry *e = &t->entries[(hash + i) & (t->n_entries - 1)];
        if (e->value == NAME_TABLE_NONE ||
            (e->hash == hash && e->n_bytes == n_bytes &&
             (n_bytes == 0 || memcmp(t->bytes + e->offset, name, n_bytes) == 0)))
            return e;
    }
    return NULL;
}

static name_result grow_entries(name_table *t)
{
    name_table next = *t;
    next.n_entries = t->n_entries ? t->n_entries * 2 : 64;
    next.entries = malloc(next.n_entries * sizeof *next.entries);
    if (!next.entries)
        return NAME_NO_MEMORY;
    memset(next.entries, 0xFF, next.n_entries * sizeof *next.entries);
    for (size_t i = 0; i < t->n_entries; i++) {
        const name_entry *e = &t->entries[i];
        if (e->value == NAME_TABLE_NONE)
            continue;
        name_entry *place = find_entry(&next, t->bytes + e->offset, e->n_bytes, e->hash);
        if (!place) {
            free(next.entries);
            return NAME_CROWDED;
        }
        *place = *e;
    }
    free(t->entries);
    *t = next;
    return NAME_ADDED;
}

void name_table_free(name_table *t)
{
    free(t->entries);
    free(t->bytes);
    *t = (name_table){0};
}

name_result name_table_add(name_table *t, const void *name, size_t n_bytes, uint32_t value)
{
    const uint32_t hash = hash_name(name, n_bytes);
    name_result grown = t->n_used * 2 >= t->n_entries ? grow_entries(t) : NAME_ADDED;
    if (grown != NAME_ADDED)
        return grown;
    name_entry *e = find_entry(t, name, n_bytes, hash);
    if (!e || n_bytes > UINT32_MAX)
        return NAME_CROWDED;
    if (e->value != NAME_TABLE_NONE)
        return NAME_THERE;
    if (!array_reserve(&t->bytes, &t->capacity, t->n_bytes + n_bytes, 1))
        return NAME_NO_MEMORY;
    if (n_bytes > 0)
        memcpy(t->bytes + t->n_bytes, name, n_bytes);
    *e = (name_entry){t->n_bytes, (uint32_t)n_bytes, value, hash};
    t->n_bytes += n_bytes;
    t->n_used++;
    return NAME_ADDED;
}

uint32_t name_table_find(const name_table *t, const void *name, size_t n_bytes)
{
    if (t->n_used == 0)
        return NAME_TABLE_NONE;
    const name_entry *e = find_entry(t, name, n_bytes, hash_name(name, n_bytes));
    return e ? e->value : NAME_TABLE_NONE;
}
