/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/word_engine.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/bytes/byte_bpe.h"
#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/normalize/text_buffer.h"
#include "tokenizer/split/found_words.h"
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

/* Puts a blank before the word if it has none, and splits it again. */
static bool encode_prefixed(word_scratch *s, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    const word_engine *e = s->e;
    text_span text = {word, n_bytes};
    const found_words *w = &s->inner;
    if (!text_buffer_prefix(&s->prefixed, " ", word[0] != ' ', &text) ||
        !found_words_find(&s->inner, e->word_split, text.bytes, text.n_bytes))
        return false;
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!byte_bpe_encode(e->bytes, &s->merging, w->text + at, end - at, out))
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
    found_words_free(&s->words);
    found_words_free(&s->inner);
    text_buffer_free(&s->prefixed);
    free(s);
}

bool word_scratch_encode(word_scratch *s, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    found_words *w = &s->words;
    if (n_bytes == 0)
        return true;
    if (n_bytes >= UINT32_MAX || !found_words_find(w, s->e->split, text, n_bytes))
        return false;
    return w->n_bytes == 0 || word_cache_encode(s->cache, w->text, w->n_bytes, w->starts, out);
}
