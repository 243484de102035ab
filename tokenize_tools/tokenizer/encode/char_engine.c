/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/char_engine.h"

#include <stdlib.h>

#include "tokenizer/merge/char_bpe.h"
#include "tokenizer/split/char_words.h"
#include "tokenizer/merge/unigram.h"
#include "tokenizer/encode/found_words.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/merge/word_cache.h"
#include "base/array.h"

/* Which stretches of text are sentences, which are encoded independently. */
typedef enum sentence_kind {
    WHOLE_TEXT,    /* the whole text is one sentence */
    BETWEEN_MARKS, /* a sentence begins at each U+2581 */
    PIECES         /* of the splits; one may also begin at each U+2581 */
} sentence_kind;

struct char_engine {
    normalizer *normalizer;
    normal_form form;
    char_bpe *bpe; /* or */
    unigram *pieces;
    char_words words;
    sentence_kind sentences;
    splitter *split; /* PIECES: */
    bool prefix_words, splits_at_marks;
    bool pieces_are_words; /* the splitter finds the words of a text */
    added_tokens *added;   /* in normalized text, or NULL */
    bool blanks_only;      /* to find `added`, all U+2581 in the text become blanks */
};

struct char_scratch {
    const char_engine *e;
    size_t chunk_bytes;
    normalize_scratch normalizing;
    text_buffer prefixed, word; /* word: the whole text, if blanks_only */
    found_words words, pieces;  /* words: if pieces_are_words */
    uint64_t *starts;
    size_t starts_capacity;
    merge_scratch merging;
    word_cache *cache;
    unigram_scratch *search;
};

/* ---- New ---- */

/* Whether no word has a blank, and the words on both sides of one do not depend on each other: the
 * first stage drops them. */
static bool first_drops_blanks(const model *m)
{
    return split_drops_blanks(m->split & 0xFF);
}

/* The same as first_drops_blanks, but for U+2581. */
static bool is_at_punctuation(const model *m)
{
    return m->split == STAGE_EACH_PUNCTUATION && m->metaspace_split;
}

/* Appends the text with a blank for each U+2581. */
static bool append_blanked(text_span text, text_buffer *out)
{
    return normalize_replace(text, model_view(MODEL_MARK, MODEL_MARK_BYTES), model_view(" ", 1),
                             false, out);
}

static bool blank_content(model_text *content)
{
    text_buffer blanked = {0};
    const text_span text = {(const uint8_t *)content->s, content->n_bytes};
    bool done = append_blanked(text, &blanked);
    const text_span span = text_buffer_span(&blanked);
    done = done && model_text_set(content, span.bytes, span.n_bytes);
    text_buffer_free(&blanked);
    return done;
}

/* Those that are searched for in normalized text. */
static bool load_added(char_engine *e, const model *normalized, failure *err)
{
    model added;
    bool loaded = true;
    model_init(&added);
    for (size_t i = 0; loaded && i < normalized->n_added; i++) {
        loaded = model_add_added(&added, &normalized->added[i], err);
        if (loaded && e->blanks_only)
            loaded = blank_content(&added.added[i].content) || fail_memory(err);
    }
    if (loaded && added.n_added > 0)
        loaded = (e->added = added_tokens_new(&added, true, err)) != NULL;
    model_free(&added);
    return loaded;
}

/* Whether the text may be searched with blanks in place of U+2581: if the normalizer replaces all
 * blanks by U+2581, and blanks mean nothing to the tokens that are searched for. */
static bool may_be_blanked(const model *m)
{
    bool replaced = false;
    for (size_t i = 0; i < m->n_steps; i++)
        replaced |= model_step_marks_blanks(&m->steps[i]);
    for (size_t i = 0; i < m->n_added; i++)
        replaced &= !(m->added[i].normalized && (m->added[i].lstrip || m->added[i].rstrip));
    return replaced && !m->metaspace && m->split == SPLIT_NONE;
}

static bool load_normalizer(char_engine *e, const model *m, bool has_tokens, failure *err)
{
    bool all_steps =
        (m->split != SPLIT_NONE && !is_at_punctuation(m)) || (has_tokens && !may_be_blanked(m));
    e->normalizer = normalizer_new(m, all_steps, err);
    if (e->normalizer && has_tokens && !all_steps) {
        e->blanks_only = normalizer_form(e->normalizer).spaces_are_marks;
        all_steps = !e->blanks_only; /* the blanks are replaced, but not by the last step */
        if (all_steps) {
            normalizer_free(e->normalizer);
            e->normalizer = normalizer_new(m, true, err);
        }
    }
    if (!e->normalizer)
        return false;
    e->form = normalizer_form(e->normalizer);
    return true;
}

static void choose_words(char_engine *e, const model *m)
{
    e->words = e->bpe ? *char_bpe_words(e->bpe) : *unigram_char_words(e->pieces);
    if (m->split != SPLIT_NONE) {
        e->sentences = PIECES;
        e->prefix_words = m->metaspace && m->prepend == PREPEND_ALWAYS;
        e->splits_at_marks = m->metaspace && m->metaspace_split;
        e->pieces_are_words = m->split == STAGE_WHITESPACE_SPLIT;
        char_words_init(&e->words, e->form.spaces_are_marks);
        if (first_drops_blanks(m) || is_at_punctuation(m))
            char_words_join_all_but_blanks(&e->words);
        else
            char_words_join_all(&e->words);
    } else if (m->rule == MERGE_NONE && m->whole_word_first) {
        e->sentences = BETWEEN_MARKS;
    } else if (m->metaspace && m->metaspace_split) {
        e->sentences = BETWEEN_MARKS;
        if (e->pieces) {
            char_words_init(&e->words, e->form.spaces_are_marks);
            char_words_join_all_but_blanks(&e->words);
        }
    }
}

static bool load_engine(char_engine *e, const model *m, const model *normalized, failure *err)
{
    if (m->n_tokens > WORD_CACHE_MAX_ID)
        return model_fail(err, 0, "more than %u tokens", WORD_CACHE_MAX_ID);
    if (!load_normalizer(e, m, normalized->n_added > 0, err))
        return false;
    if (m->kind == MODEL_CHAR_BPE)
        e->bpe = char_bpe_new(m, e->form.spaces_are_marks, err);
    else
        e->pieces = unigram_new(m, e->form.spaces_are_marks, err);
    if ((!e->bpe && !e->pieces) || !load_added(e, normalized, err))
        return false;
    if (m->split != SPLIT_NONE && !(e->split = splitter_new(m->split, m->own)))
        return fail_memory(err);
    choose_words(e, m);
    return true;
}

char_engine *char_engine_new(const model *m, const model *normalized, failure *err)
{
    char_engine *e = calloc(1, sizeof *e);
    if (!e)
        fail_memory(err);
    else if (load_engine(e, m, normalized, err))
        return e;
    char_engine_free(e);
    return NULL;
}

void char_engine_free(char_engine *e)
{
    if (!e)
        return;
    normalizer_free(e->normalizer);
    char_bpe_free(e->bpe);
    unigram_free(e->pieces);
    splitter_free(e->split);
    added_tokens_free(e->added);
    free(e);
}

/* Whether the ids of a word depend on the scores of all words before it in the text. */
static bool sums_over_text(const char_engine *e)
{
    return e->pieces && e->sentences == WHOLE_TEXT;
}

const added_tokens *char_engine_added(const char_engine *e)
{
    return e->added;
}

bool char_engine_prefixes(const char_engine *e)
{
    return e->form.prefix_all || e->form.prefix_first || e->prefix_words;
}

/* ---- Words ---- */

/* A text whose ids do not depend on its neighbours. */
static bool encode_sentence(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    if (text.n_bytes == 0)
        return true;
    if (e->bpe)
        return char_bpe_encode(e->bpe, &s->merging, text.bytes, text.n_bytes, out);
    unigram_begin(s->search);
    return unigram_word(s->search, text.bytes, text.n_bytes, out) &&
           unigram_end(s->search, text.bytes + text.n_bytes, out);
}

static size_t mark_at(const char_engine *e, text_span text, size_t at)
{
    if (text.bytes[at] == ' ' && e->form.spaces_are_marks)
        return 1;
    return model_begins_with_mark(text.bytes + at, text.n_bytes - at) ? MODEL_MARK_BYTES : 0;
}

static bool encode_between_marks(char_scratch *s, text_span text, id_buffer *out)
{
    const size_t first = out->n;
    size_t start = 0;
    for (size_t at = 0; at < text.n_bytes; at++) {
        if (mark_at(s->e, text, at) == 0)
            continue;
        if (!encode_sentence(s, (text_span){text.bytes + start, at - start}, out))
            return false;
        start = at;
    }
    if (!encode_sentence(s, (text_span){text.bytes + start, text.n_bytes - start}, out))
        return false;
    if (s->e->bpe)
        char_bpe_fuse_unknown(s->e->bpe, first, out);
    return true;
}

/* A text that gets a prefix of its own. */
static bool encode_piece(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    if (text.n_bytes == 0)
        return true;
    if (e->prefix_words && mark_at(e, text, 0) == 0 &&
        !text_buffer_prefix(&s->word, MODEL_MARK, MODEL_MARK_BYTES, &text))
        return false;
    return e->splits_at_marks ? encode_between_marks(s, text, out) : encode_sentence(s, text, out);
}

/* A piece as the splitter leaves it. */
static bool encode_split(char_scratch *s, text_span text, id_buffer *out)
{
    const size_t n = splitter_dropped_blanks(s->e->split, text.bytes, text.n_bytes);
    return encode_piece(s, (text_span){text.bytes + n, text.n_bytes - n}, out);
}

static bool encode_pieces(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    const found_words *w = &s->pieces;
    if (!found_words_find(&s->pieces, e->split, text.bytes, text.n_bytes, SIZE_MAX))
        return false;
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_split(s, (text_span){w->text + at, end - at}, out))
            return false;
    }
    return true;
}

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    char_scratch *s = context;
    const text_span text = {word, n_bytes};
    switch (s->e->sentences) {
    case PIECES:
        return s->e->pieces_are_words ? encode_split(s, text, out) : encode_pieces(s, text, out);
    case BETWEEN_MARKS:
        return encode_between_marks(s, text, out);
    default:
        return encode_sentence(s, text, out);
    }
}

/* ---- Texts: a chunk of words at a time ---- */

#define MAX_CACHED_BYTES ((size_t)1 << 31)

/* Finds words at the beginning of a text, and its length in *n_bytes. false: out of memory. */
static bool split_chunk(char_scratch *s, text_span text, size_t *n_bytes)
{
    const char_engine *e = s->e;
    *n_bytes = 0;
    for (size_t n = s->chunk_bytes; *n_bytes == 0; n *= 2) {
        const size_t sizes[2] = {n < text.n_bytes ? n : text.n_bytes, text.n_bytes};
        if (!array_reserve(&s->starts, &s->starts_capacity, sizes[0] / 64 + 1, sizeof *s->starts))
            return false;
        char_words_split(&e->words, SIMD_BEST, text.bytes, sizes, s->starts);
        if (e->bpe)
            char_bpe_join_user_pieces(e->bpe, text.bytes, sizes, s->starts);
        /* The end of the last word is not known. */
        *n_bytes = n < text.n_bytes ? split_take_last_start(s->starts, n) : text.n_bytes;
    }
    return true;
}

/* Encodes words, whose starts are known. */
static bool encode_chunk(char_scratch *s, text_span text, const uint64_t *starts, id_buffer *out)
{
    const bool cached = text.n_bytes < MAX_CACHED_BYTES;
    if (sums_over_text(s->e))
        return cached ? unigram_words(s->search, text.bytes, text.n_bytes, starts, out)
                      : unigram_word(s->search, text.bytes, text.n_bytes, out);
    return cached ? word_cache_encode(s->cache, text.bytes, text.n_bytes, starts, out)
                  : encode_word(s, text.bytes, text.n_bytes, out);
}

static bool encode_words(char_scratch *s, text_span text, id_buffer *out)
{
    found_words *w = &s->words;
    while (text.n_bytes > 0) {
        size_t n;
        const bool pieces = s->e->pieces_are_words;
        if (pieces ? !found_words_find(w, s->e->split, text.bytes, text.n_bytes, s->chunk_bytes)
                   : !split_chunk(s, text, &n))
            return false;
        n = pieces ? w->n_taken : n;
        if (!encode_chunk(s, (text_span){text.bytes, n}, pieces ? w->starts : s->starts, out))
            return false;
        text = (text_span){text.bytes + n, text.n_bytes - n};
    }
    return true;
}

/* Puts the prefix, if there is one, before the text. */
static bool add_prefix(char_scratch *s, stretch *t)
{
    const normal_form *form = &s->e->form;
    const bool prefix = form->prefix_all || (form->prefix_first && t->n_first > 0);
    if (!prefix || t->text.n_bytes == 0 || (form->not_twice && mark_at(s->e, t->text, 0) > 0))
        return true;
    return text_buffer_prefix(&s->prefixed, form->blank_prefix ? " " : MODEL_MARK,
                              form->blank_prefix ? 1 : MODEL_MARK_BYTES, &t->text);
}

bool char_scratch_encode(char_scratch *s, stretch t, id_buffer *out)
{
    if (!s->e->blanks_only && !add_prefix(s, &t))
        return false;
    if (!sums_over_text(s->e))
        return encode_words(s, t.text, out);
    unigram_begin(s->search);
    return encode_words(s, t.text, out) &&
           unigram_end(s->search, t.text.bytes + t.text.n_bytes, out);
}

/* With blanks_only, the prefix has to be there before the blanks. */
bool char_scratch_normalize(char_scratch *s, stretch *t)
{
    if (!normalize_text(s->e->normalizer, &s->normalizing, t->flags, &t->text))
        return false;
    t->n_first = s->normalizing.n_first;
    if (!s->e->blanks_only)
        return true;
    s->word.n_bytes = 0;
    if (!add_prefix(s, t) || !append_blanked(t->text, &s->word))
        return false;
    t->text = text_buffer_span(&s->word);
    return true;
}

bool char_scratch_too_long(const char_scratch *s)
{
    return normalize_too_long(&s->normalizing);
}

/* ---- Scratch ---- */

char_scratch *char_scratch_new(const char_engine *e, size_t cache_bytes, size_t chunk_bytes)
{
    char_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->e = e;
    s->chunk_bytes = chunk_bytes;
    if (e->pieces)
        s->search = unigram_scratch_new(e->pieces, sums_over_text(e) ? cache_bytes : 0);
    if (!sums_over_text(e))
        s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s});
    if ((!sums_over_text(e) && !s->cache) || (e->pieces && !s->search)) {
        char_scratch_free(s);
        return NULL;
    }
    return s;
}

void char_scratch_free(char_scratch *s)
{
    if (!s)
        return;
    normalize_scratch_free(&s->normalizing);
    text_buffer_free(&s->prefixed);
    text_buffer_free(&s->word);
    found_words_free(&s->words);
    found_words_free(&s->pieces);
    free(s->starts);
    merge_scratch_free(&s->merging);
    word_cache_free(s->cache);
    unigram_scratch_free(s->search);
    free(s);
}
