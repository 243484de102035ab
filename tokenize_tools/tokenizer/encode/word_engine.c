/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/word_engine.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/merge/byte_bpe.h"
#include "tokenizer/merge/char_bpe.h"
#include "tokenizer/merge/unigram.h"
#include "tokenizer/model/byte_alphabet.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/encode/found_words.h"
#include "tokenizer/merge/word_cache.h"
#include "tokenizer/merge/word_pieces.h"

#define MAX_STEPS (MODEL_MAX_PIECE_STEPS + 1)

struct word_engine {
    splitter *splits[MAX_STEPS + 1]; /* of the text, then of each step */
    piece_step steps[MAX_STEPS];
    size_t n_steps;
    bool drops_blanks; /* the first splitter does */
    bool finds_first;  /* a step needs to know what the text begins with */
    byte_bpe *bytes;   /* or */
    char_bpe *chars;   /* or */
    unigram *unigram;  /* or */
    word_pieces *pieces;
};

typedef struct step_scratch {
    text_buffer text;
    found_words words;
} step_scratch;

struct word_scratch {
    const word_engine *e;
    size_t chunk_bytes;
    word_cache *cache;
    merge_scratch merging;
    unigram_scratch *search;
    found_words words;
    step_scratch steps[MAX_STEPS];
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
    case MODEL_UNIGRAM:
        return (e->unigram = unigram_new(m, false, err)) != NULL;
    default:
        return (e->pieces = word_pieces_new(m, err)) != NULL;
    }
}

static bool load_splits(word_engine *e, const model *m)
{
    e->n_steps = m->n_later;
    memcpy(e->steps, m->later, sizeof m->later);
    if (m->metaspace)
        e->steps[e->n_steps++] =
            (piece_step){CHANGE_MARKS, m->prepend, m->metaspace_split ? STAGE_MARKS : SPLIT_NONE};
    bool made = true;
    e->drops_blanks = split_drops_blanks(m->split);
    for (size_t i = 0; i <= e->n_steps; i++) {
        const split_pattern p = i > 0 ? e->steps[i - 1].split : m->split;
        e->splits[i] = splitter_new(p, m->own);
        e->finds_first |= i > 0 && e->steps[i - 1].prepend == PREPEND_FIRST;
        made &= e->splits[i] != NULL;
    }
    return made;
}

word_engine *word_engine_new(const model *m, failure *err)
{
    word_engine *e = calloc(1, sizeof *e);
    if (!e || !load_splits(e, m))
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
    for (size_t i = 0; i <= e->n_steps; i++)
        splitter_free(e->splits[i]);
    byte_bpe_free(e->bytes);
    char_bpe_free(e->chars);
    unigram_free(e->unigram);
    word_pieces_free(e->pieces);
    free(e);
}

bool word_engine_takes_bytes(const word_engine *e)
{
    return e->bytes && byte_bpe_takes_bytes(e->bytes);
}

/* ---- Words ---- */

static bool append_bytes(text_span text, text_buffer *out)
{
    if (!text_buffer_reserve(out, 2 * text.n_bytes))
        return false;
    out->n_bytes += byte_alphabet_encode(text.bytes, text.n_bytes, out->bytes + out->n_bytes);
    return true;
}

/* n_first: how many bytes of it come from the first character of the text. */
static bool change_piece(const piece_step *step, text_buffer *out, text_span *text, size_t *n_first)
{
    const model_text blank = model_view(" ", 1), mark = model_view(MODEL_MARK, MODEL_MARK_BYTES);
    const bool after_blank = text->bytes[0] == ' ', begins = *n_first > 0;
    if (step->change == CHANGE_BLANK) {
        *n_first += begins && !after_blank;
        return text_buffer_prefix(out, " ", !after_blank, text);
    }
    const text_span parts[2] = {{text->bytes, *n_first},
                                {text->bytes + *n_first, text->n_bytes - *n_first}};
    const bool after_mark = after_blank || model_begins_with_mark(text->bytes, text->n_bytes);
    bool done = true;
    out->n_bytes = 0;
    if (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && begins))
        done = after_mark || text_buffer_append(out, mark.s, mark.n_bytes);
    for (size_t i = 0; done && i < 2; i++) {
        done = step->change == CHANGE_BYTES ? append_bytes(parts[i], out)
                                            : normalize_replace(parts[i], blank, mark, false, out);
        *n_first = i == 0 && begins ? out->n_bytes : *n_first;
    }
    *text = text_buffer_span(out);
    return done;
}

static bool encode_piece(word_scratch *s, text_span text, id_buffer *out)
{
    const word_engine *e = s->e;
    if (e->bytes)
        return byte_bpe_encode(e->bytes, &s->merging, text.bytes, text.n_bytes, out);
    if (e->chars)
        return char_bpe_encode(e->chars, &s->merging, text.bytes, text.n_bytes, out);
    if (e->pieces)
        return word_pieces_encode(e->pieces, text.bytes, text.n_bytes, out);
    unigram_begin(s->search);
    return unigram_word(s->search, text.bytes, text.n_bytes, out) &&
           unigram_end(s->search, text.bytes + text.n_bytes, out);
}

/* Encodes a word that the splitter `k` has found. */
static bool encode_found(word_scratch *s, size_t k, text_span text, size_t n_first, id_buffer *out)
{
    const word_engine *e = s->e;
    const size_t n_dropped = splitter_dropped_blanks(e->splits[k], text.bytes, text.n_bytes);
    text = (text_span){text.bytes + n_dropped, text.n_bytes - n_dropped};
    if (text.n_bytes == 0)
        return true;
    if (k == e->n_steps)
        return encode_piece(s, text, out);
    found_words *w = &s->steps[k].words;
    n_first = n_first > n_dropped ? n_first - n_dropped : 0;
    n_first = n_first < text.n_bytes ? n_first : text.n_bytes;
    if (!change_piece(&e->steps[k], &s->steps[k].text, &text, &n_first) ||
        !found_words_find(w, e->splits[k + 1], text.bytes, text.n_bytes, SIZE_MAX))
        return false;
    if (n_first > 0)
        n_first = found_words_kept(w, n_first);
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_found(s, k + 1, (text_span){w->text + at, end - at},
                          n_first > at ? n_first - at : 0, out))
            return false;
    }
    return true;
}

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    word_scratch *s = context;
    const text_span text = {word, n_bytes};
    if (s->e->n_steps > 0 || s->e->drops_blanks)
        return encode_found(s, 0, text, 0, out);
    return encode_piece(s, text, out);
}

word_scratch *word_scratch_new(const word_engine *e, size_t cache_bytes, size_t chunk_bytes)
{
    word_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->e = e;
    s->chunk_bytes = chunk_bytes;
    s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s});
    if (e->unigram)
        s->search = unigram_scratch_new(e->unigram, 0);
    if (!s->cache || (e->unigram && !s->search)) {
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
    unigram_scratch_free(s->search);
    found_words_free(&s->words);
    for (size_t i = 0; i < MAX_STEPS; i++) {
        text_buffer_free(&s->steps[i].text);
        found_words_free(&s->steps[i].words);
    }
    free(s);
}

/* n_first: how many bytes of the words come from the first character of the text. */
static bool encode_chunk(word_scratch *s, size_t n_first, id_buffer *out)
{
    found_words *w = &s->words;
    size_t at = 0;
    for (size_t end; at < n_first; at = end) { /* these words are not those of the cache */
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_found(s, 0, (text_span){w->text + at, end - at}, n_first - at, out))
            return false;
    }
    if (at > 0)
        found_words_skip(w, at);
    if (s->e->bytes && s->e->n_steps == 0 && !s->e->drops_blanks)
        byte_bpe_cut_words(s->e->bytes, w->text, w->n_bytes, w->starts);
    return w->n_bytes == 0 || word_cache_encode(s->cache, w->text, w->n_bytes, w->starts, out);
}

bool word_scratch_encode(word_scratch *s, text_span text, size_t n_first, id_buffer *out)
{
    found_words *w = &s->words;
    n_first = s->e->finds_first ? n_first : 0;
    while (text.n_bytes > 0) {
        if (!found_words_find(w, s->e->splits[0], text.bytes, text.n_bytes, s->chunk_bytes))
            return false;
        const size_t n_of_first = n_first < w->n_taken ? n_first : w->n_taken;
        if (!encode_chunk(s, n_of_first > 0 ? found_words_kept(w, n_of_first) : 0, out))
            return false;
        n_first -= n_of_first;
        text = (text_span){text.bytes + w->n_taken, text.n_bytes - w->n_taken};
    }
    return true;
}
