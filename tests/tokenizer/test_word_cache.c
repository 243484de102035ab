/* SPDX-License-Identifier: Apache-2.0 */
/* test_word_cache.c - words get their own ids, whatever the cache holds and with any vectors. */

#include "support/check.h"
#include "tokenizer/merge/word_cache.h"

#define TEXT_BYTES 20000
#define KINDS 40000 /* of words */

static uint64_t mixed(uint64_t x)
{
    x *= 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

/* The ids of a word depend on all of its bytes. There are 0 to 11, mostly 1. */
static size_t ids_of(const uint8_t *word, size_t n_bytes, uint32_t ids[11])
{
    uint64_t hash = n_bytes;
    for (size_t i = 0; i < n_bytes; i++)
        hash = mixed(hash ^ word[i]);
    const size_t n = hash % 3 ? 1 : hash / 3 % 12;
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)(mixed(hash + i) % WORD_CACHE_MAX_ID);
    return n;
}

static bool encode_new(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    uint32_t ids[11];
    const size_t n = ids_of(word, n_bytes, ids);
    ++*(size_t *)context;
    for (size_t i = 0; i < n; i++)
        CHECK(id_buffer_append(out, ids[i]));
    return true;
}

/* A word of one kind is always the same; words of neighbouring kinds differ in one byte. */
static size_t put_word(uint8_t *at, uint64_t kind)
{
    const size_t n_bytes = kind % 97 == 0 ? 16 + kind % 40 : 1 + mixed(kind / 8) % 15;
    for (size_t i = 0; i < n_bytes; i++)
        at[i] = (uint8_t)mixed(kind / 8 + i);
    at[n_bytes / 2] ^= (uint8_t)(kind % 8);
    return n_bytes;
}

typedef struct some_text {
    uint8_t bytes[TEXT_BYTES + 64 + TEXT_PADDING];
    uint64_t starts[TEXT_BYTES / 64 + 2];
    size_t n_bytes;
    id_buffer ids;
} some_text;

static void make_text(some_text *t, uint64_t seed)
{
    memset(t->starts, 0, sizeof t->starts);
    t->n_bytes = t->ids.n = 0;
    for (uint64_t i = 0; t->n_bytes + 56 < TEXT_BYTES; i++) {
        const uint64_t draw = mixed(seed * 1000003 + i);
        uint8_t *word = t->bytes + t->n_bytes;
        size_t unused = 0;
        t->starts[t->n_bytes / 64] |= (uint64_t)1 << t->n_bytes % 64;
        const size_t n_bytes = put_word(word, draw % (draw >> 40 & 1 ? KINDS : 500));
        CHECK(encode_new(&unused, word, n_bytes, &t->ids));
        t->n_bytes += n_bytes;
    }
}

static size_t words_encoded(size_t cache_bytes, simd_level level)
{
    static some_text t;
    size_t n_new = 0;
    id_buffer got = {0};
    word_cache *c = word_cache_new(cache_bytes, (word_source){encode_new, &n_new}, level);
    CHECK(c != NULL);
    for (uint64_t seed = 0; seed < 60; seed++) {
        make_text(&t, seed % 40);
        got.n = 0;
        CHECK(word_cache_encode(c, t.bytes, t.n_bytes, t.starts, &got));
        CHECK_EQ(got.n, t.ids.n);
        CHECK(memcmp(got.ids, t.ids.ids, got.n * sizeof *got.ids) == 0);
    }
    word_cache_free(c);
    id_buffer_free(&got);
    id_buffer_free(&t.ids);
    return n_new;
}

TEST(words_get_their_ids_from_caches_of_each_size)
{
    static const size_t sizes[] = {1, 1 << 14, 1 << 20, 32 << 20};
    size_t before = SIZE_MAX;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n_new = words_encoded(sizes[i], SIMD_SCALAR);
        CHECK_EQ(words_encoded(sizes[i], SIMD_BEST), n_new); /* the caches hold the same words */
        CHECK(n_new < before);
        before = n_new;
    }
    CHECK(before <= KINDS);
}

static bool count_word(void *n_calls, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    (void)word;
    ++*(size_t *)n_calls;
    if (!id_buffer_reserve(out, 1))
        return false;
    out->ids[out->n++] = (uint32_t)n_bytes;
    return true;
}

/* The last bytes of a word choose its place too: each word is encoded once. */
TEST(long_words_that_end_differently_are_all_cached)
{
    enum {
        N_WORDS = 1000,
        WORD_BYTES = 20
    };
    static uint8_t text[N_WORDS * WORD_BYTES + TEXT_PADDING];
    static uint64_t starts[(N_WORDS * WORD_BYTES + 63) / 64];
    size_t n_calls = 0;
    id_buffer out = {0};
    word_cache *c = word_cache_new(1 << 20, (word_source){count_word, &n_calls}, SIMD_BEST);
    CHECK(c != NULL);
    for (size_t i = 0; i < N_WORDS; i++) {
        const size_t at = i * WORD_BYTES;
        sprintf((char *)text + at, "word_of_20_bytes_%03zu", i);
        starts[at / 64] |= (uint64_t)1 << at % 64;
    }
    for (int round = 0; round < 2; round++)
        CHECK(word_cache_encode(c, text, N_WORDS * WORD_BYTES, starts, &out));
    CHECK_EQ(out.n, 2 * N_WORDS);
    CHECK_EQ(n_calls, N_WORDS);
    word_cache_free(c);
    id_buffer_free(&out);
}
