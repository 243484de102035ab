/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/word_engine.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/bytes/byte_bpe.h"
#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/normalize/text_buffer.h"
#include "tokenizer/words/word_cache.h"
#include "tokenizer/words/word_pieces.h"

struct word_engine {
    splitter *split;
    bool drops_blanks;
    bool prefix_words;    /* a blank goes before each word, */
    splitter *word_split; /* which is then split again */
    byte_bpe *bytes;      /* or */
    char_bpe *chars;      /* or */
    word_pieces *pieces;
};

typedef struct found_words {
    uint64_t *starts;
    size_t capacity;
    text_buffer kept; /* without text that is removed */
} found_words;

struct word_scratch {
    const word_engine *e;
    word_cache *cache;
    merge_scratch merging;
    found_words words, inner; /* of the text, of a word with a blank before it */
    text_buffer prefixed;
};

/* ---- New and free ---- */

static bool load_model(word_engine *e, const model *m, failure *err)
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

word_engine *word_engine_new(const model *m, failure *err)
{
    word_engine *e = calloc(1, sizeof *e);
    if (!e) {
        fail_memory(err);
        return NULL;
    }
    e->split = splitter_new(m->split, m->own);
    e->drops_blanks = split_drops_blanks(m->split);
    e->prefix_words = m->prefix_words;
    e->word_split = splitter_new(m->word_split, m->own);
    if (!e->split || !e->word_split)
        fail_memory(err);
    else if (load_model(e, m, err))
        return e;
    word_engine_free(e);
    return NULL;
}

void word_engine_free(word_engine *e)
{
    if (!e)
        return;
    splitter_free(e->split);
    splitter_free(e->word_split);
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

/* Marks where the words of a text start; the text becomes what stays of it. */
static bool find_words(found_words *w, const splitter *split, text_span *text)
{
    const size_t n_words = text->n_bytes / 64 + 1;
    const bool removes = splitter_removes(split);
    const size_t needed = removes ? 2 * n_words : n_words;
    if (w->capacity < needed) {
        free(w->starts);
        w->capacity = 0;
        w->starts = malloc(needed * sizeof *w->starts);
        if (!w->starts)
            return false;
        w->capacity = needed;
    }
    if (!removes) {
        splitter_words(split, SIMD_BEST, text->bytes, text->n_bytes, w->starts);
        return true;
    }
    w->kept.n_bytes = 0;
    if (!text_buffer_reserve(&w->kept, text->n_bytes))
        return false;
    w->kept.n_bytes = splitter_kept_words(split, text->bytes, text->n_bytes, w->kept.bytes,
                                          w->starts, w->starts + n_words);
    *text = text_buffer_span(&w->kept);
    return true;
}

/* Puts a blank before the word if it has none, and splits it again. */
static bool encode_prefixed(word_scratch *s, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    const word_engine *e = s->e;
    s->prefixed.n_bytes = 0;
    if (!text_buffer_append(&s->prefixed, " ", word[0] != ' ') ||
        !text_buffer_append(&s->prefixed, word, n_bytes))
        return false;
    text_span text = text_buffer_span(&s->prefixed);
    if (!find_words(&s->inner, e->word_split, &text))
        return false;
    const uint64_t *starts = s->inner.starts;
    for (size_t at = 0, end; at < text.n_bytes; at = end) {
        for (end = at + 1; end < text.n_bytes && (starts[end / 64] >> end % 64 & 1) == 0;)
            end++;
        if (!byte_bpe_encode(e->bytes, &s->merging, text.bytes + at, end - at, out))
            return false;
    }
    return true;
}

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
    if (e->prefix_words)
        return encode_prefixed(s, word, n_bytes, out);
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
    free(s->words.starts);
    free(s->inner.starts);
    text_buffer_free(&s->words.kept);
    text_buffer_free(&s->inner.kept);
    text_buffer_free(&s->prefixed);
    free(s);
}

bool word_scratch_encode(word_scratch *s, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    text_span kept = {text, n_bytes};
    if (n_bytes == 0)
        return true;
    if (n_bytes >= UINT32_MAX || !find_words(&s->words, s->e->split, &kept))
        return false;
    return kept.n_bytes == 0 ||
           word_cache_encode(s->cache, kept.bytes, kept.n_bytes, s->words.starts, out);
}
