/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/arrow/flatbuffer.h"

#include "base/le.h"

/* Keeps the first damage. Returns SIZE_MAX, which is not an offset. */
static size_t set_damage(flatbuffer *b, const char *damage, size_t at)
{
    if (!b->damage) {
        b->damage = damage;
        b->damage_at = at;
    }
    return SIZE_MAX;
}

/* Whether n_bytes at `at` are inside the buffer, without a sum that could overflow. */
static bool is_inside(const flatbuffer *b, size_t at, size_t n_bytes)
{
    return !b->damage && at <= b->n_bytes && n_bytes <= b->n_bytes - at;
}

/* Follows the offset at `at`, which is relative to `at`. Returns SIZE_MAX if it is damaged. */
static size_t follow_offset(flatbuffer *b, size_t at)
{
    if (!is_inside(b, at, 4))
        return set_damage(b, "an offset is outside the metadata", at);
    const size_t offset = le_get32(b->bytes + at);
    if (offset > b->n_bytes - at)
        return set_damage(b, "an offset points outside the metadata", at);
    return at + offset;
}

/* Reads the head of a table: the offset back to its vtable, which has two sizes, then the offset of
 * each field in the table, 0 if it is absent. */
static flat_table read_table(flatbuffer *b, size_t at)
{
    if (at == SIZE_MAX || !is_inside(b, at, 4)) {
        set_damage(b, "a table is outside the metadata", at);
        return (flat_table){0};
    }
    const int64_t vtable = (int64_t)at - (int32_t)le_get32(b->bytes + at);
    if (vtable < 0 || !is_inside(b, (size_t)vtable, 4)) {
        set_damage(b, "the vtable of a table is outside the metadata", at);
        return (flat_table){0};
    }
    const size_t vtable_bytes = le_get16(b->bytes + vtable);
    const size_t table_bytes = le_get16(b->bytes + vtable + 2);
    if (vtable_bytes < 4 || !is_inside(b, (size_t)vtable, vtable_bytes) || table_bytes < 4 ||
        !is_inside(b, at, table_bytes)) {
        set_damage(b, "a table has a wrong size", at);
        return (flat_table){0};
    }
    return (flat_table){.buffer = b,
                        .at = at,
                        .n_bytes = table_bytes,
                        .slots_at = (size_t)vtable + 4,
                        .n_slots = (vtable_bytes - 4) / 2};
}

flat_table flat_root(flatbuffer *buffer)
{
    return read_table(buffer, follow_offset(buffer, 0));
}

/* Returns the offset of a field, or SIZE_MAX if it is absent. */
static size_t find_field(const flat_table *t, unsigned slot, size_t n_bytes)
{
    flatbuffer *b = t->buffer;
    if (!b || b->damage || slot >= t->n_slots)
        return SIZE_MAX;
    const size_t offset = le_get16(b->bytes + t->slots_at + (size_t)slot * 2);
    if (offset == 0)
        return SIZE_MAX;
    if (offset > t->n_bytes || n_bytes > t->n_bytes - offset)
        return set_damage(b, "a field is outside its table", t->at);
    return t->at + offset;
}

int64_t flat_number(const flat_table *t, unsigned slot, size_t n_bytes, int64_t otherwise)
{
    const size_t at = find_field(t, slot, n_bytes);
    return at == SIZE_MAX ? otherwise : le_get_signed(t->buffer->bytes + at, n_bytes);
}

flat_table flat_child(const flat_table *t, unsigned slot)
{
    const size_t at = find_field(t, slot, 4);
    if (at == SIZE_MAX)
        return (flat_table){0};
    return read_table(t->buffer, follow_offset(t->buffer, at));
}

flat_list flat_items(const flat_table *t, unsigned slot, size_t item_bytes)
{
    const size_t at = find_field(t, slot, 4);
    if (at == SIZE_MAX)
        return (flat_list){0};
    flatbuffer *b = t->buffer;
    const size_t list = follow_offset(b, at);
    if (list == SIZE_MAX || !is_inside(b, list, 4)) {
        set_damage(b, "a list is outside the metadata", at);
        return (flat_list){0};
    }
    const size_t n = le_get32(b->bytes + list);
    if (n > (b->n_bytes - list - 4) / item_bytes) {
        set_damage(b, "a list ends outside the metadata", list);
        return (flat_list){0};
    }
    return (flat_list){.buffer = b, .at = list + 4, .n = n};
}

flat_table flat_item(const flat_list *l, size_t index)
{
    return read_table(l->buffer, follow_offset(l->buffer, l->at + index * 4));
}
