/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.c - text to ids: finds added tokens, and encodes the text between them. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/bytes/bytes_tokenizer.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode/unicode.h"

/* Text is processed in slices that stay in the cache between splitting and lookup. */
#define SLICE_BYTES ((size_t)48 << 10)

typedef struct scratch_text {
    uint8_t *bytes;
    size_t capacity;
} scratch_text;

struct encoder {
    const tokenizer *t;
    specials_policy specials;
    uint64_t specials_seen;
    bool stopped; /* SPECIALS_ERROR, found in normalized text */
    word_scratch *words;
    char_scratch *chars;
    normalize_scratch normalizing;
    scratch_text prefixed;
};

encoder *encoder_new(const tokenizer *t, const encoder_options *options)
{
    const size_t cache_bytes = options->cache_bytes ? options->cache_bytes : (size_t)32 << 20;
    encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->t = t;
    e->specials = options->specials;
    if (t->words)
        e->words = word_scratch_new(t->words, cache_bytes);
    if (t->chars)
        e->chars = char_scratch_new(t->chars, cache_bytes);
    if (!t->builtin && !e->words && !e->chars) {
        encoder_free(e);
        return NULL;
    }
    return e;
}

void encoder_free(encoder *e)
{
    if (!e)
        return;
    word_scratch_free(e->words);
    char_scratch_free(e->chars);
    normalize_scratch_free(&e->normalizing);
    free(e->prefixed.bytes);
    free(e);
}

void encoder_set_specials(encoder *e, specials_policy specials)
{
    e->specials = specials;
}

encoder_state encoder_save(const encoder *e)
{
    if (!e->t->in_order)
        return (encoder_state){0};
    const char_sentence sentence = char_scratch_save(e->chars);
    return (encoder_state){sentence.score, sentence.unknown};
}

void encoder_restore(encoder *e, encoder_state state)
{
    if (e->t->in_order)
        char_scratch_restore(e->chars, (char_sentence){state.sum, state.unknown});
}

uint64_t encoder_specials_seen(const encoder *e)
{
    return e->specials_seen;
}

static bool reserve_scratch(scratch_text *s, size_t n_bytes)
{
    if (s->capacity >= n_bytes + TEXT_PADDING)
        return true;
    free(s->bytes);
    s->capacity = 0;
    /* The memory is zeroed, because the padding is read. */
    s->bytes = calloc(n_bytes + n_bytes / 2 + TEXT_PADDING, 1);
    if (!s->bytes)
        return false;
    s->capacity = n_bytes + n_bytes / 2 + TEXT_PADDING;
    return true;
}

typedef struct stretch {
    const uint8_t *text;
    size_t n_bytes;
    bool first;     /* begins a document */
    bool continues; /* continues the text before a cut */
} stretch;

/* ---- Words ---- */

/* Encodes normalized text between added tokens. */
static bool encode_words(encoder *e, stretch s, id_buffer *out)
{
    if (!e->t->prefix_space || s.continues || s.n_bytes == 0 || s.text[0] == ' ')
        return word_scratch_encode(e->words, s.text, s.n_bytes, out);
    if (!reserve_scratch(&e->prefixed, s.n_bytes + 1))
        return false;
    e->prefixed.bytes[0] = ' ';
    memcpy(e->prefixed.bytes + 1, s.text, s.n_bytes);
    return word_scratch_encode(e->words, e->prefixed.bytes, s.n_bytes + 1, out);
}

/* Finds added tokens in normalized text, and encodes the text between them. */
static bool encode_normalized(encoder *e, stretch s, id_buffer *out)
{
    const stretch all = s;
    added_match m = {0};
    size_t from = 0;
    for (size_t at = 0; added_tokens_next(e->t->normalized, all.text, all.n_bytes, at, &m);) {
        at = m.next;
        e->specials_seen += m.special;
        if (m.special && e->specials == SPECIALS_TEXT)
            continue;
        e->stopped = m.special && e->specials == SPECIALS_ERROR;
        if (e->stopped)
            return false;
        const size_t start = m.start > from ? m.start : from;
        m.taken = m.end;
        s.text = all.text + from;
        s.n_bytes = start - from;
        s.continues = all.continues && from == 0;
        if (!encode_words(e, s, out))
            return false;
        if (!(m.special && e->specials == SPECIALS_DROP) && !id_buffer_append(out, m.id))
            return false;
        from = m.end;
    }
    s.text = all.text + from;
    s.n_bytes = all.n_bytes - from;
    s.continues = all.continues && from == 0;
    return encode_words(e, s, out);
}

static bool encode_slice(encoder *e, stretch s, id_buffer *out)
{
    if (e->t->normalizer) {
        const unsigned flags =
            (s.first ? NORMALIZE_FIRST : 0) | (s.continues ? NORMALIZE_CONTINUES : 0);
        text_span span = {s.text, s.n_bytes};
        if (!normalize_text(e->t->normalizer, &e->normalizing, flags, &span))
            return false;
        s.text = span.bytes;
        s.n_bytes = span.n_bytes;
    }
    return added_tokens_none(e->t->normalized) ? encode_words(e, s, out)
                                               : encode_normalized(e, s, out);
}

static bool encode_slices(encoder *e, stretch s, id_buffer *out)
{
    size_t size = SLICE_BYTES, searched = 0;
    while (s.n_bytes > size) {
        const size_t cut = text_cut(s.text, searched, size, e->t->cuts);
        searched = cut == 0 ? size : 0;
        if (cut == 0) {
            size *= 2;
            continue;
        }
        const stretch slice = {s.text, cut, s.first, s.continues};
        if (!encode_slice(e, slice, out))
            return false;
        s.text += cut;
        s.n_bytes -= cut;
        s.first = false;
        s.continues = true;
        size = SLICE_BYTES;
    }
    return encode_slice(e, s, out);
}

/* ---- All ---- */

static bool encode_builtin(const stretch *s, id_buffer *out)
{
    if (!id_buffer_reserve(out, s->n_bytes))
        return false;
    bytes_tokenizer_encode(s->text, s->n_bytes, out->ids + out->n);
    out->n += s->n_bytes;
    return true;
}

static bool encode_chars(encoder *e, const stretch *s, id_buffer *out)
{
    const uint64_t seen = char_scratch_specials_seen(e->chars);
    unsigned flags = (s->first ? STRETCH_FIRST : 0) | (s->continues ? STRETCH_CONTINUES : 0);
    if (e->specials == SPECIALS_MATCH)
        flags |= STRETCH_SPECIALS_MATCH;
    if (e->specials == SPECIALS_DROP)
        flags |= STRETCH_SPECIALS_DROP;
    if (!char_scratch_encode(e->chars, s->text, s->n_bytes, flags, out))
        return false;
    const uint64_t new_seen = char_scratch_specials_seen(e->chars) - seen;
    e->specials_seen += new_seen;
    e->stopped = new_seen > 0 && e->specials == SPECIALS_ERROR;
    return !e->stopped;
}

/* Encodes the text between added tokens that were found in raw text. */
static bool encode_stretch(encoder *e, stretch s, id_buffer *out)
{
    if (s.n_bytes == 0)
        return true;
    if (e->t->builtin)
        return encode_builtin(&s, out);
    if (e->words)
        return encode_slices(e, s, out);
    return encode_chars(e, &s, out);
}

static tokenize_status failure_status(const encoder *e)
{
    return e->stopped ? TOKENIZE_SPECIAL : TOKENIZE_NO_MEMORY;
}

tokenize_status encoder_encode(encoder *e, const uint8_t *text, size_t n_bytes, unsigned flags,
                               id_buffer *out)
{
    const bool first = (flags & TEXT_FIRST) != 0;
    size_t from = 0;
    added_match m = {0};
    e->stopped = false;
    for (size_t at = 0; e->t->raw && added_tokens_next(e->t->raw, text, n_bytes, at, &m);) {
        at = m.next;
        e->specials_seen += m.special;
        if (m.special && e->specials == SPECIALS_ERROR)
            return TOKENIZE_SPECIAL;
        if (m.special && e->specials == SPECIALS_TEXT)
            continue;
        const size_t start = m.start > from ? m.start : from;
        m.taken = m.end;
        const stretch s = {text + from, start - from, first && from == 0, !first && from == 0};
        if (!encode_stretch(e, s, out))
            return failure_status(e);
        if (!(m.special && e->specials == SPECIALS_DROP) && !id_buffer_append(out, m.id))
            return TOKENIZE_NO_MEMORY;
        from = m.end;
    }
    const stretch s = {text + from, n_bytes - from, first && from == 0, !first && from == 0};
    return encode_stretch(e, s, out) ? TOKENIZE_OK : failure_status(e);
}
