/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe_build.c - makes the tables of char_bpe from a model. */
#include "tokenizer/chars/char_bpe_parts.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

#define MAX_SPLIT_DEPTH 100 /* the limit of sentencepiece for unused pieces */
#define MAX_UNUSED_SYMBOLS 256
#define MAX_PIECE_BYTES 8000 /* sentencepiece refuses this many */

/* A file may be made so that its pieces take for ever: many long ones, each the beginning of the
 * next. Real files need a hundredth of this. */
#define MAX_WORK ((uint64_t)1 << 30)

typedef struct builder {
    char_bpe *b;
    const model *m;
    failure *err;
    double_array pieces; /* sentencepiece: possible results of merges */
    uint32_t *scores;    /* their different scores, the best first, as given by score_order */
    size_t n_scores;
    merge_list list;
    uint64_t work; /* steps taken so far */
} builder;

static bool is_little_work(builder *w, uint64_t n_steps)
{
    w->work += n_steps;
    return w->work < MAX_WORK || model_fail(w->err, 0, "there are too many long pieces");
}

/* ---- Characters ---- */

static bool set_symbol(builder *w, uint32_t c, uint32_t symbol)
{
    char_bpe *b = w->b;
    uint16_t *page = &b->page_of[c / CHAR_PAGE];
    if (*page == 0 || b->n_pages == 0) {
        if (b->n_pages == b->pages_capacity) {
            const size_t capacity = b->pages_capacity * 2 + 16;
            void *pages = realloc(b->pages, capacity * sizeof *b->pages);
            if (!pages)
                return fail_memory(w->err);
            b->pages = pages;
            b->pages_capacity = capacity;
        }
        memset(b->pages[b->n_pages], 0xFF, sizeof *b->pages);
        *page = (uint16_t)b->n_pages++;
    }
    b->pages[*page][c % CHAR_PAGE] = symbol;
    return true;
}

static bool only_character(const model *m, uint32_t id, uint32_t *c)
{
    const model_token *t = &m->tokens[id];
    return t->n_bytes > 0 && utf8_decode(model_token_bytes(m, id), t->n_bytes, c) == t->n_bytes;
}

/* sentencepiece ignores a piece that is only a NUL, if it does not refuse it. */
static bool is_lone_nul(const model *m, uint32_t id)
{
    return m->rule != MERGE_LISTED && m->tokens[id].n_bytes == 1 &&
           *model_token_bytes(m, id) == 0 &&
           (m->byte_fallback || m->tokens[id].kind == TOKEN_UNUSED);
}

static bool merges_lead_to(const model *m, uint32_t id)
{
    const uint8_t kind = m->tokens[id].kind;
    return (kind == TOKEN_NORMAL || kind == TOKEN_USER_DEFINED ||
            (kind == TOKEN_UNUSED && m->rule != MERGE_NONE)) &&
           !is_lone_nul(m, id);
}

/* A token of one character and the suffix is the character at the end of a word. */
static bool is_last_character(const model *m, uint32_t id, uint32_t *c)
{
    const model_text *suffix = &m->word_suffix;
    const uint8_t *bytes = model_token_bytes(m, id);
    const size_t n_bytes = m->tokens[id].n_bytes;
    if (suffix->n_bytes == 0 || n_bytes <= suffix->n_bytes)
        return false;
    const size_t n = n_bytes - suffix->n_bytes;
    return memcmp(bytes + n, suffix->s, suffix->n_bytes) == 0 && utf8_decode(bytes, n, c) == n;
}

static bool set_tokens_of_one(builder *w)
{
    const model *m = w->m;
    uint32_t c;
    w->b->last_offset = m->word_suffix.n_bytes > 0 ? LAST_CHARACTER : 0;
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        if (!merges_lead_to(m, id))
            continue;
        if (only_character(m, id, &c) && !set_symbol(w, c, id))
            return false;
        if (is_last_character(m, id, &c) && !set_symbol(w, c + LAST_CHARACTER, id))
            return false;
    }
    return true;
}

/* ---- tokenizer.json: pairs ---- */

static int compare_listed(const void *a, const void *b)
{
    const merge_pair *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    if (x->right != y->right)
        return x->right < y->right ? -1 : 1;
    return (x->rank < y->rank) - (x->rank > y->rank);
}

/* If a pair is listed twice, the later place counts. */
static void drop_earlier(merge_list *list)
{
    size_t n = 0;
    if (list->n > 0)
        qsort(list->pairs, list->n, sizeof *list->pairs, compare_listed);
    for (size_t i = 0; i < list->n; i++) {
        if (n > 0 && list->pairs[n - 1].left == list->pairs[i].left &&
            list->pairs[n - 1].right == list->pairs[i].right)
            continue;
        list->pairs[n++] = list->pairs[i];
    }
    list->n = n;
}

static bool first_character(const model *m, uint32_t id, uint32_t *c)
{
    return utf8_decode(model_token_bytes(m, id), m->tokens[id].n_bytes, c) > 0;
}

static bool last_character(const model *m, uint32_t id, uint32_t *c)
{
    return utf8_decode_last(model_token_bytes(m, id), m->tokens[id].n_bytes, c) > 0;
}

static void join_listed(builder *w, const merge_pair *pair)
{
    const model *m = w->m;
    uint32_t left, right;
    const bool characters = m->tokens[pair->left].kind == TOKEN_NORMAL &&
                            m->tokens[pair->right].kind == TOKEN_NORMAL &&
                            pair->left != m->unknown_id && pair->right != m->unknown_id;
    if (!characters || !last_character(m, pair->left, &left) ||
        !first_character(m, pair->right, &right)) {
        char_words_join_all(&w->b->words);
    } else if (!m->metaspace_split || right != CHAR_WORDS_MARK) {
        char_words_join(&w->b->words, left, right);
    }
}

static bool add_listed_pairs(builder *w)
{
    const model *m = w->m;
    for (size_t i = 0; i < m->n_merges; i++) {
        const model_merge *g = &m->merges[i];
        if (g->left >= m->n_tokens || g->right >= m->n_tokens || g->result >= m->n_tokens)
            return model_fail(w->err, 0, "merge %zu names a token that does not exist", i);
        const merge_pair pair = {g->left, g->right, (uint32_t)i, g->result};
        join_listed(w, &pair);
        if (!merge_list_add(&w->list, pair, w->err))
            return false;
    }
    drop_earlier(&w->list);
    return true;
}

/* ---- sentencepiece: any two symbols that together are a piece may merge, and the score of the
 * piece is the rank ---- */

/* Adds symbols for characters that occur only inside tokens. */
static bool set_other_characters(builder *w, uint32_t id)
{
    const uint8_t *at = model_token_bytes(w->m, id), *end = at + w->m->tokens[id].n_bytes;
    while (at < end) {
        uint32_t c;
        const size_t n = utf8_decode(at, (size_t)(end - at), &c);
        if (n == 0)
            return model_fail(w->err, 0, "the piece with id %u is not UTF-8", id);
        if (char_bpe_symbol(w->b, c) == NO_SYMBOL && !set_symbol(w, c, w->b->n_symbols++))
            return false;
        at += n;
    }
    return true;
}

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

static uint32_t rank_of(const builder *w, uint32_t id)
{
    const uint32_t order = score_order(w->m, id);
    const uint32_t *found = bsearch(&order, w->scores, w->n_scores, sizeof order, compare_scores);
    return (uint32_t)(found - w->scores);
}

static bool add_piece(builder *w, uint32_t id, double_array_key *keys, size_t *n)
{
    const model_token *t = &w->m->tokens[id];
    const uint8_t *bytes = model_token_bytes(w->m, id);
    if (!merges_lead_to(w->m, id))
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

static bool build_pieces(builder *w, double_array_key *keys)
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
    return double_array_build(&w->pieces, keys, n) || fail_memory(w->err);
}

static bool load_pieces(builder *w)
{
    double_array_key *keys = malloc(w->m->n_tokens * sizeof *keys + 1);
    w->scores = malloc(w->m->n_tokens * sizeof *w->scores + 1);
    const bool built = keys && w->scores ? build_pieces(w, keys) : fail_memory(w->err);
    free(keys);
    return built;
}

/* The symbol of a part of a piece, which begins with the character c. */
static uint32_t symbol_of_part(const builder *w, const uint8_t *part, size_t n_bytes)
{
    uint32_t c, id;
    if (utf8_decode(part, n_bytes, &c) == n_bytes)
        return char_bpe_symbol(w->b, c);
    return double_array_find(&w->pieces, part, n_bytes, &id) ? id : NO_SYMBOL;
}

/* Adds the pair of the left symbol and the rest of the piece. */
static bool add_split(builder *w, uint32_t id, uint32_t left, size_t cut)
{
    const uint8_t *bytes = model_token_bytes(w->m, id);
    const size_t n_right = w->m->tokens[id].n_bytes - cut;
    const uint32_t right = symbol_of_part(w, bytes + cut, n_right);
    uint32_t before, next;
    if (!is_little_work(w, n_right))
        return false;
    if (right == NO_SYMBOL)
        return true;
    utf8_decode(bytes + cut, n_right, &next);
    if (utf8_decode_last(bytes, cut, &before) > 0)
        char_words_join(&w->b->words, before, next);
    return merge_list_add(&w->list, (merge_pair){left, right, rank_of(w, id), id}, w->err);
}

/* Any two symbols that together are the piece may merge to it. One walk finds all left ones. */
static bool add_splits(builder *w, uint32_t id)
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

static bool add_scored_pairs(builder *w)
{
    for (uint32_t id = 0; id < w->m->n_tokens; id++) {
        if (merges_lead_to(w->m, id) && !set_other_characters(w, id))
            return false;
    }
    for (uint32_t id = 0; id < w->m->n_tokens; id++) {
        if (merges_lead_to(w->m, id) && !add_splits(w, id))
            return false;
    }
    return true;
}

/* ---- sentencepiece: the ids of symbols that are not a piece, or an unused one ---- */

static bool append_unknown(builder *w, uint32_t c)
{
    char_bpe *b = w->b;
    uint8_t bytes[4];
    if (!b->byte_fallback)
        return id_buffer_append(&b->odd_ids, b->unknown_id) || fail_memory(w->err);
    const size_t n = utf8_encode(c, bytes);
    for (size_t i = 0; i < n; i++)
        if (!id_buffer_append(&b->odd_ids, b->byte_ids[bytes[i]]))
            return fail_memory(w->err);
    return true;
}

/* The two symbols from which the piece is merged. They do not depend on the text around it: while
 * nothing crosses the boundaries of the piece, its inside merges as it does alone. So this merges
 * it here, one pair after another. false: nothing merges to it. */
static bool last_pair(const builder *w, uint32_t id, uint32_t pair[2])
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

static bool is_splittable(builder *w, uint32_t id)
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
static uint32_t character_of(const builder *w, const uint32_t *characters, uint32_t symbol)
{
    uint32_t c = 0;
    if (symbol >= w->b->n_ids)
        return characters[symbol - w->b->n_ids];
    only_character(w->m, symbol, &c);
    return c;
}

/* Splits an unused piece as it was merged, recursively. The stack holds the right halves. */
static bool split_unused(builder *w, const uint32_t *characters, uint32_t symbol)
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
                return fail_memory(w->err);
            continue;
        }
        if (!token || only_character(w->m, at.symbol, &c)) {
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

static bool add_odd(builder *w, const uint32_t *characters, uint32_t symbol)
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

static bool add_odds(builder *w, uint32_t *characters)
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

static bool load_odd_symbols(builder *w)
{
    char_bpe *b = w->b;
    size_t n_odd = b->n_symbols - b->n_ids;
    for (uint32_t id = 0; id < b->n_ids; id++)
        n_odd += is_split(w->m, id);
    b->odd = calloc(b->n_symbols / 8 + 1, 1);
    b->odd_outputs = malloc(n_odd * sizeof *b->odd_outputs + 1);
    uint32_t *characters = malloc((b->n_symbols - b->n_ids) * sizeof *characters + 1);
    const bool loaded =
        b->odd && b->odd_outputs && characters ? add_odds(w, characters) : fail_memory(w->err);
    free(characters);
    return loaded;
}

/* ---- Tries ---- */

/* kinds: 1 << TOKEN_..., of the tokens in it. */
static bool build_trie(builder *w, double_array *t, unsigned kinds)
{
    const model *m = w->m;
    double_array_key *keys = malloc(m->n_tokens * sizeof *keys + 1);
    size_t n = 0;
    if (!keys)
        return fail_memory(w->err);
    bool usable = true;
    for (uint32_t id = 0; id < m->n_tokens && usable; id++) {
        const model_token *token = &m->tokens[id];
        if ((kinds >> token->kind & 1) == 0 || token->n_bytes == 0)
            continue;
        const uint8_t *bytes = model_token_bytes(m, id);
        if (memchr(bytes, 0, token->n_bytes))
            usable = model_fail(w->err, 0, "the token with id %u contains a NUL", id);
        keys[n++] = (double_array_key){bytes, token->n_bytes, id};
        if (token->n_bytes > w->b->longest_whole)
            w->b->longest_whole = token->n_bytes;
    }
    t->spaces_are_marks = w->b->spaces_are_marks;
    t->max_keys = SENTENCEPIECE_USER_MATCHES;
    if (usable && n > 0) {
        qsort(keys, n, sizeof *keys, double_array_compare);
        usable = double_array_build(t, keys, n) || fail_memory(w->err);
    }
    free(keys);
    return usable;
}

/* Whether to search for pieces that begin with this byte: if it is rare in text, and there are not
 * too many such bytes. */
static bool is_user_first(char_bpe *b, uint8_t byte)
{
    if (b->n_user_firsts > 0 && memchr(b->user_firsts, byte, b->n_user_firsts))
        return true;
    if (b->n_user_firsts == MAX_USER_FIRSTS || byte > '~' ||
        !strchr("[]<>{}|#@$%&*+=^_~`/\\", byte))
        return false;
    b->user_firsts[b->n_user_firsts++] = byte;
    return true;
}

static void join_user_pieces(builder *w)
{
    char_bpe *b = w->b;
    for (uint32_t id = 0; id < w->m->n_tokens; id++) {
        const uint8_t *piece = model_token_bytes(w->m, id);
        const size_t n_bytes = w->m->tokens[id].n_bytes;
        if (w->m->tokens[id].kind != TOKEN_USER_DEFINED || n_bytes == 0)
            continue;
        if (!is_user_first(b, piece[0]))
            char_words_join_piece(&b->words, piece, n_bytes);
    }
}

/* ---- All ---- */

static bool load_fallback(builder *w)
{
    char_bpe *b = w->b;
    const model *m = w->m;
    const unsigned n_found = model_byte_ids(m, b->byte_ids);
    b->unknown_id = m->unknown_id;
    b->byte_fallback = m->byte_fallback;
    if (b->unknown_id != MODEL_NO_ID && b->unknown_id >= m->n_tokens)
        return model_fail(w->err, 0, "the unknown token does not exist");
    if (b->byte_fallback && n_found < 256 && b->sentencepiece)
        return model_fail(w->err, 0, "byte_fallback needs 256 byte pieces, but there are %u",
                          n_found);
    if (!b->byte_fallback && b->sentencepiece && b->unknown_id == MODEL_NO_ID)
        return model_fail(w->err, 0, "there is no unknown piece");
    b->fuse_before = !b->sentencepiece && m->fuse_unknown;
    b->fuse_after = b->sentencepiece && !b->byte_fallback;
    return true;
}

/* Whether tokens are whole words, and the characters of other words are unknown. */
static bool has_words(const model *m)
{
    return m->rule == MERGE_NONE && m->whole_word_first;
}

/* A run of unknown characters becomes one id, or vanishes: so it must not be cut. */
static void limit_words(builder *w)
{
    char_bpe *b = w->b;
    const uint32_t blank = char_bpe_symbol(b, b->spaces_are_marks ? CHAR_WORDS_MARK : ' ');
    const bool known = blank != NO_SYMBOL && !char_bpe_is_odd(b, blank);
    const bool sentence_first = w->m->whole_word_first && !w->m->metaspace_split;
    b->symbols_per_byte = b->spaces_are_marks && blank == NO_SYMBOL ? 3 : 1;
    const bool marks_begin_words = has_words(w->m) && b->byte_fallback && b->spaces_are_marks;
    if (!marks_begin_words && (sentence_first || (!b->byte_fallback && !known)))
        char_words_join_all(&b->words);
    else if (marks_begin_words || !b->byte_fallback)
        char_words_join_all_but_blanks(&b->words);
}

static bool add_pairs(builder *w)
{
    if (w->m->rule == MERGE_LISTED)
        return add_listed_pairs(w);
    return w->m->rule != MERGE_SCORED || (load_pieces(w) && add_scored_pairs(w));
}

static bool build_tables(builder *w)
{
    char_bpe *b = w->b;
    const model *m = w->m;
    if (m->rule == MERGE_RANKED)
        return model_fail(w->err, 0, "BPE over characters with ranks is not supported");
    b->n_ids = b->n_symbols = (uint32_t)m->n_tokens;
    char_words_init(&b->words, b->spaces_are_marks);
    if (!load_fallback(w) || !set_symbol(w, 0, NO_SYMBOL) /* page 0 has no symbols */ ||
        (!has_words(m) && !set_tokens_of_one(w)) || !add_pairs(w))
        return false;
    b->merges = merge_table_new(w->list.pairs, w->list.n);
    if (!b->merges)
        return fail_memory(w->err);
    if (!load_odd_symbols(w))
        return false;
    limit_words(w);
    if (has_words(m))
        return build_trie(w, &b->whole, 1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED);
    join_user_pieces(w);
    if (b->sentencepiece && !build_trie(w, &b->user, 1u << TOKEN_USER_DEFINED))
        return false;
    return !m->whole_word_first || build_trie(w, &b->whole, 1u << TOKEN_NORMAL);
}

char_bpe *char_bpe_new(const model *m, bool spaces_are_marks, failure *err)
{
    char_bpe *b = calloc(1, sizeof *b);
    builder w = {.b = b, .m = m, .err = err};
    if (!b) {
        fail_memory(err);
        return NULL;
    }
    b->sentencepiece = m->rule != MERGE_LISTED;
    b->spaces_are_marks = spaces_are_marks;
    const bool built = build_tables(&w);
    double_array_free(&w.pieces);
    free(w.scores);
    free(w.list.pairs);
    if (built)
        return b;
    char_bpe_free(b);
    return NULL;
}

void char_bpe_free(char_bpe *b)
{
    if (!b)
        return;
    merge_table_free(b->merges);
    free(b->pages);
    free(b->odd);
    free(b->odd_outputs);
    id_buffer_free(&b->odd_ids);
    double_array_free(&b->user);
    double_array_free(&b->whole);
    free(b);
}
