#include "tokenizer/word_engine.h"

#include <stdlib.h>

#include "tokenizer/bytes/byte_bpe.h"
#include "tokenizer/words/word_cache.h"

struct word_engine {
    split_pattern split;
    byte_bpe *bytes;
};

struct word_scratch {
    const word_engine *e;
    word_cache *cache;
    merge_scratch merging;
    uint64_t *starts;
    size_t starts_capacity;
};

word_engine *word_engine_new(const model *m, model_error *err)
{
    word_engine *e = calloc(1, sizeof *e);
    if (!e) {
        model_no_memory(err);
        return NULL;
    }
    e->split = m->split;
    e->bytes = byte_bpe_new(m, err);
    if (e->bytes)
        return e;
    word_engine_free(e);
    return NULL;
}

void word_engine_free(word_engine *e)
{
    if (!e)
        return;
    byte_bpe_free(e->bytes);
    free(e);
}

bool word_engine_takes_bytes(const word_engine *e)
{
    return byte_bpe_takes_bytes(e->bytes);
}

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    word_scratch *s = context;
    return byte_bpe_encode(s->e->bytes, &s->merging, word, n_bytes, out);
}

word_scratch *word_scratch_new(const word_engine *e, size_t cache_bytes)
{
    word_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->e = e;
    s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s});
    if (!s->cache) {
        word_scratch_free(s);
        return NULL;
    }
    return s;
}

void word_scratch_free(word_scratch *s)
{
    if (!s)
        return;
    word_cache_free(s->cache);
    merge_scratch_free(&s->merging);
    free(s->starts);
    free(s);
}

bool word_scratch_encode(word_scratch *s, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    const size_t n_words = n_bytes / 64 + 1;
    if (n_bytes >= UINT32_MAX)
        return false;
    if (s->starts_capacity < n_words) {
        free(s->starts);
        s->starts_capacity = 0;
        s->starts = malloc(n_words * sizeof *s->starts);
        if (!s->starts)
            return false;
        s->starts_capacity = n_words;
    }
    if (n_bytes == 0)
        return true;
    split_words(s->e->split, SIMD_BEST, text, n_bytes, s->starts);
    return word_cache_encode(s->cache, text, n_bytes, s->starts, out);
}
