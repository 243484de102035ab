/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/words/long_words.h"

#include <stdlib.h>
#include <string.h>

#include "system/platform_memory.h"

#define MAX_BYTES 512 /* longer words hardly ever repeat */
#define MAX_IDS 1024
#define MAX_PROBES 16 /* words can be made to have similar hashes */

/* The bytes of the word and then its ids are at index `at` of the store, whose units have 4
 * bytes. */
typedef struct entry {
    uint32_t hash, at; /* at 0: free */
    uint16_t n_bytes, n_ids;
} entry;

struct long_words {
    entry *entries;
    size_t n_entries, n_words; /* a power of two; at most half are used */
    uint32_t *store;
    size_t stored, store_size; /* units */
};

long_words *long_words_new(size_t max_bytes)
{
    long_words *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->n_entries = 64;
    while (w->n_entries * 2 * sizeof(entry) <= max_bytes / 3)
        w->n_entries *= 2;
    w->store_size = max_bytes / 3 * 2 / sizeof *w->store + 2 * MAX_IDS;
    w->stored = 1;
    w->entries = tokmap_i_big_memory_new(w->n_entries * sizeof *w->entries);
    w->store = tokmap_i_big_memory_new(w->store_size * sizeof *w->store);
    if (!w->entries || !w->store) {
        long_words_free(w);
        return NULL;
    }
    return w;
}

void long_words_free(long_words *w)
{
    if (!w)
        return;
    tokmap_i_big_memory_free(w->entries, w->n_entries * sizeof *w->entries);
    tokmap_i_big_memory_free(w->store, w->store_size * sizeof *w->store);
    free(w);
}

/* n_bytes >= 8 */
static uint32_t hash_word(const uint8_t *word, size_t n_bytes)
{
    uint64_t hash = n_bytes * 0x9E3779B97F4A7C15u, x;
    for (size_t i = 0; i + 8 < n_bytes; i += 8) {
        memcpy(&x, word + i, 8);
        hash = (hash ^ x) * 0xC2B2AE3D27D4EB4Fu;
        hash ^= hash >> 29;
    }
    memcpy(&x, word + n_bytes - 8, 8);
    hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash >> 32);
}

/* The word, or the free place for it; NULL: there is none. */
static entry *find_entry(const long_words *w, const uint8_t *word, size_t n_bytes, uint32_t hash)
{
    for (size_t i = hash; i < (size_t)hash + MAX_PROBES; i++) {
        entry *e = &w->entries[i & (w->n_entries - 1)];
        if (e->at == 0)
            return e;
        if (e->hash == hash && e->n_bytes == n_bytes &&
            memcmp(w->store + e->at, word, n_bytes) == 0)
            return e;
    }
    return NULL;
}

static size_t store_units(size_t n_bytes)
{
    return (n_bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
}

static void store_word(long_words *w, entry *e, const entry *new_entry, const void *word,
                       const uint32_t *ids)
{
    const size_t n_units = store_units(new_entry->n_bytes);
    if (w->n_words * 2 >= w->n_entries || w->stored + n_units + new_entry->n_ids > w->store_size) {
        memset(w->entries, 0, w->n_entries * sizeof *w->entries);
        w->n_words = 0;
        w->stored = 1;
        e = &w->entries[new_entry->hash & (w->n_entries - 1)];
    }
    *e = *new_entry;
    e->at = (uint32_t)w->stored;
    memcpy(w->store + w->stored, word, e->n_bytes);
    memcpy(w->store + w->stored + n_units, ids, e->n_ids * sizeof *ids);
    w->stored += n_units + e->n_ids;
    w->n_words++;
}

bool long_words_encode(long_words *w, const uint8_t *word, size_t n_bytes,
                       const word_source *source, id_buffer *out)
{
    if (n_bytes > MAX_BYTES)
        return source->encode(source->context, word, n_bytes, out);
    const uint32_t hash = hash_word(word, n_bytes);
    entry *e = find_entry(w, word, n_bytes, hash);
    if (e && e->at != 0) {
        if (!id_buffer_reserve(out, e->n_ids))
            return false;
        memcpy(out->ids + out->n, w->store + e->at + store_units(n_bytes),
               e->n_ids * sizeof *out->ids);
        out->n += e->n_ids;
        return true;
    }
    const size_t before = out->n;
    if (!source->encode(source->context, word, n_bytes, out))
        return false;
    const size_t n_ids = out->n - before;
    if (!e || n_ids > MAX_IDS)
        return true;
    store_word(w, e, &(entry){hash, 0, (uint16_t)n_bytes, (uint16_t)n_ids}, word,
               out->ids + before);
    return true;
}
