/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/hash.h"
#include "system/platform_memory.h"

enum {
    MOST_PIECE = 8,      /* tokens of a piece */
    AT_ONCE = 128,       /* pieces that are hashed before the filter is asked */
    FILTER_BITS = 16,    /* for each piece, at least */
    LEAST_FILTER_LOG = 7 /* two words, so that a shift is below 64 */
};

/* A text of an example, and one of its n-grams: where they begin in `ids`. */
typedef struct text {
    uint32_t at, n_ids, example;
} text;
typedef struct gram {
    uint32_t at, example;
} gram;

struct ngrams {
    uint32_t n, token_bytes;
    uint32_t piece;  /* tokens of a piece; every n-gram has one at each of its first places */
    uint32_t stride; /* places between two lookups: n - piece + 1 */
    uint8_t *ids;    /* of all examples */
    size_t n_ids, room;
    text *texts;
    size_t n_texts, text_room;
    uint64_t n_grams; /* all n-grams; after finish, the different ones */
    gram *grams;
    uint64_t *filter; /* two bits in a word for each piece */
    unsigned filter_shift;
    uint32_t *slots; /* numbers of grams, from 1 on; 0: free */
    uint64_t n_filter, n_slots, most_grams;
};

/* ---- The index ---- */

ngrams *ngrams_open(uint32_t n, uint32_t token_bytes)
{
    ngrams *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->n = n;
    x->token_bytes = token_bytes;
    x->piece = MIN(n, MOST_PIECE);
    x->stride = n - x->piece + 1;
    return x;
}

void ngrams_close(ngrams *x)
{
    if (!x)
        return;
    free(x->ids);
    free(x->texts);
    tokmap_i_big_memory_free(x->grams, x->most_grams * sizeof *x->grams);
    tokmap_i_big_memory_free(x->filter, x->n_filter * sizeof *x->filter);
    tokmap_i_big_memory_free(x->slots, x->n_slots * sizeof *x->slots);
    free(x);
}

bool ngrams_add(ngrams *x, const uint32_t *ids, size_t n_ids, uint32_t example)
{
    if (n_ids < x->n)
        return true;
    if (n_ids > UINT32_MAX - 1 - x->n_ids ||
        !array_reserve(&x->ids, &x->room, (x->n_ids + n_ids) * x->token_bytes, 1) ||
        !array_reserve(&x->texts, &x->text_room, x->n_texts + 1, sizeof *x->texts))
        return false;
    for (size_t i = 0; i < n_ids; i++)
        memcpy(x->ids + (x->n_ids + i) * x->token_bytes, &ids[i], x->token_bytes);
    x->texts[x->n_texts++] = (text){(uint32_t)x->n_ids, (uint32_t)n_ids, example};
    x->n_ids += n_ids;
    x->n_grams += n_ids - x->n + 1;
    return true;
}

static const uint8_t *token_at(const ngrams *x, const uint8_t *tokens, size_t i)
{
    return tokens + i * x->token_bytes;
}

static uint64_t filter_bits(uint64_t key)
{
    return UINT64_C(1) << (key & 63) | UINT64_C(1) << (key >> 6 & 63);
}

static uint64_t first_slot(const ngrams *x, uint64_t key)
{
    return key >> 12 & (x->n_slots - 1);
}

/* Finds the slot of an n-gram: free, or with the same tokens. */
static uint32_t *find_slot(const ngrams *x, const uint8_t *tokens, uint64_t key)
{
    const size_t n_bytes = (size_t)x->n * x->token_bytes;
    uint64_t at = first_slot(x, key);
    while (x->slots[at] &&
           memcmp(token_at(x, x->ids, x->grams[x->slots[at] - 1].at), tokens, n_bytes) != 0)
        at = (at + 1) & (x->n_slots - 1);
    return &x->slots[at];
}

static void add_text(ngrams *x, const text *t)
{
    const uint8_t *const tokens = token_at(x, x->ids, t->at);
    for (uint32_t i = 0; i + x->piece <= t->n_ids; i++) {
        const uint64_t key =
            tokmap_i_checksum(token_at(x, tokens, i), (size_t)x->piece * x->token_bytes);
        x->filter[key >> x->filter_shift] |= filter_bits(key);
    }
    for (uint32_t i = 0; i + x->n <= t->n_ids; i++) {
        const uint8_t *const first = token_at(x, tokens, i);
        const uint64_t key = tokmap_i_checksum(first, (size_t)x->n * x->token_bytes);
        uint32_t *const slot = find_slot(x, first, key);
        if (*slot)
            continue;
        x->grams[x->n_grams++] = (gram){t->at + i, t->example};
        *slot = (uint32_t)x->n_grams;
    }
}

bool ngrams_finish(ngrams *x)
{
    unsigned filter_log = LEAST_FILTER_LOG;
    const uint64_t n_pieces = x->n_grams + x->n_texts * (x->stride - 1);
    while (UINT64_C(1) << filter_log < n_pieces * FILTER_BITS)
        filter_log++;
    x->filter_shift = 64 - (filter_log - 6);
    x->n_filter = UINT64_C(1) << (filter_log - 6);
    x->n_slots = 2;
    while (x->n_slots < 2 * x->n_grams)
        x->n_slots *= 2;
    x->most_grams = x->n_grams + 1;
    x->filter = tokmap_i_big_memory_new(x->n_filter * sizeof *x->filter);
    x->slots = tokmap_i_big_memory_new(x->n_slots * sizeof *x->slots);
    x->grams = tokmap_i_big_memory_new(x->most_grams * sizeof *x->grams);
    if (!x->filter || !x->slots || !x->grams)
        return false;
    x->n_grams = 0;
    for (size_t i = 0; i < x->n_texts; i++)
        add_text(x, &x->texts[i]);
    return true;
}

uint64_t ngrams_count(const ngrams *x)
{
    return x->n_grams;
}

/* ---- Scan ---- */

/* Adds an n-gram at a place to the last run of the document, or begins one. first_run: of the
 * document. */
static bool add_hit(ngrams_found *f, size_t first_run, uint64_t at, const gram *g, uint32_t n)
{
    ngrams_run *last = f->n_runs > first_run ? &f->runs[f->n_runs - 1] : NULL;
    f->n_ngrams++;
    if (last && at + n == last->at + last->n_tokens + 1) {
        last->n_tokens++;
        return true;
    }
    if (!array_reserve(&f->runs, &f->room, f->n_runs + 1, sizeof *f->runs))
        return false;
    f->runs[f->n_runs++] = (ngrams_run){at, n, g->example};
    return true;
}

/* Looks at each place, from `first` until `end`, whether an n-gram begins there. */
static bool scan_places(const ngrams *x, const uint8_t *tokens, size_t first, size_t end,
                        size_t first_run, ngrams_found *f)
{
    uint64_t keys[NGRAMS_MOST_TOKENS];
    bool ok = true;
    for (size_t at = first; at < end; at++) {
        const uint64_t key =
            tokmap_i_checksum(token_at(x, tokens, at), (size_t)x->n * x->token_bytes);
        keys[at - first] = key;
        __builtin_prefetch(&x->slots[first_slot(x, key)]);
    }
    for (size_t at = first; at < end && ok; at++) {
        const uint32_t slot = *find_slot(x, token_at(x, tokens, at), keys[at - first]);
        if (slot)
            ok = add_hit(f, first_run, at, &x->grams[slot - 1], x->n);
    }
    return ok;
}

bool ngrams_scan(const ngrams *x, const void *tokens, size_t n_tokens, ngrams_found *found)
{
    const size_t piece_bytes = (size_t)x->piece * x->token_bytes, stride = x->stride;
    const size_t first_run = found->n_runs;
    uint64_t keys[AT_ONCE];
    bool ok = true;
    if (n_tokens < x->n || x->n_grams == 0)
        return true;
    const size_t n_places = n_tokens - x->n + 1;
    for (size_t first = 0; first < n_places && ok; first += AT_ONCE * stride) {
        const size_t n_here = MIN((n_places - first + stride - 1) / stride, AT_ONCE);
        for (size_t k = 0; k < n_here; k++) {
            const size_t at = MIN(first + (k + 1) * stride, n_places) - 1;
            keys[k] = tokmap_i_checksum(token_at(x, tokens, at), piece_bytes);
            __builtin_prefetch(&x->filter[keys[k] >> x->filter_shift]);
        }
        for (size_t k = 0; k < n_here && ok; k++) {
            const uint64_t bits = filter_bits(keys[k]);
            const size_t at = first + k * stride;
            if (__builtin_expect((x->filter[keys[k] >> x->filter_shift] & bits) == bits, 0))
                ok = scan_places(x, tokens, at, MIN(at + stride, n_places), first_run, found);
        }
    }
    return ok;
}

const ngrams_run *ngrams_longest(const ngrams_run *runs, size_t n_runs)
{
    const ngrams_run *longest = runs;
    for (size_t i = 1; i < n_runs; i++)
        if (runs[i].n_tokens > longest->n_tokens)
            longest = &runs[i];
    return longest;
}
