/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/word_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "system/platform_memory.h"
#include "tokenizer/merge/word_positions.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- Words of more than 15 bytes ---- */

#define MAX_LONG_BYTES 512 /* longer words hardly ever repeat */
#define MAX_LONG_IDS 1024
#define LONG_PROBES 16 /* words can be made to have similar hashes */

/* The bytes of the word and then its ids are at index `at` of the store, whose units have 4
 * bytes. */
typedef struct entry {
    uint32_t hash, at; /* at 0: free */
    uint16_t n_bytes, n_ids;
} entry;

typedef struct long_words {
    entry *entries;
    size_t n_entries, n_words; /* a power of two; at most half are used */
    uint32_t *store;
    size_t stored, store_size; /* units */
} long_words;

static bool allocate_long(long_words *w, size_t max_bytes)
{
    w->n_entries = 64;
    while (w->n_entries * 2 * sizeof(entry) <= max_bytes / 3)
        w->n_entries *= 2;
    w->store_size = max_bytes / 3 * 2 / sizeof *w->store + 2 * MAX_LONG_IDS;
    w->stored = 1;
    w->entries = tokmap_i_big_memory_new(w->n_entries * sizeof *w->entries);
    w->store = tokmap_i_big_memory_new(w->store_size * sizeof *w->store);
    return w->entries && w->store;
}

/* n_bytes >= 8 */
static uint32_t hash_long(const uint8_t *word, size_t n_bytes)
{
    uint64_t hash = n_bytes * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i + 8 < n_bytes; i += 8) {
        hash = (hash ^ le_get64(word + i)) * 0xC2B2AE3D27D4EB4Fu;
        hash ^= hash >> 29;
    }
    hash = (hash ^ le_get64(word + n_bytes - 8)) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32) * 0xC2B2AE3D27D4EB4Fu; /* the last bytes are only in the top bits */
    return (uint32_t)(hash >> 32);
}

/* Returns the word, or the free place for it; NULL: there is none. */
static entry *find_entry(const long_words *w, const uint8_t *word, size_t n_bytes, uint32_t hash)
{
    for (size_t i = hash; i < (size_t)hash + LONG_PROBES; i++) {
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

static void store_long(long_words *w, entry *e, const entry *new_entry, const void *word,
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

static bool long_words_encode(long_words *w, const uint8_t *word, size_t n_bytes,
                              const word_source *source, id_buffer *out)
{
    if (n_bytes > MAX_LONG_BYTES)
        return source->encode(source->context, word, n_bytes, out);
    const uint32_t hash = hash_long(word, n_bytes);
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
    if (!e || n_ids > MAX_LONG_IDS)
        return true;
    store_long(w, e, &(entry){hash, 0, (uint16_t)n_bytes, (uint16_t)n_ids}, word,
               out->ids + before);
    return true;
}

/* ---- Shorter ones ---- */

/* A word of at most 15 bytes and its length: never 0, which means free. */
typedef struct key {
    uint64_t low, high;
} key;

/* Up to 4 ids, with their number in the top byte of the first. If that is MANY: ids[1] is their
 * index in `many`, ids[2] their number. */
typedef struct value {
    uint32_t ids[4];
} value;

#define COUNT_SHIFT 24
#define ID_MASK (((uint32_t)1 << COUNT_SHIFT) - 1)
#define MANY 0xFFu
#define MAX_INLINE 4

typedef struct line {
    key keys[2];
    value values[2];
} line;

#define SHORT_BYTES 15
#define FIRST_LINES ((size_t)1 << 16)
#define MAX_LINES ((size_t)1 << 30)
#define PROBES 16 /* lines in which a word may be, from its own on */

typedef bool encode_words_fn(word_cache *c, const uint8_t *text, size_t n_words, id_buffer *out);

struct word_cache {
    line *lines;
    size_t n_lines;
    unsigned shift; /* from a hash to its line */
    size_t n_words, max_lines;
    id_buffer many;
    size_t max_many;
    long_words longer;
    word_source source;
    word_positions_fn *find_positions;
    encode_words_fn *encode_words;
    uint32_t positions[WORD_POSITIONS_ROOM];
    key keys[WORD_POSITIONS_MAX];
    uint64_t hashes[WORD_POSITIONS_MAX];
};

static bool set_lines(word_cache *c, size_t n_lines)
{
    line *lines = tokmap_i_big_memory_new(n_lines * sizeof *lines);
    if (!lines)
        return false;
    c->lines = lines;
    c->n_lines = n_lines;
    c->shift = 64 - (unsigned)__builtin_ctzll(n_lines);
    return true;
}

/* The top bits are the best mixed. */
static uint64_t hash_key(key k)
{
    return (k.low ^ (k.high >> 31 | k.high << 33)) * 0x9E3779B97F4A7C15u +
           k.high * 0xC2B2AE3D27D4EB4Fu;
}

static bool same_key(key a, key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

/* A place in a line; key NULL: there is none. */
typedef struct place {
    key *key;
    value *value;
} place;

/* Whether the word is in the table; *p: its place, or the free one for it within the probes. */
static bool find_word(const word_cache *c, key k, uint64_t hash, place *p)
{
    const size_t first = hash >> c->shift;
    for (size_t i = 0; i < 2 * PROBES; i++) {
        line *l = &c->lines[(first + i / 2) & (c->n_lines - 1)];
        *p = (place){&l->keys[i & 1], &l->values[i & 1]};
        if (same_key(*p->key, k))
            return true;
        if (p->key->high == 0)
            return false;
    }
    *p = (place){0};
    return false;
}

static void empty_cache(word_cache *c)
{
    memset(c->lines, 0, c->n_lines * sizeof *c->lines);
    c->n_words = 0;
    c->many.n = 0;
}

static bool can_grow(const word_cache *c)
{
    return c->n_lines * 2 <= c->max_lines;
}

/* Doubles the table. Words that no longer fit are dropped; without memory all are. */
static void grow_cache(word_cache *c)
{
    line *old = c->lines;
    const size_t n_old = c->n_lines;
    if (!set_lines(c, n_old * 2)) {
        empty_cache(c);
        return;
    }
    c->n_words = 0;
    for (size_t i = 0; i < 2 * n_old; i++) {
        const key k = old[i / 2].keys[i & 1];
        place p = {0};
        if (k.high)
            find_word(c, k, hash_key(k), &p);
        if (p.key) {
            *p.key = k;
            *p.value = old[i / 2].values[i & 1];
            c->n_words++;
        }
    }
    tokmap_i_big_memory_free(old, n_old * sizeof *old);
}

static bool make_value(word_cache *c, const uint32_t *ids, size_t n, value *v)
{
    memset(v, 0, sizeof *v);
    if (n <= MAX_INLINE) {
        memcpy(v->ids, ids, n * sizeof *ids);
        v->ids[0] |= (uint32_t)n << COUNT_SHIFT;
        return true;
    }
    if (c->many.n + n > c->max_many || !id_buffer_reserve(&c->many, n))
        return false;
    *v = (value){{MANY << COUNT_SHIFT, (uint32_t)c->many.n, (uint32_t)n}};
    memcpy(c->many.ids + c->many.n, ids, n * sizeof *ids);
    c->many.n += n;
    return true;
}

static void store_word(word_cache *c, key k, const uint32_t *ids, size_t n)
{
    place p;
    value v;
    if (c->many.n + n > c->max_many)
        empty_cache(c);
    else if (c->n_words > c->n_lines && can_grow(c))
        grow_cache(c);
    if (!make_value(c, ids, n, &v))
        return;
    const uint64_t hash = hash_key(k);
    const bool found = find_word(c, k, hash, &p);
    if (!p.key && can_grow(c)) {
        grow_cache(c);
        return;
    }
    if (!p.key) {
        line *own = &c->lines[hash >> c->shift];
        p = (place){&own->keys[0], &own->values[0]};
    } else {
        c->n_words += !found;
    }
    *p.key = k;
    *p.value = v;
}

/* ---- Words ---- */

static bool append_value(word_cache *c, const value *v, id_buffer *out)
{
    const uint32_t count = v->ids[0] >> COUNT_SHIFT;
    const uint32_t *ids = count == MANY ? c->many.ids + v->ids[1] : v->ids;
    const size_t n = count == MANY ? v->ids[2] : count;
    if (!id_buffer_reserve(out, n))
        return false;
    if (n == 0)
        return true;
    memcpy(out->ids + out->n, ids, n * sizeof *out->ids);
    if (count != MANY)
        out->ids[out->n] &= ID_MASK;
    out->n += n;
    return true;
}

/* For a word that is not in its own line, is long, or has many ids. */
__attribute__((noinline)) static bool encode_slowly(word_cache *c, const uint8_t *word, size_t i,
                                                    id_buffer *out)
{
    const size_t n_bytes = c->positions[i + 1] - c->positions[i];
    if (n_bytes > SHORT_BYTES)
        return long_words_encode(&c->longer, word, n_bytes, &c->source, out);
    const key k = c->keys[i];
    place p;
    if (find_word(c, k, c->hashes[i], &p))
        return append_value(c, p.value, out);
    const size_t before = out->n;
    if (!c->source.encode(c->source.context, word, n_bytes, out))
        return false;
    store_word(c, k, out->ids + before, out->n - before);
    return true;
}

/* Masks for the first n bytes of 16, with the length in the last byte. Longer words get a key that
 * no word has. */
static const struct {
    uint64_t low, high, length;
} masks[SHORT_BYTES + 2] = {
#define MASK(n)                                                                                    \
    {                                                                                              \
        (n) >= 8 ? UINT64_MAX : ((uint64_t)1 << ((n)*8 % 64)) - 1,                                 \
            (n) <= 8 ? 0 : ((uint64_t)1 << ((n)*8 % 64)) - 1, (uint64_t)(n) << 56                  \
    }
    MASK(0),
    MASK(1),
    MASK(2),
    MASK(3),
    MASK(4),
    MASK(5),
    MASK(6),
    MASK(7),
    MASK(8),
    MASK(9),
    MASK(10),
    MASK(11),
    MASK(12),
    MASK(13),
    MASK(14),
    MASK(15),
    {0, 0, (uint64_t)0xFF << 56},
#undef MASK
};

static void make_keys(word_cache *c, const uint8_t *text, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        const uint8_t *word = text + c->positions[i];
        const size_t n_bytes = c->positions[i + 1] - c->positions[i];
        const size_t n = n_bytes <= SHORT_BYTES ? n_bytes : SHORT_BYTES + 1;
        c->keys[i].low = le_get64(word) & masks[n].low;
        c->keys[i].high = (le_get64(word + 8) & masks[n].high) | masks[n].length;
        c->hashes[i] = hash_key(c->keys[i]);
        __builtin_prefetch(&c->lines[c->hashes[i] >> c->shift]);
    }
}

/* Returns which word of the line this is: bit 0, the first; bit 2, the second. */
typedef unsigned in_line_fn(const line *l, const key *k);

static inline unsigned in_line(const line *l, const key *k)
{
    return (unsigned)same_key(l->keys[0], *k) | (unsigned)same_key(l->keys[1], *k) << 2;
}

/* Encodes the words between positions[0] and positions[n_words]. */
static inline __attribute__((always_inline)) bool encode_words_by(word_cache *c,
                                                                  const uint8_t *text,
                                                                  size_t n_words, id_buffer *out,
                                                                  in_line_fn *find)
{
    make_keys(c, text, n_words);
    if (!id_buffer_reserve(out, (n_words + 1) * MAX_INLINE))
        return false;
    uint32_t *ids = out->ids + out->n;
    for (size_t i = 0; i < n_words; i++) {
        const line *l = &c->lines[c->hashes[i] >> c->shift];
        const unsigned found = find(l, &c->keys[i]);
        const value *v = &l->values[found >> 2];
        const uint32_t count = v->ids[0] >> COUNT_SHIFT;
        if (__builtin_expect(found != 0 && count <= MAX_INLINE, 1)) {
            memcpy(ids, v->ids, sizeof v->ids);
            ids[0] = v->ids[0] & ID_MASK;
            ids += count;
            continue;
        }
        out->n = (size_t)(ids - out->ids);
        if (!encode_slowly(c, text + c->positions[i], i, out) ||
            !id_buffer_reserve(out, (n_words - i + 1) * MAX_INLINE))
            return false;
        ids = out->ids + out->n;
    }
    out->n = (size_t)(ids - out->ids);
    return true;
}

static bool encode_words_scalar(word_cache *c, const uint8_t *text, size_t n_words, id_buffer *out)
{
    return encode_words_by(c, text, n_words, out, in_line);
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

AVX2 static inline unsigned in_line_avx2(const line *l, const key *k)
{
    const __m256i keys = _mm256_loadu_si256((const __m256i *)l->keys);
    const __m256i wanted = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)k));
    const __m256i halves = _mm256_cmpeq_epi64(keys, wanted);
    const unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(halves));
    return same & same >> 1 & 5;
}

AVX2 static bool encode_words_avx2(word_cache *c, const uint8_t *text, size_t n_words,
                                   id_buffer *out)
{
    return encode_words_by(c, text, n_words, out, in_line_avx2);
}

#endif

bool word_cache_encode(word_cache *c, const uint8_t *text, size_t n_bytes, const uint64_t *starts,
                       id_buffer *out)
{
    size_t n = 0; /* positions still to do */
    for (size_t word = 0, n_bitmap = (n_bytes + 63) / 64; word < n_bitmap;) {
        n = c->find_positions(starts, &word, n_bitmap, c->positions, n);
        if (word < n_bitmap) {
            if (!c->encode_words(c, text, n - 1, out))
                return false;
            c->positions[0] = c->positions[n - 1];
            n = 1;
        }
    }
    c->positions[n] = (uint32_t)n_bytes;
    return n == 0 || c->encode_words(c, text, n, out);
}

/* ---- New and free ---- */

word_cache *word_cache_new(size_t max_bytes, word_source source, simd_level level)
{
    word_cache *c = aligned_alloc(64, (sizeof *c + 63) & ~(size_t)63);
    if (!c)
        return NULL;
    memset(c, 0, sizeof *c);
    c->source = source;
    c->find_positions = word_positions(level);
    c->encode_words = encode_words_scalar;
#if defined(__x86_64__)
    if (level != SIMD_SCALAR && simd_works(SIMD_AVX2))
        c->encode_words = encode_words_avx2;
#endif
    c->max_lines = 64;
    while (c->max_lines < MAX_LINES && c->max_lines * 2 * sizeof(line) <= max_bytes / 4 * 3)
        c->max_lines *= 2;
    c->max_many = max_bytes / 16 / sizeof(uint32_t);
    if (c->max_many > UINT32_MAX / 2)
        c->max_many = UINT32_MAX / 2;
    if (!allocate_long(&c->longer, max_bytes / 16 * 3) ||
        !set_lines(c, c->max_lines < FIRST_LINES ? c->max_lines : FIRST_LINES)) {
        word_cache_free(c);
        return NULL;
    }
    return c;
}

void word_cache_free(word_cache *c)
{
    if (!c)
        return;
    tokmap_i_big_memory_free(c->lines, c->n_lines * sizeof *c->lines);
    id_buffer_free(&c->many);
    tokmap_i_big_memory_free(c->longer.entries, c->longer.n_entries * sizeof *c->longer.entries);
    tokmap_i_big_memory_free(c->longer.store, c->longer.store_size * sizeof *c->longer.store);
    free(c);
}
