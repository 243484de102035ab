/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/char_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

#define MARK 0x2581u

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    left = left == ' ' ? MARK : left;
    right = right == ' ' ? MARK : right;
    return (uint64_t)left << 32 | right;
}

#define FREE UINT64_MAX
#define FIRST_SLOTS ((size_t)1 << 10)
#define MAX_PROBES 1000 /* pairs can be made to collide */

/* The pair's slot, or the free one for it; NULL: too many pairs have the same hash. */
static uint64_t *find_slot(const char_pairs *p, uint64_t pair)
{
    const uint64_t hash = (pair ^ pair >> 32) * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < MAX_PROBES; i++) {
        uint64_t *slot = &p->slots[((size_t)(hash >> 32) + i) & (p->n_slots - 1)];
        if (*slot == pair || *slot == FREE)
            return slot;
    }
    return NULL;
}

static void put_pair(char_pairs *p, uint64_t pair)
{
    uint64_t *slot = find_slot(p, pair);
    p->all |= !slot;
    if (!slot || *slot == pair)
        return;
    *slot = pair;
    p->n++;
}

static bool grow_table(char_pairs *p)
{
    const char_pairs old = *p;
    p->n = 0;
    p->n_slots = old.n_slots ? old.n_slots * 2 : FIRST_SLOTS;
    p->slots = malloc(p->n_slots * sizeof *p->slots);
    if (!p->slots) {
        *p = old;
        p->no_memory = true;
        return false;
    }
    memset(p->slots, 0xFF, p->n_slots * sizeof *p->slots);
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i] != FREE)
            put_pair(p, old.slots[i]);
    free(old.slots);
    return true;
}

void char_pairs_add(char_pairs *p, uint32_t left, uint32_t right)
{
    if (p->n * 2 >= p->n_slots && !grow_table(p))
        return;
    put_pair(p, pair_of(left, right));
}

void char_pairs_add_text(char_pairs *p, const uint8_t *text, size_t n_bytes)
{
    uint32_t before = 0, c;
    for (size_t at = 0, length; at < n_bytes; at += length) {
        length = utf8_decode(text + at, n_bytes - at, &c);
        if (length == 0) {
            p->all = true;
            return;
        }
        if (at > 0)
            char_pairs_add(p, before, c);
        before = c;
    }
}

static bool has_exactly(const char_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t pair = pair_of(left, right);
    const uint64_t *slot = p->n > 0 ? find_slot(p, pair) : NULL;
    return slot && *slot == pair;
}

bool char_pairs_has(const char_pairs *p, uint32_t left, uint32_t right)
{
    return p->all || has_exactly(p, left, right) || has_exactly(p, left, CHAR_ANY) ||
           has_exactly(p, CHAR_ANY, right);
}

void char_pairs_free(char_pairs *p)
{
    free(p->slots);
    *p = (char_pairs){0};
}
