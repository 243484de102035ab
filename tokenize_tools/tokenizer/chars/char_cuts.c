/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/chars/char_cuts.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/unicode/unicode.h"
#include "text/utf8.h"

#define MARK 0x2581u

/* ---- New ---- */

static void add_tokens(char_cuts *c, const model *m)
{
    char name[8];
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const uint8_t *bytes = model_token_bytes(m, id);
        if (m->tokens[id].kind == TOKEN_CONTROL && m->rule != MERGE_LISTED)
            continue; /* never in a text, unless it is an added token */
        if (m->tokens[id].kind == TOKEN_BYTE && m->tokens[id].n_bytes == 1) {
            if (m->kind != MODEL_UNIGRAM) /* in Unigram the text of its name matches */
                continue;
            snprintf(name, sizeof name, "<0x%02X>", *bytes);
            char_pairs_add_text(&c->pairs, (const uint8_t *)name, 6);
        } else {
            char_pairs_add_text(&c->pairs, bytes, m->tokens[id].n_bytes);
        }
    }
}

/* Whether merges use ids whose text does not occur in the input: bytes, or the unknown token. */
static bool merges_more_than_text(const model *m)
{
    for (size_t i = 0; i < m->n_merges; i++) {
        const uint32_t ids[2] = {m->merges[i].left, m->merges[i].right};
        for (size_t k = 0; k < 2; k++)
            if (ids[k] == m->unknown_id || m->tokens[ids[k]].kind != TOKEN_NORMAL)
                return true;
    }
    return false;
}

static void add_beginning(char_cuts *c, const uint8_t *bytes, size_t n_bytes)
{
    uint32_t first;
    if (n_bytes > 0 && utf8_decode(bytes, n_bytes, &first) > 0)
        char_pairs_add(&c->pairs, CHAR_ANY, first);
}

static void add_end(char_cuts *c, const uint8_t *bytes, size_t n_bytes)
{
    size_t at = n_bytes;
    uint32_t last;
    while (at > 0 && (bytes[--at] & 0xC0) == 0x80)
        ;
    if (n_bytes > 0 && utf8_decode(bytes + at, n_bytes - at, &last) > 0)
        char_pairs_add(&c->pairs, last, CHAR_ANY);
}

/* The text of the unknown token joins with unknown characters beside it into one id. */
static void add_unknown(char_cuts *c, const model *m)
{
    if (m->unknown_id >= m->n_tokens)
        return;
    const uint8_t *bytes = model_token_bytes(m, m->unknown_id);
    const size_t n_bytes = m->tokens[m->unknown_id].n_bytes;
    add_end(c, bytes, n_bytes);
    add_beginning(c, bytes, n_bytes);
}

/* The text after a token is a new stretch, which may get a prefix; it does not continue the one
 * before. */
void char_cuts_add_token(char_cuts *c, const added_token *token)
{
    const uint8_t *bytes = (const uint8_t *)token->content.s;
    const size_t n_bytes = token->content.n_bytes;
    char_pairs_add_text(&c->pairs, bytes, n_bytes);
    add_end(c, bytes, n_bytes);
    if (token->single_word) /* the character before it matters */
        add_beginning(c, bytes, n_bytes);
}

void char_cuts_add_model(char_cuts *c, const model *m)
{
    add_tokens(c, m);
    add_unknown(c, m);
    for (size_t i = 0; i < m->n_added; i++)
        char_cuts_add_token(c, &m->added[i]);
    normalizer_add_pairs(c->normalizer, &c->pairs);
    c->pairs.all |= merges_more_than_text(m);
}

void char_cuts_free(char_cuts *c)
{
    char_pairs_free(&c->pairs);
}

/* ---- Search ---- */

#define N_AROUND NORMALIZER_CUT_CHARACTERS
#define BYTES_AFTER ((N_AROUND - 2) * (size_t)4) /* a place, that decide on it */

static bool is_known(const char_cuts *c, uint32_t character)
{
    return c->bpe ? char_bpe_knows(c->bpe, character) : unigram_knows(c->pieces, character);
}

static unsigned n_known(const char_cuts *c, const uint32_t beside[2])
{
    return (unsigned)is_known(c, beside[0]) + (unsigned)is_known(c, beside[1]);
}

static bool is_place(const char_cuts *c, uint32_t after)
{
    switch (c->place) {
    case CUT_BEFORE_BLANKS:
        return unicode_class_of(after) == CLASS_SPACE;
    case CUT_BEFORE_MARKS:
        return after == MARK || (after == ' ' && c->spaces_are_marks);
    default:
        return c->place == CUT_BEFORE_ANY;
    }
}

/* Whether the text may be cut between around[1] and around[2]. Blanks before a cut would look like
 * the end of the text. */
static bool cuts_here(const char_cuts *c, const uint32_t around[N_AROUND])
{
    uint32_t beside[2];
    if (char_pairs_has(&c->pairs, around[1], around[2]) ||
        !normalizer_cuts(c->normalizer, &c->pairs, around, beside))
        return false;
    return is_place(c, beside[1]) && !char_pairs_has(&c->pairs, beside[0], beside[1]) &&
           beside[0] != MARK && unicode_class_of(beside[0]) != CLASS_SPACE &&
           (c->n_known == 0 || n_known(c, beside) >= c->n_known);
}

static bool may_cut_ascii(const char_cuts *c, uint8_t left, uint8_t right)
{
    return (c->ascii[left][right / 64] >> right % 64 & 1) != 0;
}

void char_cuts_finish(char_cuts *c)
{
    const uint32_t letter = normalizer_neutral(c->normalizer, &c->pairs);
    for (uint32_t left = 0; left < 128; left++)
        for (uint32_t right = 0; right < 128; right++) {
            const uint32_t around[N_AROUND] = {letter, left, right, letter, letter};
            const bool cuts = letter == CHAR_ANY || cuts_here(c, around);
            c->ascii[left][right / 64] |= (uint64_t)cuts << right % 64;
        }
}

static bool is_inside(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The characters around a place; two of them are before it. */
static bool read_around(const uint8_t *text, size_t n_bytes, size_t place, uint32_t *around)
{
    for (size_t i = 2, end = place, at; i-- > 0; end = at) {
        for (at = end; at > 0 && is_inside(text[--at]);)
            ;
        if (end == 0 || utf8_decode(text + at, end - at, &around[i]) != end - at)
            return false;
    }
    for (size_t i = 2, at = place, length; i < N_AROUND; i++, at += length) {
        length = at < n_bytes ? utf8_decode(text + at, n_bytes - at, &around[i]) : 0;
        if (length == 0)
            return false;
    }
    bool has_nul = false;
    for (size_t i = 0; i < N_AROUND; i++)
        has_nul |= around[i] == 0;
    return !has_nul;
}

size_t char_cuts_find(const char_cuts *c, const uint8_t *text, size_t n_searched, size_t n_bytes)
{
    uint32_t around[N_AROUND];
    const size_t last = n_searched < BYTES_AFTER ? 0 : n_searched - BYTES_AFTER;
    if (c->place == CUT_NOWHERE || c->pairs.all)
        return 0;
    for (size_t at = n_bytes < 2 ? 0 : n_bytes - 1; at > last; at--) {
        const uint8_t left = text[at - 1], right = text[at];
        const bool ascii = (left | right) < 0x80;
        if (ascii ? !may_cut_ascii(c, left, right) : is_inside(right))
            continue;
        if (read_around(text, n_bytes, at, around) && cuts_here(c, around))
            return at;
    }
    return 0;
}
