/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.c - a text to ids: around added tokens, normalized, a chunk of words at a time, through
 * the cache of words. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/encode/text_rules.h"
#include "tokenizer/encode/tokenizer.h"
#include "tokenizer/encode/word_list.h"
#include "tokenizer/encode/word_steps.h"
#include "tokenizer/merge/word_cache.h"

#define CACHE_BYTES ((size_t)32 << 20)
/* Text is encoded in chunks of words that stay in the cache between splitting and lookup. */
#define CHUNK_BYTES ((size_t)48 << 10)
#define MAX_CACHED_BYTES ((size_t)1 << 31) /* of characters; more is one word */

/* Shorter texts leave no buffers much larger than ARRAY_KEPT_BYTES, by any normalizer. */
#define LONG_BYTES ((size_t)4 << 10)

/* A text, or what added tokens leave of it. */
typedef struct segment {
    text_span text;
    unsigned flags; /* of normalize_text */
    size_t n_first; /* the same, when it is normalized */
} segment;

struct encoder {
    const tokenizer *t;
    const text_rules *rules;
    specials_policy specials;
    uint64_t specials_seen;
    bool stopped;      /* by SPECIALS_ERROR, at: */
    text_span special; /* in the text, or in normalized text */
    uint32_t special_id;
    text_span raw; /* the segment of the text that was encoded last */

    normalize_workspace normalizing;
    text_buffer prefixed, blanked;
    size_t chunk_bytes;
    word_list chunk;
    word_cache *cache; /* or, with sums_over_text, that of steps.work */
    word_steps steps;
};

/* ---- New and free ---- */

encoder *encoder_new(const tokenizer *t, const encoder_options *options)
{
    const size_t cache_bytes = options->cache_bytes ? options->cache_bytes : CACHE_BYTES;
    encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    const text_rules *r = e->rules = e->steps.rules = tokenizer_rules(t);
    e->t = t;
    e->specials = options->specials;
    e->chunk_bytes = options->chunk_bytes ? options->chunk_bytes : CHUNK_BYTES;
    if (r->bytes_are_ids)
        return e;
    if (!r->sums_over_text)
        e->cache =
            word_cache_new(cache_bytes, (word_source){word_steps_encode, &e->steps}, SIMD_BEST);
    if ((e->cache || r->sums_over_text) &&
        word_workspace_load(&e->steps.work, &r->words, r->sums_over_text ? cache_bytes : 0))
        return e;
    encoder_free(e);
    return NULL;
}

void encoder_free(encoder *e)
{
    if (!e)
        return;
    normalize_workspace_free(&e->normalizing);
    text_buffer_free(&e->prefixed);
    text_buffer_free(&e->blanked);
    word_list_free(&e->chunk);
    word_cache_free(e->cache);
    word_steps_free(&e->steps);
    free(e);
}

void encoder_set_specials(encoder *e, specials_policy specials)
{
    e->specials = specials;
}

uint64_t encoder_specials_seen(const encoder *e)
{
    return e->specials_seen;
}

/* ---- Chunks of words ---- */

/* Finds words of characters at the beginning of a text: the end of the last one is not known, and
 * it is left for the next chunk. false: out of memory. */
static bool find_char_words(encoder *e, text_span text)
{
    const text_rules *r = e->rules;
    word_list *w = &e->chunk;
    for (size_t n = e->chunk_bytes;; n *= 2) {
        const size_t sizes[2] = {n < text.n_bytes ? n : text.n_bytes, text.n_bytes};
        if (!word_list_reserve(w, text.bytes, sizes[0]))
            return false;
        char_words_split(&r->chars, SIMD_BEST, text.bytes, sizes, w->starts);
        if (r->words.chars)
            char_bpe_join_user_pieces(r->words.chars, text.bytes, sizes, w->starts);
        if (n >= text.n_bytes)
            return true;
        w->n_taken = w->n_bytes = split_take_last_start(w->starts, n);
        if (w->n_bytes > 0)
            return true;
    }
}

static bool find_words(encoder *e, text_span text)
{
    const text_rules *r = e->rules;
    return r->by_pattern
               ? word_list_find(&e->chunk, r->splits[0], text.bytes, text.n_bytes, e->chunk_bytes)
               : find_char_words(e, text);
}

/* Encodes the words that begin with the first character of the text, which are not those of the
 * cache, and takes them away. */
static bool encode_first_words(encoder *e, size_t n_first, id_buffer *out)
{
    word_list *w = &e->chunk;
    size_t at = 0;
    for (size_t end; at < n_first; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        const text_span word = {w->text + at, end - at};
        if (!word_steps_encode_first(&e->steps, word, n_first - at, out))
            return false;
    }
    word_list_skip(w, at);
    return true;
}

static bool encode_chunk(encoder *e, id_buffer *out)
{
    const text_rules *r = e->rules;
    const word_list *w = &e->chunk;
    const bool cached = r->by_pattern || w->n_bytes < MAX_CACHED_BYTES;
    if (w->n_bytes == 0)
        return true;
    if (r->sums_over_text)
        return cached ? unigram_words(e->steps.work.search, w->text, w->n_bytes, w->starts, out)
                      : unigram_word(e->steps.work.search, w->text, w->n_bytes, out);
    if (r->words.bytes && r->n_steps == 0 && !r->drops_blanks)
        byte_bpe_cut_words(r->words.bytes, w->text, w->n_bytes, w->starts);
    return cached ? word_cache_encode(e->cache, w->text, w->n_bytes, w->starts, out)
                  : word_steps_encode(&e->steps, w->text, w->n_bytes, out);
}

/* ---- Segments ---- */

/* Puts the prefix, if there is one, before the text. */
static bool add_prefix(encoder *e, segment *s)
{
    const text_rules *r = e->rules;
    const normal_form *form = &r->form;
    if (s->text.n_bytes == 0)
        return true;
    if (r->by_pattern)
        return !r->prefix_space || s->text.bytes[0] == ' ' ||
               text_buffer_prefix(&e->prefixed, " ", 1, &s->text);
    if (!(form->prefix_all || (form->prefix_first && s->n_first > 0)) ||
        (form->not_twice && text_rules_mark_at(r, s->text, 0) > 0))
        return true;
    return text_buffer_prefix(&e->prefixed, form->blank_prefix ? " " : MODEL_MARK,
                              form->blank_prefix ? 1 : MODEL_MARK_BYTES, &s->text);
}

/* Encodes normalized text between added tokens. */
static bool encode_words(encoder *e, segment s, id_buffer *out)
{
    const text_rules *r = e->rules;
    if (!r->blanks_only && !add_prefix(e, &s))
        return false;
    size_t n_first = r->finds_first ? s.n_first : 0;
    if (r->sums_over_text)
        unigram_begin(e->steps.work.search);
    for (text_span left = s.text; left.n_bytes > 0;) {
        if (!find_words(e, left))
            return false;
        const size_t n_taken = e->chunk.n_taken, n = n_first < n_taken ? n_first : n_taken;
        if ((n > 0 && !encode_first_words(e, word_list_kept(&e->chunk, n), out)) ||
            !encode_chunk(e, out))
            return false;
        n_first -= n;
        left = (text_span){left.bytes + n_taken, left.n_bytes - n_taken};
    }
    return !r->sums_over_text ||
           unigram_end(e->steps.work.search, s.text.bytes + s.text.n_bytes, out);
}

typedef bool encode_function(encoder *e, segment s, id_buffer *out);

/* Finds added tokens, and encodes the text between them. */
static bool encode_around(encoder *e, const added_tokens *added, segment s, encode_function *encode,
                          id_buffer *out)
{
    const text_span all = s.text;
    const size_t n_first = s.n_first;
    added_match m = {0};
    size_t from = 0;
    for (size_t at = 0; added && added_tokens_next(added, all.bytes, all.n_bytes, at, &m);) {
        at = m.next;
        e->specials_seen += m.special;
        if (m.special && e->specials == SPECIALS_TEXT)
            continue;
        e->stopped = m.special && e->specials == SPECIALS_ERROR;
        if (e->stopped) {
            e->special = (text_span){all.bytes + m.at, m.next - m.at};
            e->special_id = m.id;
            return false;
        }
        m.taken = m.end;
        s.text = (text_span){all.bytes + from, m.start > from ? m.start - from : 0};
        if (!encode(e, s, out) ||
            (!(m.special && e->specials == SPECIALS_DROP) && !id_buffer_append(out, m.id)))
            return false;
        from = m.end;
        s.flags = 0;
        s.n_first = n_first > from ? n_first - from : 0;
    }
    s.text = (text_span){all.bytes + from, all.n_bytes - from};
    return encode(e, s, out);
}

/* Normalizes a segment. With blanks_only, its prefix has to be added before the blanks. */
static bool normalize(encoder *e, segment *s)
{
    if (!normalize_text(e->rules->normalizer, &e->normalizing, s->flags, &s->text))
        return false;
    s->n_first = e->normalizing.n_first;
    if (!e->rules->blanks_only)
        return true;
    if (!add_prefix(e, s))
        return false;
    if (!memmem(s->text.bytes, s->text.n_bytes, MODEL_MARK, MODEL_MARK_BYTES))
        return true;
    e->blanked.n_bytes = 0;
    if (!normalize_marks(s->text, false, &e->blanked))
        return false;
    s->text = text_buffer_span(&e->blanked);
    return true;
}

/* Encodes the text between added tokens that were found in the text itself. */
static bool encode_raw(encoder *e, segment s, id_buffer *out)
{
    const size_t n_bytes = s.text.n_bytes;
    if (n_bytes == 0)
        return true;
    e->raw = s.text;
    if (!e->rules->bytes_are_ids)
        return normalize(e, &s) && encode_around(e, e->rules->added[1], s, encode_words, out);
    if (!id_buffer_reserve(out, n_bytes))
        return false;
    uint32_t *ids = out->ids + out->n;
    for (size_t i = 0; i < n_bytes; i++)
        ids[i] = s.text.bytes[i];
    out->n += n_bytes;
    return true;
}

/* ---- Texts ---- */

/* Frees what a long text has left. */
static void free_large(encoder *e)
{
    normalize_workspace_free_large(&e->normalizing, NULL);
    text_buffer_free_large(&e->prefixed);
    text_buffer_free_large(&e->blanked);
    word_list_free_large(&e->chunk);
    word_steps_free_large(&e->steps);
}

tokenize_status encoder_encode(encoder *e, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    const segment all = {{text, n_bytes}, NORMALIZE_FIRST, 0};
    e->stopped = false;
    const bool encoded = encode_around(e, e->rules->added[0], all, encode_raw, out);
    if (n_bytes >= LONG_BYTES)
        free_large(e);
    if (encoded)
        return TOKENIZE_OK;
    if (e->stopped)
        return TOKENIZE_SPECIAL;
    return normalize_too_long(&e->normalizing) ? TOKENIZE_TOO_LONG : TOKENIZE_NO_MEMORY;
}

special_match encoder_refused_special(const encoder *e, const uint8_t *text, size_t n_bytes)
{
    const size_t at = (size_t)((uintptr_t)e->special.bytes - (uintptr_t)text);
    if (at < n_bytes)
        return (special_match){at, e->special.bytes, e->special.n_bytes};
    special_match match = {.at = (size_t)(e->raw.bytes - text)};
    match.bytes = tokenizer_token_bytes(e->t, e->special_id, &match.n_bytes);
    const uint8_t *found = memmem(e->raw.bytes, e->raw.n_bytes, match.bytes, match.n_bytes);
    match.at = found ? (size_t)(found - text) : match.at;
    return match;
}
