/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/encode/char_decode.h"
#include "tokenizer/encode/text_rules.h"
#include "tokenizer/model/byte_alphabet.h"
#include "tokenizer/model/vocabulary.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/unicode/unicode.h"

struct tokenizer {
    text_rules rules;
    char_decoder *decoder; /* NULL: the bytes of the tokens */
    range_rules ranges;
    vocabulary *words;
    tokenizer_info info;
};

/* ---- Decoding ---- */

/* Sets the text of an added token. With bytes, one that is written in ByteLevel's alphabet is
 * decoded by it. */
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
    if (!set && (t->decoder || (t->decoder = char_decoder_new(m))))
        set = char_decoder_set_text(t->decoder, a->id, &decoded);
    free(text.s);
    return set || fail_memory(err);
}

/* Sets t->decoder, unless the text of the ids is the bytes of their tokens. */
static bool set_decoder(tokenizer *t, const model *m, const model *normalized, failure *err)
{
    if (m->kind != MODEL_BYTE_BPE && !(t->decoder = char_decoder_new(m)))
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

/* Sets t->ranges, when everything else is set. */
static void set_ranges(tokenizer *t, const model *m)
{
    range_rules *r = &t->ranges;
    t->info.no_ranges = token_ranges_rules(m, r);
    r->tokens = vocabulary_tokens(t->words)->tokens;
    r->bytes = vocabulary_tokens(t->words)->bytes;
    r->added[0] = t->rules.added[0];
    if (r->searches)
        r->added[1] = t->rules.added[1];
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
    const bool made = (t->words = vocabulary_new(m, err)) != NULL &&
                      text_rules_load(&t->rules, m, t->words, &normalized, err) &&
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
        .takes_bytes = text_rules_take_bytes(&t->rules),
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
    model_init(&m);
    m.eos_id = BYTES_TOKENIZER_EOD;
    m.family = "bytes";
    bool made = true;
    for (uint32_t id = 0; made && id < BYTES_TOKENIZER_EOD; id++)
        made = model_set_token(&m, &(new_token){id, &(uint8_t){(uint8_t)id}, 1, TOKEN_NORMAL, 0},
                               &err);
    const new_token end = {BYTES_TOKENIZER_EOD, eod, sizeof eod - 1, TOKEN_CONTROL, 0};
    made = made && model_set_token(&m, &end, &err);
    tokenizer *t = made ? tokenizer_new(&m, &err) : NULL;
    if (t)
        t->rules.bytes_are_ids = true;
    model_free(&m);
    return t;
}

void tokenizer_free(tokenizer *t)
{
    if (!t)
        return;
    text_rules_free(&t->rules);
    char_decoder_free(t->decoder);
    vocabulary_free(t->words);
    free(t);
}

/* ---- Questions ---- */

const text_rules *tokenizer_rules(const tokenizer *t)
{
    return &t->rules;
}

const tokenizer_info *tokenizer_get_info(const tokenizer *t)
{
    return &t->info;
}

uint32_t tokenizer_find(const tokenizer *t, const char *content, size_t n_bytes)
{
    return vocabulary_find_any(t->words, content, n_bytes);
}

const uint8_t *tokenizer_token_bytes(const tokenizer *t, uint32_t id, size_t *n_bytes)
{
    *n_bytes = 0;
    const model *tokens = vocabulary_tokens(t->words);
    if (id >= tokens->n_tokens || tokens->tokens[id].kind == TOKEN_ABSENT)
        return NULL;
    *n_bytes = tokens->tokens[id].n_bytes;
    return model_token_bytes(tokens, id);
}

/* ---- Ranges ---- */

const char *tokenizer_find_ranges(const tokenizer *t, const encoded_text *e, byte_range *ranges,
                                  size_t *place)
{
    *place = 0;
    if (t->info.no_ranges || token_ranges_find(&t->ranges, e, ranges, place))
        return t->info.no_ranges;
    const bool nfc_only = t->rules.by_pattern && t->rules.normalizer && t->ranges.searches;
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
