/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/le.h"

enum {
    AT_ONCE = 256,       /* hashes that are computed before the filter is asked */
    FILTER_BITS = 16,    /* for each n-gram, at least */
    LEAST_FILTER_LOG = 7 /* two words, so that a shift is below 64 */
};

static const uint64_t base = 0x9E3779B97F4A7C15, multiplier = 0xD6E8FEB86659FD93;

typedef struct gram {
    uint32_t at, example; /* the first of its tokens in `ids` */
} gram;

struct ngrams {
    uint32_t n;
    uint64_t oldest; /* the weight of the first token of n in the hash */
    uint32_t *ids;   /* of all examples */
    size_t n_ids, room;
    gram *grams; /* until finish all, then the different ones */
    size_t n_grams, gram_room;
    uint64_t *filter; /* two bits in a word for each n-gram */
    unsigned filter_shift;
    uint32_t *slots; /* numbers of grams, from 1 on; 0: free */
    uint64_t slot_mask;
};

/* ---- Hashes ---- */

static uint64_t mix(uint64_t hash)
{
    return (hash ^ hash >> 32) * multiplier;
}

static uint64_t add_token(uint64_t hash, uint32_t token)
{
    return hash * base + (token + UINT64_C(1));
}

static uint64_t filter_bits(uint64_t key)
{
    return UINT64_C(1) << (key >> 4 & 63) | UINT64_C(1) << (key >> 10 & 63);
}

static uint64_t key_of(const ngrams *x, const gram *g)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < x->n; i++)
        hash = add_token(hash, x->ids[g->at + i]);
    return mix(hash);
}

/* ---- The index ---- */

ngrams *ngrams_open(uint32_t n)
{
    ngrams *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->n = n;
    x->oldest = 1;
    for (uint32_t i = 1; i < n; i++)
        x->oldest *= base;
    return x;
}

void ngrams_close(ngrams *x)
{
    if (!x)
        return;
    free(x->ids);
    free(x->grams);
    free(x->filter);
    free(x->slots);
    free(x);
}

bool ngrams_add(ngrams *x, const uint32_t *ids, size_t n_ids, uint32_t example)
{
    if (n_ids < x->n)
        return true;
    const size_t n_new = n_ids - x->n + 1;
    if (n_ids > UINT32_MAX - 1 - x->n_ids ||
        !array_reserve(&x->ids, &x->room, x->n_ids + n_ids, sizeof *x->ids) ||
        !array_reserve(&x->grams, &x->gram_room, x->n_grams + n_new, sizeof *x->grams))
        return false;
    memcpy(x->ids + x->n_ids, ids, n_ids * sizeof *ids);
    for (size_t i = 0; i < n_new; i++)
        x->grams[x->n_grams++] = (gram){(uint32_t)(x->n_ids + i), example};
    x->n_ids += n_ids;
    return true;
}

/* Finds the slot of an n-gram: free, or with the same tokens. */
static uint32_t *find_slot(const ngrams *x, const gram *g, uint64_t key)
{
    uint64_t at = key >> 20 & x->slot_mask;
    while (x->slots[at] && memcmp(x->ids + x->grams[x->slots[at] - 1].at, x->ids + g->at,
                                  x->n * sizeof *x->ids) != 0)
        at = (at + 1) & x->slot_mask;
    return &x->slots[at];
}

bool ngrams_finish(ngrams *x)
{
    unsigned filter_log = LEAST_FILTER_LOG;
    uint64_t n_slots = 2;
    while (UINT64_C(1) << filter_log < x->n_grams * FILTER_BITS)
        filter_log++;
    while (n_slots < 2 * x->n_grams)
        n_slots *= 2;
    x->filter = calloc((size_t)1 << (filter_log - 6), sizeof *x->filter);
    x->filter_shift = 64 - (filter_log - 6);
    x->slots = calloc(n_slots, sizeof *x->slots);
    x->slot_mask = n_slots - 1;
    if (!x->filter || !x->slots)
        return false;
    size_t n_different = 0;
    for (size_t i = 0; i < x->n_grams; i++) {
        const gram g = x->grams[i];
        const uint64_t key = key_of(x, &g);
        uint32_t *slot = find_slot(x, &g, key);
        if (*slot)
            continue;
        x->grams[n_different++] = g;
        *slot = (uint32_t)n_different;
        x->filter[key >> x->filter_shift] |= filter_bits(key);
    }
    x->n_grams = n_different;
    return true;
}

uint64_t ngrams_count(const ngrams *x)
{
    return x->n_grams;
}

/* ---- Scan ---- */

static inline uint32_t token_at(const uint8_t *tokens, size_t i, uint32_t token_bytes)
{
    return token_bytes == 2 ? le_get16(tokens + 2 * i) : le_get32(tokens + 4 * i);
}

/* Returns the n-gram that begins at a token; NULL: no example has it. */
static const gram *find(const ngrams *x, uint64_t key, const uint8_t *tokens, uint32_t token_bytes)
{
    for (uint64_t at = key >> 20 & x->slot_mask; x->slots[at]; at = (at + 1) & x->slot_mask) {
        const gram *g = &x->grams[x->slots[at] - 1];
        uint32_t i = 0;
        while (i < x->n && x->ids[g->at + i] == token_at(tokens, i, token_bytes))
            i++;
        if (i == x->n)
            return g;
    }
    return NULL;
}

typedef struct run {
    uint64_t at, n; /* the first n-gram, and how many follow each other */
    uint32_t example;
} run;

static void add_hit(ngrams_found *f, run *r, uint64_t at, const gram *g, uint32_t n)
{
    if (r->n == 0 || r->at + r->n != at)
        *r = (run){at, 0, g->example};
    r->n++;
    f->n_ngrams++;
    if (r->n + n - 1 > f->longest)
        *f = (ngrams_found){f->n_ngrams, r->n + n - 1, r->at, r->example};
}

static inline void scan(const ngrams *x, const uint8_t *tokens, uint32_t token_bytes,
                        size_t n_tokens, ngrams_found *f)
{
    const uint32_t n = x->n;
    uint64_t keys[AT_ONCE], hash = 0;
    run r = {0};
    for (uint32_t i = 0; i + 1 < n; i++)
        hash = add_token(hash, token_at(tokens, i, token_bytes));
    for (size_t first = 0; first + n <= n_tokens;) {
        const size_t n_here = MIN(n_tokens - n + 1 - first, AT_ONCE);
        for (size_t k = 0; k < n_here; k++) {
            hash = add_token(hash, token_at(tokens, first + k + n - 1, token_bytes));
            keys[k] = mix(hash);
            __builtin_prefetch(&x->filter[keys[k] >> x->filter_shift]);
            hash -= (token_at(tokens, first + k, token_bytes) + UINT64_C(1)) * x->oldest;
        }
        for (size_t k = 0; k < n_here; k++) {
            const uint64_t bits = filter_bits(keys[k]);
            if (__builtin_expect((x->filter[keys[k] >> x->filter_shift] & bits) != bits, 1))
                continue;
            const gram *g = find(x, keys[k], tokens + (first + k) * token_bytes, token_bytes);
            if (g)
                add_hit(f, &r, first + k, g, n);
        }
        first += n_here;
    }
}

void ngrams_scan(const ngrams *x, const void *tokens, uint32_t token_bytes, size_t n_tokens,
                 ngrams_found *found)
{
    if (n_tokens < x->n || x->n_grams == 0)
        return;
    if (token_bytes == 2)
        scan(x, tokens, 2, n_tokens, found);
    else
        scan(x, tokens, 4, n_tokens, found);
}
