/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/vocabulary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "system/platform_memory.h"
#include "tokenizer/model/name_table.h"

/* A token of at most 12 bytes is stored in one place with its length and id, so that a lookup is
 * one cache miss. */
typedef struct short_token {
    uint64_t low;
    uint32_t high;
    uint32_t length_and_id; /* 0: free */
} short_token;

#define SHORT_BYTES 12
#define MAX_PROBES 1000
#define ID_BITS 24

struct vocabulary {
    model own;          /* the tokens */
    name_table control; /* TOKEN_CONTROL; the rest is about TOKEN_NORMAL: */
    short_token *short_tokens;
    size_t n_short; /* places */
    uint32_t n_buckets;
    uint64_t *filter;  /* two bits for each short token: rejects most words that are not tokens */
    size_t n_filter;   /* words, a power of two */
    name_table longer; /* than SHORT_BYTES */
    size_t longest;
};

/* ---- Short tokens ---- */

#define BUCKET 4

static short_token short_key(const uint8_t *bytes, size_t n_bytes)
{
    uint64_t low = le_get64(bytes), high = le_get64(bytes + 8);
    const size_t n_low = n_bytes < 8 ? n_bytes : 8;
    low &= n_low > 0 ? UINT64_MAX >> (64 - 8 * n_low) : 0;
    high &= ((uint64_t)1 << 8 * (n_bytes - n_low)) - 1;
    return (short_token){low, (uint32_t)high, (uint32_t)(n_bytes + 1) << ID_BITS};
}

static uint64_t hash_key(const short_token *key)
{
    return (key->low ^ (uint64_t)key->high << 17) * 0x9E3779B97F4A7C15u +
           (key->high + key->length_and_id) * 0xC2B2AE3D27D4EB4Fu;
}

/* Returns the first place of the token's bucket. */
static size_t bucket_of(const vocabulary *v, uint64_t hash)
{
    return (size_t)((hash >> 32) * v->n_buckets >> 32) * BUCKET;
}

/* Returns the word that has both bits. */
static uint64_t *filter_word(const vocabulary *v, uint64_t hash, uint64_t *bits)
{
    *bits = (uint64_t)1 << (hash >> 26 & 63) | (uint64_t)1 << (hash >> 20 & 63);
    return &v->filter[hash >> 32 & (v->n_filter - 1)];
}

static bool same_token(const short_token *a, const short_token *b)
{
    return ((a->low ^ b->low) | (a->high ^ b->high) |
            (a->length_and_id ^ b->length_and_id) >> ID_BITS) == 0;
}

/* Searches without branches on what is found, as merge.c does for pairs. */
static uint32_t find_short(const vocabulary *v, const short_token *key)
{
    const uint64_t hash = hash_key(key);
    uint64_t bits;
    const uint64_t *word = filter_word(v, hash, &bits);
    __builtin_prefetch(&v->short_tokens[bucket_of(v, hash)]); /* while the bits are looked at */
    if ((*word & bits) != bits)
        return MODEL_NO_ID;
    for (size_t i = bucket_of(v, hash);; i = i + BUCKET == v->n_short ? 0 : i + BUCKET) {
        const short_token *bucket = &v->short_tokens[i];
        uint32_t found = 0;
        for (size_t k = 0; k < BUCKET; k++)
            found = same_token(&bucket[k], key) ? bucket[k].length_and_id : found;
        if (__builtin_expect(found != 0 || bucket[BUCKET - 1].length_and_id == 0, 1))
            return found == 0 ? MODEL_NO_ID : found & (((uint32_t)1 << ID_BITS) - 1);
    }
}

static bool add_short(vocabulary *v, const short_token *key, uint32_t id)
{
    size_t n_probes = 0;
    const uint64_t hash = hash_key(key);
    uint64_t bits;
    uint64_t *word = filter_word(v, hash, &bits);
    *word |= bits;
    size_t i = bucket_of(v, hash);
    for (; v->short_tokens[i].length_and_id != 0; i = i + 1 == v->n_short ? 0 : i + 1)
        if (same_token(&v->short_tokens[i], key) || ++n_probes == MAX_PROBES)
            return n_probes < MAX_PROBES;
    v->short_tokens[i] = *key;
    v->short_tokens[i].length_and_id |= id;
    return true;
}

static bool allocate_short(vocabulary *v, size_t n_tokens)
{
    v->n_buckets = (uint32_t)(n_tokens * 2 / BUCKET + 16);
    v->n_short = (size_t)v->n_buckets * BUCKET;
    v->n_filter = 16;
    while (v->n_filter * 64 < n_tokens * 12)
        v->n_filter *= 2;
    v->short_tokens = tokmap_i_big_memory_new(v->n_short * sizeof *v->short_tokens);
    v->filter = calloc(v->n_filter, sizeof *v->filter);
    return v->short_tokens && v->filter;
}

/* ---- New and free ---- */

static bool add_name(name_table *names, const model *m, uint32_t id)
{
    return name_table_add(names, model_token_bytes(m, id), m->tokens[id].n_bytes, id) <= NAME_THERE;
}

static bool add_token(vocabulary *v, const model *m, uint32_t id)
{
    const size_t n_bytes = m->tokens[id].n_bytes;
    if (m->tokens[id].kind == TOKEN_CONTROL)
        return add_name(&v->control, m, id);
    if (m->tokens[id].kind != TOKEN_NORMAL)
        return true;
    if (n_bytes > v->longest)
        v->longest = n_bytes;
    if (n_bytes > SHORT_BYTES)
        return add_name(&v->longer, m, id);
    const short_token key = short_key(model_token_bytes(m, id), n_bytes);
    return add_short(v, &key, id);
}

vocabulary *vocabulary_new(const model *m, failure *err)
{
    errno = 0;
    vocabulary *v = calloc(1, sizeof *v);
    size_t n_tokens = 0;
    for (size_t id = 0; id < m->n_tokens; id++)
        n_tokens += m->tokens[id].kind == TOKEN_NORMAL;
    bool made = v && model_copy_tokens(&v->own, m) && allocate_short(v, n_tokens);
    for (uint32_t id = 0; id < m->n_tokens && made; id++)
        made = add_token(v, m, id);
    if (made)
        return v;
    model_table_failed(err, "tokens");
    vocabulary_free(v);
    return NULL;
}

void vocabulary_free(vocabulary *v)
{
    if (!v)
        return;
    tokmap_i_big_memory_free(v->short_tokens, v->n_short * sizeof *v->short_tokens);
    free(v->filter);
    name_table_free(&v->longer);
    name_table_free(&v->control);
    model_free(&v->own);
    free(v);
}

const model *vocabulary_tokens(const vocabulary *v)
{
    return &v->own;
}

uint32_t vocabulary_find(const vocabulary *v, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes > v->longest)
        return MODEL_NO_ID;
    if (n_bytes > SHORT_BYTES)
        return name_table_find(&v->longer, bytes, n_bytes);
    const short_token key = short_key(bytes, n_bytes);
    return find_short(v, &key);
}

uint32_t vocabulary_find_any(const vocabulary *v, const void *bytes, size_t n_bytes)
{
    uint8_t padded[SHORT_BYTES + MODEL_PADDING] = {0};
    const uint32_t id = name_table_find(&v->control, bytes, n_bytes);
    if (id != NAME_TABLE_NONE || n_bytes > SHORT_BYTES)
        return id != NAME_TABLE_NONE ? id : vocabulary_find(v, bytes, n_bytes);
    memcpy(padded, bytes, n_bytes);
    return vocabulary_find(v, padded, n_bytes);
}

size_t vocabulary_longest(const vocabulary *v)
{
    return v->longest;
}
