#include "tokenizer/word_engine.h"

#include <stdlib.h>

#include "tokenizer/bytes/byte_bpe.h"
#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/words/word_cache.h"
#include "tokenizer/words/word_pieces.h"

struct word_engine {
    split_pattern split;
    bool drops_blanks;
    byte_bpe *bytes; /* or */
    char_bpe *chars; /* or */
    word_pieces *pieces;
};

struct word_scratch {
    const word_engine *e;
    word_cache *cache;
    merge_scratch merging;
    uint64_t *starts;
    size_t starts_capacity;
};

/* ---- New and free ---- */

static bool load_model(word_engine *e, const model *m, model_error *err)
{
    if (m->n_tokens > WORD_CACHE_MAX_ID)
        return model_fail(err, 0, "more than %u tokens", WORD_CACHE_MAX_ID);
    switch (m->kind) {
    case MODEL_BYTE_BPE:
        return (e->bytes = byte_bpe_new(m, err)) != NULL;
    case MODEL_CHAR_BPE:
        return (e->chars = char_bpe_new(m, false, err)) != NULL;
    default:
        return (e->pieces = word_pieces_new(m, err)) != NULL;
    }
}

word_engine *word_engine_new(const model *m, model_error *err)
{
    word_engine *e = calloc(1, sizeof *e);
    if (!e) {
        model_no_memory(err);
        return NULL;
    }
    e->split = m->split;
    e->drops_blanks = split_drops_blanks(m->split);
    if (load_model(e, m, err))
        return e;
    word_engine_free(e);
    return NULL;
}

void word_engine_free(word_engine *e)
{
    if (!e)
        return;
    byte_bpe_free(e->bytes);
    char_bpe_free(e->chars);
    word_pieces_free(e->pieces);
    free(e);
}

bool word_engine_takes_bytes(const word_engine *e)
{
    return e->bytes && byte_bpe_takes_bytes(e->bytes);
}

/* ---- Words ---- */

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    word_scratch *s = context;
    const word_engine *e = s->e;
    if (e->drops_blanks) {
        const size_t n = split_leading_blanks(word, n_bytes);
        word += n;
        n_bytes -= n;
        if (n_bytes == 0)
            return true;
    }
    if (e->bytes)
        return byte_bpe_encode(e->bytes, &s->merging, word, n_bytes, out);
    return e->chars ? char_bpe_encode(e->chars, &s->merging, word, n_bytes, out)
                    : word_pieces_encode(e->pieces, word, n_bytes, out);
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
