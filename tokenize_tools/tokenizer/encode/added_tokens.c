/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/added_tokens.h"

#include <stdlib.h>

#include "tokenizer/model/double_array.h"
#include "tokenizer/merge/pair_filter.h"
#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"

struct added_tokens {
    added_token *tokens; /* without contents */
    size_t n_tokens;
    pair_filter filter; /* where to search the trie */
    double_array trie;  /* values are indexes in `tokens` */
};

/* ---- New ---- */

/* Different tokens may be the same text when they are normalized; which one tokenizers finds then
 * differs from run to run. */
static bool check_different(const double_array_key *keys, size_t n_keys, failure *err)
{
    for (size_t i = 1; i < n_keys; i++) {
        if (double_array_same(&keys[i - 1], &keys[i]))
            return model_fail(err, 0, "two added tokens match the same text: \"%.*s\"",
                              model_shown(keys[i].n_bytes), (const char *)keys[i].bytes);
    }
    return true;
}

static bool same_beginning(const double_array_key *a, const double_array_key *b)
{
    return a->bytes[0] == b->bytes[0] && (a->n_bytes == 1) == (b->n_bytes == 1) &&
           (a->n_bytes == 1 || a->bytes[1] == b->bytes[1]);
}

static void fill_filter(pair_filter *f, const double_array_key *keys, size_t n_keys)
{
    size_t n_pairs = 0, pair = 0;
    for (size_t i = 0; i < n_keys; i++)
        n_pairs += i == 0 || !same_beginning(&keys[i], &keys[i - 1]);
    pair_filter_init(f, SIMD_BEST);
    for (size_t i = 0; i < n_keys; i++) {
        pair += i > 0 && !same_beginning(&keys[i], &keys[i - 1]);
        const size_t group =
            n_pairs <= PAIR_FILTER_GROUPS ? pair : pair * PAIR_FILTER_GROUPS / n_pairs;
        pair_filter_add(f, keys[i].bytes, keys[i].n_bytes, (unsigned)group);
    }
}

static bool fill_array(added_tokens *a, const model *m, bool normalized, failure *err)
{
    double_array_key *keys = malloc(m->n_added * sizeof *keys + 1);
    if (!keys)
        return fail_memory(err);
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *t = &m->added[i];
        if (t->normalized != normalized || t->content.n_bytes == 0)
            continue;
        keys[a->n_tokens] = (double_array_key){(const uint8_t *)t->content.s,
                                               (uint32_t)t->content.n_bytes, (uint32_t)a->n_tokens};
        a->tokens[a->n_tokens] = *t;
        a->tokens[a->n_tokens++].content = (model_text){0};
    }
    qsort(keys, a->n_tokens, sizeof *keys, double_array_compare);
    bool filled = check_different(keys, a->n_tokens, err);
    if (filled) {
        a->trie.has_nul = true; /* contents are UTF-8 */
        fill_filter(&a->filter, keys, a->n_tokens);
        filled = double_array_build(&a->trie, keys, a->n_tokens) || fail_memory(err);
    }
    free(keys);
    return filled;
}

added_tokens *added_tokens_new(const model *m, bool normalized, failure *err)
{
    added_tokens *a = calloc(1, sizeof *a);
    if (a)
        a->tokens = malloc(m->n_added * sizeof *a->tokens + 1);
    if (!a || !a->tokens)
        fail_memory(err);
    else if (fill_array(a, m, normalized, err))
        return a;
    added_tokens_free(a);
    return NULL;
}

void added_tokens_free(added_tokens *a)
{
    if (!a)
        return;
    double_array_free(&a->trie);
    free(a->tokens);
    free(a);
}

/* ---- Search ---- */

/* Finds the longest token at the first possible place from *at on, and sets *at to it. Returns its
 * length, or 0: there is none. */
static size_t find_token(const added_tokens *a, const uint8_t *text, size_t n_bytes, size_t *at,
                         uint32_t *which)
{
    for (size_t block = *at; block < n_bytes; block += PAIR_FILTER_BLOCK) {
        for (uint64_t places = pair_filter_find(&a->filter, text + block); places;
             places &= places - 1) {
            const size_t place = block + (size_t)__builtin_ctzll(places);
            if (place >= n_bytes)
                break;
            const size_t length = double_array_longest(&a->trie, double_array_root(&a->trie),
                                                       text + place, n_bytes - place, which);
            if (length > 0) {
                *at = place;
                return length;
            }
        }
    }
    return 0;
}

/* Whether no character of a word is on either side; the ends of the text count as none. */
static bool is_single_word(const uint8_t *text, size_t n_bytes, size_t start, size_t end)
{
    uint32_t c;
    if (utf8_decode_last(text, start, &c) > 0 && unicode_is_word(c))
        return false;
    return end == n_bytes || utf8_decode(text + end, n_bytes - end, &c) == 0 || !unicode_is_word(c);
}

static size_t find_blanks_after(const uint8_t *text, size_t n_bytes, added_match *match)
{
    if (match->next > match->blanks_end)
        match->blanks_end = unicode_blanks_after(text, n_bytes, match->next);
    return match->blanks_end;
}

static size_t find_blanks_before(const uint8_t *text, added_match *match)
{
    const bool known = match->before_end > match->taken;
    const size_t floor = known ? match->before_end : match->taken;
    const size_t start = unicode_blanks_before(text, floor, match->at);
    if (!known || start > floor)
        match->before_start = start;
    match->before_end = match->at;
    return match->before_start > match->taken ? match->before_start : match->taken;
}

bool added_tokens_next(const added_tokens *a, const uint8_t *text, size_t n_bytes, size_t from,
                       added_match *match)
{
    uint32_t which;
    size_t length;
    while (a->n_tokens > 0 && (length = find_token(a, text, n_bytes, &from, &which)) > 0) {
        const added_token *t = &a->tokens[which];
        match->at = from;
        match->next = from + length;
        if (t->single_word && !is_single_word(text, n_bytes, from, match->next)) {
            from = match->next; /* what is inside it is not searched */
            continue;
        }
        match->end = t->rstrip ? find_blanks_after(text, n_bytes, match) : match->next;
        if (t->lstrip && match->end <= match->taken) { /* only blanks, which the token before has */
            from = match->next;
            continue;
        }
        match->start = t->lstrip ? find_blanks_before(text, match) : from;
        match->id = t->id;
        match->special = t->special;
        return true;
    }
    return false;
}
