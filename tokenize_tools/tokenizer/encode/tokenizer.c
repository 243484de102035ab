/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/encode/char_decode.h"
#include "tokenizer/encode/char_engine.h"
#include "tokenizer/model/byte_alphabet.h"
#include "tokenizer/model/name_table.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/encode/token_ranges.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/encode/word_engine.h"
#include "tokenizer/encode/added_tokens.h"

struct tokenizer {
    bool builtin; /* the built-in `bytes`; else one of these: */
    word_engine *words;
    char_engine *chars;
    char_decoder *decoder;  /* NULL: the bytes of the tokens */
    normalizer *normalizer; /* before `words`; or NULL */
    bool prefix_space;      /* the same */

    added_tokens *raw, *normalized;
    range_rules ranges;
    model own;        /* the tokens */
    name_table names; /* specials first */
    tokenizer_info info;
};

/* ---- What is supported ---- */

/* Words of a pattern, not characters. */
static bool has_words(const model *m)
{
    const bool first_piece = m->metaspace && m->prepend == PREPEND_FIRST && m->split != SPLIT_NONE;
    return m->kind == MODEL_BYTE_BPE || m->kind == MODEL_WORDPIECE || m->kind == MODEL_WORDLEVEL ||
           m->n_later > 0 || first_piece ||
           (m->kind == MODEL_CHAR_BPE &&
            ((m->split != SPLIT_NONE && !m->metaspace) || m->word_suffix.n_bytes > 0));
}

/* Adds the added tokens that are searched for in normalized text, with their contents normalized:
 * tokenizers decodes to these, too. */
static bool normalize_added(tokenizer *t, const model *m, model *normalized, failure *err)
{
    bool wanted = has_words(m);
    for (size_t i = 0; i < m->n_added; i++)
        wanted |= m->added[i].normalized;
    if (wanted && m->n_steps > 0 && !(t->normalizer = normalizer_new(m, true, err)))
        return false;
    return normalizer_add_tokens(t->normalizer, m, normalized, err);
}

static bool set_engine(tokenizer *t, const model *m, const model *normalized, failure *err)
{
    if (!has_words(m)) {
        normalizer_free(t->normalizer); /* the engine has one that may leave steps to it */
        t->normalizer = NULL;
        return (t->chars = char_engine_new(m, normalized, err)) != NULL;
    }
    t->prefix_space = m->prefix_space;
    t->words = word_engine_new(m, err);
    return t->words != NULL;
}

/* ---- Decoding ---- */

/* With bytes, an added token that is written in ByteLevel's alphabet is decoded by it. */
static bool set_decoded(tokenizer *t, const model *m, const added_token *a, failure *err)
{
    const model_token *token = &m->tokens[a->id];
    model_text text = {malloc(a->content.n_bytes), SIZE_MAX};
    if (!text.s)
        return fail_memory(err);
    if (m->kind == MODEL_BYTE_BPE)
        text.n_bytes = byte_alphabet_decode(a->content.s, a->content.n_bytes, (uint8_t *)text.s);
    const model_text decoded = text.n_bytes == SIZE_MAX ? a->content : text;
    bool set = token->n_bytes == decoded.n_bytes &&
               memcmp(model_token_bytes(m, a->id), decoded.s, decoded.n_bytes) == 0;
    if (!set && (t->decoder || (t->decoder = char_decoder_new(m, false))))
        set = char_decoder_set_text(t->decoder, a->id, &decoded);
    free(text.s);
    return set || fail_memory(err);
}

/* If it differs from what the engine does. */
static bool set_decoder(tokenizer *t, const model *m, const model *normalized, failure *err)
{
    const bool prefixed = t->chars && char_engine_prefixes(t->chars);
    if (m->kind != MODEL_BYTE_BPE && !(t->decoder = char_decoder_new(m, prefixed)))
        return fail_memory(err);
    if (m->decode == DECODE_AS_MODEL)
        return true;
    bool ok = true;
    for (size_t i = 0; i < normalized->n_added && ok; i++)
        ok = set_decoded(t, m, &normalized->added[i], err);
    for (size_t i = 0; i < m->n_added && ok; i++)
        ok = m->added[i].normalized || set_decoded(t, m, &m->added[i], err);
    return ok;
}

/* ---- New and free ---- */

static bool keep_tokens(tokenizer *t, const model *m, failure *err)
{
    static const token_kind kinds[] = {TOKEN_CONTROL, TOKEN_NORMAL};
    name_result result = model_copy_tokens(&t->own, m) ? NAME_ADDED : NAME_NO_MEMORY;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t id = 0; id < m->n_tokens && result <= NAME_THERE; id++)
            if (m->tokens[id].kind == kinds[k])
                result =
                    name_table_add(&t->names, model_token_bytes(m, id), m->tokens[id].n_bytes, id);
    if (result == NAME_CROWDED)
        return model_fail(err, 0, "too many tokens have the same hash; the file looks malicious");
    return result != NAME_NO_MEMORY || fail_memory(err);
}

/* When everything else is set. */
static void set_ranges(tokenizer *t, const model *m)
{
    range_rules *r = &t->ranges;
    t->info.no_ranges = token_ranges_rules(m, r);
    r->tokens = t->own.tokens;
    r->bytes = t->own.bytes;
    r->added[0] = t->raw;
    if (r->searches)
        r->added[1] = t->chars ? char_engine_added(t->chars) : t->normalized;
}

tokenizer *tokenizer_new(const model *m, failure *err)
{
    model normalized;
    tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        fail_memory(err);
        return NULL;
    }
    model_init(&normalized);
    const bool made =
        keep_tokens(t, m, err) && normalize_added(t, m, &normalized, err) &&
        set_engine(t, m, &normalized, err) && (t->raw = added_tokens_new(m, false, err)) != NULL &&
        (!t->words || (t->normalized = added_tokens_new(&normalized, true, err)) != NULL) &&
        set_decoder(t, m, &normalized, err);
    model_free(&normalized);
    if (!made) {
        tokenizer_free(t);
        return NULL;
    }
    t->info = (tokenizer_info){
        .vocab_size = (uint32_t)m->n_tokens,
        .bos_id = m->bos_id,
        .eos_id = m->eos_id,
        .eos_guessed = m->eos_guessed,
        .eos_rival = m->eos_rival,
        .takes_bytes = t->words && !t->normalizer && word_engine_takes_bytes(t->words),
        .decodes = m->decode != DECODE_UNKNOWN,
        .family = m->family,
    };
    if (m->kind != MODEL_BYTE_BPE || m->split != SPLIT_NONE || m->n_steps > 0)
        t->info.unicode = UNICODE_VERSION;
    for (size_t i = 0; i < m->n_steps; i++)
        if (m->steps[i].kind == NORMALIZE_CHARSMAP)
            t->info.unicode = GRAPHEME_UNICODE;
    set_ranges(t, m);
    return t;
}

tokenizer *tokenizer_new_bytes(void)
{
    static const char eod[] = "<eod>";
    model m;
    failure err;
    tokenizer *t = calloc(1, sizeof *t);
    model_init(&m);
    bool made = t != NULL;
    for (uint32_t id = 0; made && id < BYTES_TOKENIZER_EOD; id++)
        made = model_set_token(&m, &(new_token){id, &(uint8_t){(uint8_t)id}, 1, TOKEN_NORMAL, 0},
                               &err);
    const new_token end = {BYTES_TOKENIZER_EOD, eod, sizeof eod - 1, TOKEN_CONTROL, 0};
    made = made && model_set_token(&m, &end, &err);
    if (made) {
        t->builtin = true;
        t->info = (tokenizer_info){.vocab_size = BYTES_TOKENIZER_VOCAB_SIZE,
                                   .bos_id = MODEL_NO_ID,
                                   .eos_id = BYTES_TOKENIZER_EOD,
                                   .eos_rival = MODEL_NO_ID,
                                   .takes_bytes = true,
                                   .decodes = true,
                                   .family = "bytes"};
        made = keep_tokens(t, &m, &err);
        set_ranges(t, &m);
    }
    model_free(&m);
    if (made)
        return t;
    tokenizer_free(t);
    return NULL;
}

void tokenizer_free(tokenizer *t)
{
    if (!t)
        return;
    word_engine_free(t->words);
    normalizer_free(t->normalizer);
    char_engine_free(t->chars);
    char_decoder_free(t->decoder);
    added_tokens_free(t->raw);
    added_tokens_free(t->normalized);
    name_table_free(&t->names);
    model_free(&t->own);
    free(t);
}

/* ---- Questions ---- */

const tokenizer_info *tokenizer_get_info(const tokenizer *t)
{
    return &t->info;
}

uint32_t tokenizer_find(const tokenizer *t, const char *content, size_t n_bytes)
{
    return name_table_find(&t->names, content, n_bytes);
}

const uint8_t *tokenizer_token_bytes(const tokenizer *t, uint32_t id, size_t *n_bytes)
{
    *n_bytes = 0;
    if (id >= t->own.n_tokens || t->own.tokens[id].kind == TOKEN_ABSENT)
        return NULL;
    *n_bytes = t->own.tokens[id].n_bytes;
    return model_token_bytes(&t->own, id);
}

/* ---- Encoders ---- */

/* Text is encoded in chunks of words that stay in the cache between splitting and lookup. */
#define CHUNK_BYTES ((size_t)48 << 10)

struct encoder {
    const tokenizer *t;
    specials_policy specials;
    uint64_t specials_seen;
    bool stopped;      /* by SPECIALS_ERROR, at: */
    text_span special; /* in the text, or in normalized text */
    uint32_t special_id;
    text_span stretch; /* the text between added tokens that was encoded last */
    word_scratch *words;
    char_scratch *chars;
    normalize_scratch normalizing;
    text_buffer prefixed;
};

encoder *encoder_new(const tokenizer *t, const encoder_options *options)
{
    const size_t cache_bytes = options->cache_bytes ? options->cache_bytes : (size_t)32 << 20;
    const size_t chunk_bytes = options->chunk_bytes ? options->chunk_bytes : CHUNK_BYTES;
    encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->t = t;
    e->specials = options->specials;
    if (t->words)
        e->words = word_scratch_new(t->words, cache_bytes, chunk_bytes);
    if (t->chars)
        e->chars = char_scratch_new(t->chars, cache_bytes, chunk_bytes);
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
    text_buffer_free(&e->prefixed);
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

typedef bool encode_function(encoder *e, stretch s, id_buffer *out);

/* Finds added tokens, and encodes the text between them. */
static bool encode_around(encoder *e, const added_tokens *added, stretch s, encode_function *encode,
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

/* Encodes normalized text between added tokens. */
static bool encode_words(encoder *e, stretch s, id_buffer *out)
{
    if (e->t->prefix_space && s.text.n_bytes > 0 && s.text.bytes[0] != ' ' &&
        !text_buffer_prefix(&e->prefixed, " ", 1, &s.text))
        return false;
    return word_scratch_encode(e->words, s.text, s.n_first, out);
}

static bool encode_chars(encoder *e, stretch s, id_buffer *out)
{
    return char_scratch_encode(e->chars, s, out);
}

static bool encode_normalized(encoder *e, stretch s, id_buffer *out)
{
    if (!normalize_text(e->t->normalizer, &e->normalizing, s.flags, &s.text))
        return false;
    s.n_first = e->normalizing.n_first;
    return encode_around(e, e->t->normalized, s, encode_words, out);
}

/* Encodes the text between added tokens that were found in raw text. */
static bool encode_stretch(encoder *e, stretch s, id_buffer *out)
{
    const size_t n_bytes = s.text.n_bytes;
    if (n_bytes == 0)
        return true;
    e->stretch = s.text;
    if (e->words)
        return encode_normalized(e, s, out);
    if (e->chars)
        return char_scratch_normalize(e->chars, &s) &&
               encode_around(e, char_engine_added(e->t->chars), s, encode_chars, out);
    if (!id_buffer_reserve(out, n_bytes))
        return false;
    uint32_t *ids = out->ids + out->n;
    for (size_t i = 0; i < n_bytes; i++)
        ids[i] = s.text.bytes[i];
    out->n += n_bytes;
    return true;
}

tokenize_status encoder_encode(encoder *e, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    const stretch all = {{text, n_bytes}, NORMALIZE_FIRST, 0};
    e->stopped = false;
    if (encode_around(e, e->t->raw, all, encode_stretch, out))
        return TOKENIZE_OK;
    if (e->stopped)
        return TOKENIZE_SPECIAL;
    const bool too_long =
        e->chars ? char_scratch_too_long(e->chars) : normalize_too_long(&e->normalizing);
    return too_long ? TOKENIZE_TOO_LONG : TOKENIZE_NO_MEMORY;
}

special_match encoder_refused_special(const encoder *e, const uint8_t *text, size_t n_bytes)
{
    const size_t at = (size_t)((uintptr_t)e->special.bytes - (uintptr_t)text);
    if (at < n_bytes)
        return (special_match){at, e->special.bytes, e->special.n_bytes};
    special_match match = {.at = (size_t)(e->stretch.bytes - text)};
    match.bytes = tokenizer_token_bytes(e->t, e->special_id, &match.n_bytes);
    const uint8_t *found = memmem(e->stretch.bytes, e->stretch.n_bytes, match.bytes, match.n_bytes);
    match.at = found ? (size_t)(found - text) : match.at;
    return match;
}

/* ---- Ranges ---- */

const char *tokenizer_find_ranges(const tokenizer *t, const encoded_text *e, byte_range *ranges,
                                  size_t *place)
{
    *place = 0;
    if (t->info.no_ranges || token_ranges_find(&t->ranges, e, ranges, place))
        return t->info.no_ranges;
    const bool nfc_only = t->normalizer && t->ranges.searches;
    return nfc_only && nfc_stable_prefix(e->text, e->n_bytes) < e->n_bytes
               ? "the text is not in NFC; in NFC it has the same ids, and offsets"
               : "its tokens do not spell the text";
}

/* ---- Decode ---- */

bool tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t n_ids, model_text *text,
                      size_t *bad)
{
    size_t n_bytes = 0, n;
    *bad = SIZE_MAX;
    for (size_t i = 0; i < n_ids; i++) {
        if (!tokenizer_token_bytes(t, ids[i], &n)) {
            *bad = i;
            return false;
        }
        n_bytes += n;
    }
    if (t->decoder)
        return char_decode(t->decoder, ids, n_ids, text);
    text->s = malloc(n_bytes + 1);
    text->n_bytes = 0;
    if (!text->s)
        return false;
    for (size_t i = 0; i < n_ids; i++) {
        const uint8_t *bytes = tokenizer_token_bytes(t, ids[i], &n);
        memcpy(text->s + text->n_bytes, bytes, n);
        text->n_bytes += n;
    }
    text->s[text->n_bytes] = '\0';
    return true;
}
