/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/double_array.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- Walking ---- */

#define NUL_IN_KEYS 0xFF

static uint8_t key_byte(const double_array *a, uint8_t byte)
{
    return byte == 0 && a->has_nul ? NUL_IN_KEYS : byte;
}

bool double_array_walk(const double_array *a, uint32_t *state, uint8_t byte, bool *has_value)
{
    return !(a->has_nul && byte == NUL_IN_KEYS) &&
           double_array_follow(a, state, key_byte(a, byte), has_value);
}

size_t double_array_longest(const double_array *a, uint32_t state, const uint8_t *text,
                            size_t n_bytes, uint32_t *value)
{
    size_t longest = 0, n_keys = 0;
    bool has_value = false;
    for (size_t i = 0; i < n_bytes && double_array_walk(a, &state, text[i], &has_value); i++) {
        if (!has_value)
            continue;
        longest = i + 1;
        *value = double_array_value(a, state);
        if (++n_keys == a->max_keys)
            break;
    }
    return longest;
}

bool double_array_find(const double_array *a, const uint8_t *key, size_t n_bytes, uint32_t *value)
{
    uint32_t state = a->n_units > 0 ? double_array_root(a) : 0;
    bool has_value = false;
    for (size_t i = 0; i < n_bytes && a->n_units > 0; i++)
        if (!double_array_follow(a, &state, key[i], &has_value))
            return false;
    if (has_value)
        *value = double_array_value(a, state);
    return has_value;
}

bool double_array_check(const double_array *a, uint32_t value_limit)
{
    if (a->n_units == 0 || (a->units[0] & 0x800001FFu) != 0)
        return false;
    for (size_t i = 0; i < a->n_units; i++) {
        const uint32_t unit = a->units[i];
        const uint32_t children = (uint32_t)i ^ double_array_offset(unit);
        if (unit >> 31) {
            if ((unit & DOUBLE_ARRAY_MAX_VALUE) >= value_limit)
                return false;
        } else if ((children | 0xFF) >= a->n_units ||
                   ((unit >> 8 & 1) && !(a->units[children] >> 31))) {
            return false;
        }
    }
    return double_array_offset(a->units[0]) != 0;
}

/* ---- Building: depth first, the children of a node together in the first free place ---- */

#define BLOCK 256
#define OPEN_BLOCKS 16        /* a new node is placed in one of the last blocks */
#define FREE_UNIT 0x80000000u /* a value: no byte leads to it */
#define MAX_OFFSET (1u << 29) /* limit of a shifted offset */
#define MAX_DIRECT (1u << 21) /* limit of one that is not shifted */

/* The state of a unit while building; free units of open blocks form a ring through unit 0. */
typedef struct unit_state {
    uint32_t next, prev;
    bool taken;
    bool has_children; /* the children of a node begin here */
} unit_state;

typedef struct builder {
    double_array *a;
    unit_state *states;
    size_t capacity; /* units */
    const double_array_key *keys;
} builder;

/* The keys below a node, which share their first `depth` bytes. */
typedef struct work {
    size_t first, last; /* keys [first, last) */
    uint32_t depth;
    uint32_t node;
} work;

typedef struct work_list {
    work *items;
    size_t n, capacity;
} work_list;

static void take_out(builder *b, uint32_t i)
{
    unit_state *states = b->states;
    states[states[i].prev].next = states[i].next;
    states[states[i].next].prev = states[i].prev;
}

static void put_last(builder *b, uint32_t i)
{
    unit_state *states = b->states;
    states[i] = (unit_state){.next = 0, .prev = states[0].prev};
    states[states[0].prev].next = i;
    states[0].prev = i;
}

static bool reserve_block(builder *b)
{
    double_array *a = b->a;
    if (a->n_units + BLOCK <= b->capacity)
        return true;
    const size_t capacity = b->capacity ? b->capacity * 2 : 16 * BLOCK;
    if (!array_resize((array_elements *)&a->units, capacity, sizeof *a->units) ||
        !array_resize((array_elements *)&b->states, capacity, sizeof *b->states))
        return false;
    memset(b->states + b->capacity, 0, (capacity - b->capacity) * sizeof *b->states);
    b->capacity = capacity;
    return true;
}

static bool add_block(builder *b)
{
    const size_t first = b->a->n_units;
    if (first >= MAX_OFFSET || !reserve_block(b))
        return false;
    b->a->n_units += BLOCK;
    for (size_t i = first; i < b->a->n_units; i++) {
        b->a->units[i] = FREE_UNIT;
        if (i == 0)
            b->states[0] = (unit_state){.taken = true};
        else
            put_last(b, (uint32_t)i);
    }
    if (first < OPEN_BLOCKS * BLOCK)
        return true;
    for (size_t i = first - OPEN_BLOCKS * BLOCK; i < first - (OPEN_BLOCKS - 1) * BLOCK; i++)
        if (!b->states[i].taken)
            take_out(b, (uint32_t)i);
    return true;
}

static bool can_reach(uint32_t node, uint32_t children)
{
    const uint32_t offset = node ^ children;
    return offset != 0 && (offset < MAX_DIRECT || ((offset & 0xFF) == 0 && offset < MAX_OFFSET));
}

/* Finds a place, never unit 0: there the root would look like a child for the byte 0. */
static bool fits(const builder *b, uint32_t node, uint32_t children, const uint8_t *labels,
                 size_t n_labels)
{
    if (children == 0 || b->states[children].has_children || !can_reach(node, children))
        return false;
    for (size_t i = 0; i < n_labels; i++)
        if (b->states[children ^ labels[i]].taken)
            return false;
    return true;
}

/* A place for the children; UINT32_MAX: out of memory, or out of reach of offsets. */
static uint32_t find_place(builder *b, uint32_t node, const uint8_t *labels, size_t n_labels)
{
    for (int tries = 0; tries < 2; tries++) {
        /* The first label is put at i. */
        for (uint32_t i = b->states[0].next; i != 0; i = b->states[i].next)
            if (fits(b, node, i ^ labels[0], labels, n_labels))
                return i ^ labels[0];
        if (!add_block(b))
            break;
    }
    return UINT32_MAX;
}

static bool push_work(work_list *list, work item)
{
    if (!array_reserve(&list->items, &list->capacity, list->n + 1, sizeof *list->items))
        return false;
    list->items[list->n++] = item;
    return true;
}

/* The bytes that follow the common prefix, each once, in order. A key that ends there comes first
 * in the order of keys and is not included. */
static size_t labels_of(const builder *b, const work *w, uint8_t labels[256])
{
    size_t n = 0;
    for (size_t i = w->first; i < w->last; i++) {
        const uint8_t byte = key_byte(b->a, b->keys[i].bytes[w->depth]);
        if (n == 0 || labels[n - 1] != byte)
            labels[n++] = byte;
    }
    return n;
}

/* Places the children of one node and lists them as work. */
static bool expand_node(builder *b, work w, work_list *list)
{
    uint8_t labels[257];
    double_array *a = b->a;
    const bool ends = b->keys[w.first].n_bytes == w.depth;
    const uint32_t value = b->keys[w.first].value;
    w.first += ends;
    labels[0] = 0; /* for the value */
    const size_t n_labels = ends + labels_of(b, &w, labels + ends);
    const uint32_t children = find_place(b, w.node, labels, n_labels);
    if (children == UINT32_MAX)
        return false;
    const uint32_t offset = w.node ^ children;
    a->units[w.node] &= 0xFF;
    a->units[w.node] |= ends ? 1u << 8 : 0;
    a->units[w.node] |= offset < MAX_DIRECT ? offset << 10 : offset << 2 | 1u << 9;
    b->states[children].has_children = true;
    for (size_t i = 0; i < n_labels; i++) {
        take_out(b, children ^ labels[i]);
        b->states[children ^ labels[i]].taken = true;
        a->units[children ^ labels[i]] = labels[i];
    }
    if (ends)
        a->units[children] = 1u << 31 | value;
    for (size_t i = w.first; i < w.last;) {
        const uint8_t byte = b->keys[i].bytes[w.depth];
        size_t end = i + 1;
        while (end < w.last && b->keys[end].bytes[w.depth] == byte)
            end++;
        if (!push_work(list, (work){i, end, w.depth + 1, children ^ key_byte(a, byte)}))
            return false;
        i = end;
    }
    return true;
}

bool double_array_build(double_array *a, const double_array_key *keys, size_t n_keys)
{
    builder b = {.a = a, .keys = keys};
    work_list list = {0};
    bool ok = add_block(&b);
    if (ok) {
        a->units[0] = n_keys > 0 ? 0 : 1u << 10; /* children at 1, which do not exist */
        ok = n_keys == 0 || push_work(&list, (work){0, n_keys, 0, 0});
    }
    while (ok && list.n > 0) {
        const work w = list.items[--list.n];
        ok = expand_node(&b, w, &list);
    }
    free(list.items);
    free(b.states);
    if (!ok)
        double_array_free(a);
    return ok;
}

bool double_array_of_tokens(double_array *a, const model *m, unsigned kinds, failure *err)
{
    double_array_key *keys = malloc(m->n_tokens * sizeof *keys + 1);
    model_byte_name names[256];
    size_t n = 0;
    bool built = true;
    if (!keys)
        return fail_memory(err);
    for (uint32_t id = 0; id < m->n_tokens && built; id++) {
        const model_token *t = &m->tokens[id];
        if ((kinds >> t->kind & 1) == 0 || t->n_bytes == 0)
            continue;
        const model_text text = model_token_text(m, id, &names[*model_token_bytes(m, id)]);
        if (!a->has_nul && memchr(text.s, 0, text.n_bytes))
            built = model_fail(err, 0, "the token with id %u contains a NUL", id);
        keys[n++] = (double_array_key){(const uint8_t *)text.s, (uint32_t)text.n_bytes, id};
    }
    if (built && n > 0) {
        qsort(keys, n, sizeof *keys, double_array_compare);
        built = double_array_build(a, keys, n) || fail_memory(err);
    }
    free(keys);
    return built;
}

void double_array_free(double_array *a)
{
    free(a->units);
    a->units = NULL;
    a->n_units = 0;
}

int double_array_compare(const void *a, const void *b)
{
    const double_array_key *x = a, *y = b;
    const uint32_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    const int order = n > 0 ? memcmp(x->bytes, y->bytes, n) : 0;
    return order != 0 ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

bool double_array_same(const double_array_key *a, const double_array_key *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}
