/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/char_decode.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/normalize/normalizer.h"
#include "base/array.h"
#include "base/json_parts.h"
#include "base/utf8.h"

struct char_decoder {
    model own;       /* the tokens, and how to decode them */
    bool falls_back; /* HuggingFace's ByteFallback */
};

static const uint8_t replacement[3] = {0xEF, 0xBF, 0xBD}; /* U+FFFD */

/* HuggingFace's ByteFallback goes by the names of tokens, of which the vocabulary has those in
 * capitals: <0x0a> and <0x+a> are bytes too. */
static void find_byte(char_decoder *d, model_token *t)
{
    uint8_t *name = d->own.bytes + t->offset;
    if (!d->falls_back || t->kind == TOKEN_ABSENT || t->n_bytes != 6 ||
        memcmp(name, "<0x", 3) != 0 || name[5] != '>' || !json_hex_digits[name[4]] ||
        (name[3] != '+' && !json_hex_digits[name[3]]))
        return;
    const int high = name[3] == '+' ? 0 : json_hex_digits[name[3]] - 1;
    *name = (uint8_t)(high << 4 | (json_hex_digits[name[4]] - 1));
    t->n_bytes = 1;
    t->kind = TOKEN_BYTE;
}

bool char_decoder_set_text(char_decoder *d, uint32_t id, const model_text *text)
{
    model *m = &d->own;
    if (!array_reserve(&m->bytes, &m->bytes_capacity, m->n_bytes + text->n_bytes + MODEL_PADDING,
                       1))
        return false;
    memcpy(m->bytes + m->n_bytes, text->s, text->n_bytes);
    memset(m->bytes + m->n_bytes + text->n_bytes, 0, MODEL_PADDING);
    m->tokens[id] = (model_token){m->n_bytes, (uint32_t)text->n_bytes, TOKEN_NORMAL, 0};
    m->n_bytes += text->n_bytes;
    find_byte(d, &m->tokens[id]);
    return true;
}

char_decoder *char_decoder_new(const model *m)
{
    char_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->own = (model){.decode = m->decode,
                     .decode_strips = m->decode_strips,
                     .decode_cleans = m->decode_cleans,
                     .dummy_prefix = m->dummy_prefix,
                     .collapse_spaces = m->collapse_spaces,
                     .unknown_id = m->unknown_id};
    d->falls_back = m->byte_fallback && m->decode != DECODE_AS_MODEL;
    if (!model_copy_tokens(&d->own, m) ||
        !model_text_set(&d->own.decode_affix, m->decode_affix.s, m->decode_affix.n_bytes)) {
        char_decoder_free(d);
        return NULL;
    }
    for (size_t id = 0; id < d->own.n_tokens && d->falls_back; id++)
        find_byte(d, &d->own.tokens[id]);
    return d;
}

void char_decoder_free(char_decoder *d)
{
    if (!d)
        return;
    model_free(&d->own);
    free(d);
}

/* ---- Bytes of characters that have no token ---- */

/* sentencepiece: each byte that is not part of a character becomes U+FFFD. */
static bool append_each(text_span bytes, text_buffer *out)
{
    for (size_t i = 0; i < bytes.n_bytes;) {
        uint32_t c;
        const size_t n = utf8_decode(bytes.bytes + i, bytes.n_bytes - i, &c);
        if (!(n > 0 ? text_buffer_append(out, bytes.bytes + i, n)
                    : text_buffer_append(out, replacement, sizeof replacement)))
            return false;
        i += n > 0 ? n : 1;
    }
    return true;
}

/* HuggingFace: either all bytes become U+FFFD, or all are characters. */
static bool append_all_or_none(text_span bytes, text_buffer *out)
{
    if (utf8_valid_prefix(bytes.bytes, bytes.n_bytes) == bytes.n_bytes)
        return text_buffer_append(out, bytes.bytes, bytes.n_bytes);
    for (size_t i = 0; i < bytes.n_bytes; i++)
        if (!text_buffer_append(out, replacement, sizeof replacement))
            return false;
    return true;
}

/* ---- Tokens ---- */

/* Replaces all `from` in the text, which get shorter, from `start` on. */
static void replace_all(text_buffer *t, size_t start, const char *from, const char *to)
{
    const size_t n_from = strlen(from), n_to = strlen(to);
    size_t n = start;
    for (size_t i = start; i < t->n_bytes;) {
        const bool found = t->n_bytes - i >= n_from && memcmp(t->bytes + i, from, n_from) == 0;
        if (found)
            memcpy(t->bytes + n, to, n_to);
        else
            t->bytes[n] = t->bytes[i];
        n += found ? n_to : 1;
        i += found ? n_from : 1;
    }
    t->n_bytes = n;
}

/* Cleans up each token by itself, as the reference does. */
static void clean_up(text_buffer *t, size_t start)
{
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        replace_all(t, start, pairs[i][0], pairs[i][1]);
}

static bool append_piece(const char_decoder *d, text_span text, bool first, text_buffer *out)
{
    const size_t start = out->n_bytes, n_prefix = d->own.decode_affix.n_bytes;
    const bool joins = d->own.decode == DECODE_WORDPIECE && text.n_bytes >= n_prefix &&
                       memcmp(text.bytes, d->own.decode_affix.s, n_prefix) == 0;
    const size_t n_skipped = joins && !first ? n_prefix : 0;
    if ((!first && !joins && !text_buffer_append(out, " ", 1)) ||
        !text_buffer_append(out, text.bytes + n_skipped, text.n_bytes - n_skipped))
        return false;
    if (d->own.decode_cleans && out->n_bytes > start &&
        memchr(out->bytes + start, ' ', out->n_bytes - start))
        clean_up(out, start);
    return true;
}

typedef struct progress {
    text_buffer *out;
    bool at_start; /* sentencepiece: a mark here is not part of the text */
    bool begun;    /* there was a token, or a run of bytes, before */
    bool last;     /* this is the last token */
} progress;

/* A run of bytes counts as one token. */
static bool flush_bytes(const char_decoder *d, text_buffer *bytes, progress *p)
{
    if (bytes->n_bytes == 0)
        return true;
    const text_span span = text_buffer_span(bytes);
    const bool first = !p->begun;
    bytes->n_bytes = 0;
    p->begun = true;
    if (d->own.decode == DECODE_AS_MODEL)
        return append_each(span, p->out);
    if (d->own.decode == DECODE_METASPACE &&
        utf8_valid_prefix(span.bytes, span.n_bytes) == span.n_bytes)
        return normalize_marks(span, d->own.decode_strips && first, p->out);
    return append_all_or_none(span, p->out);
}

static bool append_sentencepiece(const char_decoder *d, uint32_t id, text_span text, progress *p)
{
    p->at_start &= p->out->n_bytes == 0;
    const uint8_t kind = d->own.tokens[id].kind;
    if (kind == TOKEN_CONTROL)
        return true;
    bool taken = false;
    if (p->at_start && (d->own.dummy_prefix || d->own.collapse_spaces) &&
        model_begins_with_mark(text.bytes, text.n_bytes)) {
        text.bytes += MODEL_MARK_BYTES;
        text.n_bytes -= MODEL_MARK_BYTES;
        taken = !d->own.collapse_spaces;
    }
    const bool appended =
        kind == TOKEN_UNKNOWN || id == d->own.unknown_id
            ? text_buffer_append(p->out, d->own.decode_affix.s, d->own.decode_affix.n_bytes)
            : normalize_marks(text, false, p->out);
    p->at_start &= !taken && p->out->n_bytes == 0;
    return appended;
}

static bool append_token(const char_decoder *d, uint32_t id, text_buffer *bytes, progress *p)
{
    const model_token *t = &d->own.tokens[id];
    const text_span text = {model_token_bytes(&d->own, id), t->n_bytes};
    if (t->kind == TOKEN_BYTE)
        return text_buffer_append(bytes, text.bytes, text.n_bytes);
    if (!flush_bytes(d, bytes, p))
        return false;
    const bool first = !p->begun;
    p->begun = true;
    if (d->own.decode == DECODE_AS_MODEL)
        return append_sentencepiece(d, id, text, p);
    if (d->own.decode == DECODE_BYTES)
        return text_buffer_append(p->out, text.bytes, text.n_bytes);
    if (d->own.decode == DECODE_SUFFIX)
        return normalize_replace(text, d->own.decode_affix, model_view(" ", !p->last), false,
                                 p->out);
    if (d->own.decode == DECODE_WORDPIECE || d->own.decode == DECODE_BLANKS)
        return append_piece(d, text, first, p->out);
    return normalize_marks(text, d->own.decode == DECODE_METASPACE && d->own.decode_strips && first,
                           p->out);
}

bool char_decode(const char_decoder *d, const uint32_t *ids, size_t n_ids, model_text *text)
{
    text_buffer out = {0}, bytes = {0};
    progress p = {.out = &out, .at_start = true};
    bool ok = true;
    for (size_t i = 0; i < n_ids && ok; i++) {
        if (ids[i] >= d->own.n_tokens || d->own.tokens[ids[i]].kind == TOKEN_ABSENT)
            continue;
        p.last = i + 1 == n_ids;
        ok = append_token(d, ids[i], &bytes, &p);
    }
    ok = ok && flush_bytes(d, &bytes, &p);
    if (ok) {
        text_span span = text_buffer_span(&out);
        if (d->own.decode == DECODE_MARKS && d->own.decode_strips && span.n_bytes > 0 &&
            span.bytes[0] == ' ')
            span = (text_span){span.bytes + 1, span.n_bytes - 1};
        ok = model_text_set(text, span.bytes, span.n_bytes);
    }
    text_buffer_free(&out);
    text_buffer_free(&bytes);
    return ok;
}
