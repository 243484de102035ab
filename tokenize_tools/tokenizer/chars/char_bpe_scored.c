/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe_scored.c - sentencepiece's BPE: any two symbols that together are a piece may merge, and
 * the score of the piece is the rank. */
#include "tokenizer/chars/char_bpe_build.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

#define MAX_SPLIT_DEPTH 100 /* the limit of sentencepiece for unused pieces */
#define MAX_UNUSED_SYMBOLS 256
#define MAX_PIECE_BYTES 8000 /* sentencepiece refuses this many */

/* A file may be made so that its pieces take for ever: many long ones, each the beginning of the
 * next. Real files need a hundredth of this. */
#define MAX_WORK ((uint64_t)1 << 30)

static bool is_little_work(char_bpe_builder *w, uint64_t n_steps)
{
    w->work += n_steps;
    return w->work < MAX_WORK || model_fail(w->err, 0, "there are too many long pieces");
}

/* Adds symbols for characters that occur only inside tokens. */
static bool set_other_characters(char_bpe_builder *w, uint32_t id)
{
    const uint8_t *at = model_token_bytes(w->m, id), *end = at + w->m->tokens[id].n_bytes;
    while (at < end) {
        uint32_t c;
        const size_t n = utf8_decode(at, (size_t)(end - at), &c);
        if (n == 0)
            return model_fail(w->err, 0, "the piece with id %u is not UTF-8", id);
        if (char_bpe_symbol(w->b, c) == NO_SYMBOL && !char_bpe_set_symbol(w, c, w->b->n_symbols++))
            return false;
        at += n;
    }
    return true;
}

/* ---- sentencepiece: pairs ---- */

/* A number that orders scores as sentencepiece does, which compares their bits. */
static uint32_t score_order(const model *m, uint32_t id)
{
    const float score = (float)m->tokens[id].score;
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

static int compare_scores(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static uint32_t rank_of(const char_bpe_builder *w, uint32_t id)
{
    const uint32_t order = score_order(w->m, id);
    const uint32_t *found = bsearch(&order, w->scores, w->n_scores, sizeof order, compare_scores);
    return (uint32_t)(found - w->scores);
}

static bool add_piece(char_bpe_builder *w, uint32_t id, double_array_key *keys, size_t *n)
{
    const model_token *t = &w->m->tokens[id];
    const uint8_t *bytes = model_token_bytes(w->m, id);
    if (!char_bpe_merges_lead_to(w->m, id))
        return true;
    if (t->n_bytes == 0 || memchr(bytes, 0, t->n_bytes))
        return model_fail(w->err, 0, "the piece with id %u is empty or contains a NUL", id);
    if (t->n_bytes >= MAX_PIECE_BYTES)
        return model_fail(w->err, 0, "the piece with id %u has %u bytes, which is too long", id,
                          t->n_bytes);
    w->scores[*n] = score_order(w->m, id);
    keys[(*n)++] = (double_array_key){bytes, t->n_bytes, id};
    return true;
}

static bool build_pieces(char_bpe_builder *w, double_array_key *keys)
{
    size_t n = 0, n_scores = 0;
    for (uint32_t id = 0; id < w->m->n_tokens; id++)
        if (!add_piece(w, id, keys, &n))
            return false;
    qsort(keys, n, sizeof *keys, double_array_compare);
    for (size_t i = 1; i < n; i++) {
        const double_array_key *x = &keys[i - 1], *y = &keys[i];
        if (double_array_same(x, y))
            return model_fail(w->err, 0, "the pieces with ids %u and %u are the same", x->value,
                              y->value);
    }
    qsort(w->scores, n, sizeof *w->scores, compare_scores);
    for (size_t i = 0; i < n; i++)
        if (n_scores == 0 || w->scores[n_scores - 1] != w->scores[i])
            w->scores[n_scores++] = w->scores[i];
    w->n_scores = n_scores;
    return double_array_build(&w->pieces, keys, n) || char_bpe_no_memory(w);
}

bool char_bpe_load_pieces(char_bpe_builder *w)
{
    double_array_key *keys = malloc(w->m->n_tokens * sizeof *keys + 1);
    w->scores = malloc(w->m->n_tokens * sizeof *w->scores + 1);
    const bool built = keys && w->scores ? build_pieces(w, keys) : char_bpe_no_memory(w);
    free(keys);
    return built;
}

/* The symbol of a part of a piece, which begins with the character c. */
static uint32_t symbol_of_part(const char_bpe_builder *w, const uint8_t *part, size_t n_bytes)
{
    uint32_t c, id;
    if (utf8_decode(part, n_bytes, &c) == n_bytes)
        return char_bpe_symbol(w->b, c);
    return double_array_find(&w->pieces, part, n_bytes, &id) ? id : NO_SYMBOL;
}

static uint32_t character_before(const uint8_t *at)
{
    uint32_t c;
    size_t back = 1;
    while (utf8_decode(at - back, back, &c) != back)
        back++;
    return c;
}

/* Adds the pair of the left symbol and the rest of the piece. */
static bool add_split(char_bpe_builder *w, uint32_t id, uint32_t left, size_t cut)
{
    const uint8_t *bytes = model_token_bytes(w->m, id);
    const size_t n_right = w->m->tokens[id].n_bytes - cut;
    const uint32_t right = symbol_of_part(w, bytes + cut, n_right);
    uint32_t next;
    if (!is_little_work(w, n_right))
        return false;
    if (right == NO_SYMBOL)
        return true;
    utf8_decode(bytes + cut, n_right, &next);
    char_bpe_add_join(w, character_before(bytes + cut), next);
    return char_bpe_add_pair(w, (merge_pair){left, right, rank_of(w, id), id});
}

/* Any two symbols that together are the piece may merge to it. One walk finds all left ones. */
static bool add_splits(char_bpe_builder *w, uint32_t id)
{
    const uint8_t *bytes = model_token_bytes(w->m, id);
    const size_t n_bytes = w->m->tokens[id].n_bytes;
    uint32_t state = double_array_root(&w->pieces), first;
    bool has_value = false;
    for (size_t cut = 1; cut < n_bytes; cut++) {
        double_array_step(&w->pieces, &state, bytes[cut - 1], &has_value);
        if ((bytes[cut] & 0xC0) == 0x80)
            continue;
        uint32_t left = has_value ? double_array_value(&w->pieces, state) : NO_SYMBOL;
        if (utf8_decode(bytes, cut, &first) == cut)
            left = char_bpe_symbol(w->b, first);
        if (left != NO_SYMBOL && !add_split(w, id, left, cut))
            return false;
    }
    return true;
}

bool char_bpe_add_scored_pairs(char_bpe_builder *w)
{
    for (uint32_t id = 0; id < w->m->n_tokens; id++) {
        if (char_bpe_merges_lead_to(w->m, id) && !set_other_characters(w, id))
            return false;
    }
    for (uint32_t id = 0; id < w->m->n_tokens; id++) {
        if (char_bpe_merges_lead_to(w->m, id) && !add_splits(w, id))
            return false;
    }
    return true;
}

/* ---- sentencepiece: the ids of symbols that are not a piece, or an unused one ---- */

static bool append_unknown(char_bpe_builder *w, uint32_t c)
{
    char_bpe *b = w->b;
    uint8_t bytes[4];
    if (!b->byte_fallback)
        return id_buffer_append(&b->odd_ids, b->unknown_id) || char_bpe_no_memory(w);
    const size_t n = utf8_encode(c, bytes);
    for (size_t i = 0; i < n; i++)
        if (!id_buffer_append(&b->odd_ids, b->byte_ids[bytes[i]]))
            return char_bpe_no_memory(w);
    return true;
}

/* The two symbols from which the piece is merged. They do not depend on the text around it: while
 * nothing crosses the boundaries of the piece, its inside merges as it does alone. So this merges
 * it here, one pair after another. false: nothing merges to it. */
static bool last_pair(const char_bpe_builder *w, uint32_t id, uint32_t pair[2])
{
    const uint8_t *at = model_token_bytes(w->m, id), *end = at + w->m->tokens[id].n_bytes;
    uint32_t symbols[MAX_UNUSED_SYMBOLS], c;
    size_t n = 0;
    for (; at < end; n++) {
        at += utf8_decode(at, (size_t)(end - at), &c);
        symbols[n] = char_bpe_symbol(w->b, c);
    }
    while (n > 2) {
        size_t best = 0;
        uint32_t best_rank = UINT32_MAX, rank;
        for (size_t i = 0; i + 1 < n; i++) {
            merge_table_find(w->b->merges, symbols[i], symbols[i + 1], &rank);
            best = rank < best_rank ? i : best;
            best_rank = rank < best_rank ? rank : best_rank;
        }
        if (best_rank == UINT32_MAX)
            return false;
        symbols[best] = merge_table_find(w->b->merges, symbols[best], symbols[best + 1], NULL);
        n--;
        memmove(&symbols[best + 1], &symbols[best + 2], (n - best - 1) * sizeof *symbols);
    }
    memcpy(pair, symbols, 2 * sizeof *pair);
    return merge_table_find(w->b->merges, pair[0], pair[1], NULL) == id;
}

static bool is_splittable(char_bpe_builder *w, uint32_t id)
{
    size_t n = 0;
    const uint8_t *bytes = model_token_bytes(w->m, id);
    for (size_t i = 0; i < w->m->tokens[id].n_bytes; i++)
        n += (bytes[i] & 0xC0) != 0x80;
    if (n > MAX_UNUSED_SYMBOLS)
        return model_fail(w->err, 0, "the unused piece with id %u has more than %d characters", id,
                          MAX_UNUSED_SYMBOLS);
    return is_little_work(w, n * n);
}

typedef struct to_split {
    uint32_t symbol;
    int depth;
} to_split;

/* Characters by symbol, for symbols above the ids. */
static uint32_t character_of(const char_bpe_builder *w, const uint32_t *characters, uint32_t symbol)
{
    uint32_t c = 0;
    if (symbol >= w->b->n_ids)
        return characters[symbol - w->b->n_ids];
    char_bpe_only_character(w->m, symbol, &c);
    return c;
}

/* Splits an unused piece as it was merged, recursively. The stack holds the right halves. */
static bool split_unused(char_bpe_builder *w, const uint32_t *characters, uint32_t symbol)
{
    to_split stack[MAX_SPLIT_DEPTH + 2] = {{symbol, 0}};
    size_t n_stack = 1;
    uint32_t c, pair[2];
    while (n_stack > 0) {
        const to_split at = stack[--n_stack];
        const bool token = at.symbol < w->b->n_ids;
        const bool given =
            at.depth > MAX_SPLIT_DEPTH || (token && w->m->tokens[at.symbol].kind != TOKEN_UNUSED);
        if (given && token) {
            if (!id_buffer_append(&w->b->odd_ids, at.symbol))
                return char_bpe_no_memory(w);
            continue;
        }
        if (!token || char_bpe_only_character(w->m, at.symbol, &c)) {
            if (!append_unknown(w, character_of(w, characters, at.symbol)))
                return false;
            continue;
        }
        if (!is_splittable(w, at.symbol))
            return false;
        if (!last_pair(w, at.symbol, pair))
            continue;
        stack[n_stack++] = (to_split){pair[1], at.depth + 1};
        stack[n_stack++] = (to_split){pair[0], at.depth + 1};
    }
    return true;
}

static bool add_odd(char_bpe_builder *w, const uint32_t *characters, uint32_t symbol)
{
    char_bpe *b = w->b;
    const size_t first = b->odd_ids.n;
    if (!split_unused(w, characters, symbol))
        return false;
    b->odd[symbol / 8] |= (uint8_t)(1 << symbol % 8);
    b->odd_outputs[b->n_odd++] =
        (struct odd_output){symbol, (uint32_t)first, (uint32_t)(b->odd_ids.n - first)};
    return true;
}

static bool is_split(const model *m, uint32_t id)
{
    return m->tokens[id].kind == TOKEN_UNUSED && m->rule == MERGE_SCORED;
}

static bool add_odds(char_bpe_builder *w, uint32_t *characters)
{
    char_bpe *b = w->b;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (b->page_of[c / CHAR_PAGE] == 0) {
            c |= CHAR_PAGE - 1; /* the whole page */
            continue;
        }
        const uint32_t symbol = char_bpe_symbol(b, c);
        if (symbol != NO_SYMBOL && symbol >= b->n_ids)
            characters[symbol - b->n_ids] = c;
    }
    for (uint32_t id = 0; id < b->n_ids; id++)
        if (is_split(w->m, id) && !add_odd(w, characters, id))
            return false;
    for (uint32_t symbol = b->n_ids; symbol < b->n_symbols; symbol++)
        if (!add_odd(w, characters, symbol))
            return false;
    return true;
}

bool char_bpe_load_odd_symbols(char_bpe_builder *w)
{
    char_bpe *b = w->b;
    size_t n_odd = b->n_symbols - b->n_ids;
    for (uint32_t id = 0; id < b->n_ids; id++)
        n_odd += is_split(w->m, id);
    b->odd = calloc(b->n_symbols / 8 + 1, 1);
    b->odd_outputs = malloc(n_odd * sizeof *b->odd_outputs + 1);
    uint32_t *characters = malloc((b->n_symbols - b->n_ids) * sizeof *characters + 1);
    const bool loaded =
        b->odd && b->odd_outputs && characters ? add_odds(w, characters) : char_bpe_no_memory(w);
    free(characters);
    return loaded;
}
