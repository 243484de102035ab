/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe_build.c - makes the tables of char_bpe from a model. */
#include "tokenizer/chars/char_bpe_build.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

#define MAX_PAIRS ((1 << 22) - 1) /* of merge.h */

bool char_bpe_no_memory(char_bpe_builder *w)
{
    return model_no_memory(w->err);
}

void char_bpe_add_join(char_bpe_builder *w, uint32_t left, uint32_t right)
{
    char_words_join(&w->b->words, left, right);
}

bool char_bpe_add_pair(char_bpe_builder *w, merge_pair pair)
{
    pair_list *list = &w->list;
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity * 2 + 1024;
        merge_pair *pairs = realloc(list->pairs, capacity * sizeof *pairs);
        if (!pairs)
            return char_bpe_no_memory(w);
        list->pairs = pairs;
        list->capacity = capacity;
    }
    list->pairs[list->n++] = pair;
    return true;
}

/* ---- Characters ---- */

bool char_bpe_set_symbol(char_bpe_builder *w, uint32_t c, uint32_t symbol)
{
    char_bpe *b = w->b;
    uint16_t *page = &b->page_of[c / CHAR_PAGE];
    if (*page == 0 || b->n_pages == 0) {
        if (b->n_pages == b->pages_capacity) {
            const size_t capacity = b->pages_capacity * 2 + 16;
            void *pages = realloc(b->pages, capacity * sizeof *b->pages);
            if (!pages)
                return char_bpe_no_memory(w);
            b->pages = pages;
            b->pages_capacity = capacity;
        }
        memset(b->pages[b->n_pages], 0xFF, sizeof *b->pages);
        *page = (uint16_t)b->n_pages++;
    }
    b->pages[*page][c % CHAR_PAGE] = symbol;
    return true;
}

/* Page 0 has no symbols. */
static bool start_pages(char_bpe_builder *w)
{
    return char_bpe_set_symbol(w, 0, NO_SYMBOL);
}

bool char_bpe_only_character(const model *m, uint32_t id, uint32_t *c)
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

bool char_bpe_merges_lead_to(const model *m, uint32_t id)
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

static bool set_tokens_of_one(char_bpe_builder *w)
{
    const model *m = w->m;
    uint32_t c;
    w->b->last_offset = m->word_suffix.n_bytes > 0 ? LAST_CHARACTER : 0;
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        if (!char_bpe_merges_lead_to(m, id))
            continue;
        if (char_bpe_only_character(m, id, &c) && !char_bpe_set_symbol(w, c, id))
            return false;
        if (is_last_character(m, id, &c) && !char_bpe_set_symbol(w, c + LAST_CHARACTER, id))
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
static void drop_earlier(pair_list *list)
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
    const uint8_t *bytes = model_token_bytes(m, id);
    const size_t n = m->tokens[id].n_bytes;
    size_t back = 1;
    while (back < n && back < 4 && (bytes[n - back] & 0xC0) == 0x80)
        back++;
    return back <= n && utf8_decode(bytes + n - back, back, c) == back;
}

static void join_listed(char_bpe_builder *w, const merge_pair *pair)
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
        char_bpe_add_join(w, left, right);
    }
}

static bool add_listed_pairs(char_bpe_builder *w)
{
    const model *m = w->m;
    for (size_t i = 0; i < m->n_merges; i++) {
        const model_merge *g = &m->merges[i];
        if (g->left >= m->n_tokens || g->right >= m->n_tokens || g->result >= m->n_tokens)
            return model_fail(w->err, 0, "merge %zu names a token that does not exist", i);
        const merge_pair pair = {g->left, g->right, (uint32_t)i, g->result};
        join_listed(w, &pair);
        if (!char_bpe_add_pair(w, pair))
            return false;
    }
    drop_earlier(&w->list);
    return true;
}

/* ---- Tries ---- */

/* kinds: 1 << TOKEN_..., of the tokens in it. */
static bool build_trie(char_bpe_builder *w, double_array *t, unsigned kinds)
{
    const model *m = w->m;
    double_array_key *keys = malloc(m->n_tokens * sizeof *keys + 1);
    size_t n = 0;
    if (!keys)
        return char_bpe_no_memory(w);
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
        usable = double_array_build(t, keys, n) || char_bpe_no_memory(w);
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

static void join_user_pieces(char_bpe_builder *w)
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

static bool load_fallback(char_bpe_builder *w)
{
    char_bpe *b = w->b;
    const model *m = w->m;
    unsigned n_found = 0;
    memset(b->byte_ids, 0xFF, sizeof b->byte_ids);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        if (m->tokens[id].kind == TOKEN_BYTE && m->tokens[id].n_bytes == 1) {
            uint32_t *place = &b->byte_ids[*model_token_bytes(m, id)];
            n_found += *place == MODEL_NO_ID;
            *place = id;
        }
    }
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
static void limit_words(char_bpe_builder *w)
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

static bool add_pairs(char_bpe_builder *w)
{
    switch (w->m->rule) {
    case MERGE_LISTED:
        return add_listed_pairs(w);
    case MERGE_SCORED:
        return char_bpe_load_pieces(w) && char_bpe_add_scored_pairs(w);
    default:
        return true;
    }
}

static bool build_tables(char_bpe_builder *w)
{
    char_bpe *b = w->b;
    const model *m = w->m;
    if (m->rule == MERGE_RANKED)
        return model_fail(w->err, 0, "BPE over characters with ranks is not supported");
    b->n_ids = b->n_symbols = (uint32_t)m->n_tokens;
    char_words_init(&b->words, b->spaces_are_marks);
    if (!load_fallback(w) || !start_pages(w) || (!has_words(m) && !set_tokens_of_one(w)) ||
        !add_pairs(w))
        return false;
    if (w->list.n >= MAX_PAIRS)
        return model_fail(w->err, 0, "more than %d merges", MAX_PAIRS - 1);
    b->merges = merge_table_new(w->list.pairs, w->list.n);
    if (!b->merges)
        return char_bpe_no_memory(w);
    if (!char_bpe_load_odd_symbols(w))
        return false;
    limit_words(w);
    if (has_words(m))
        return build_trie(w, &b->whole, 1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED);
    join_user_pieces(w);
    if (b->sentencepiece && !build_trie(w, &b->user, 1u << TOKEN_USER_DEFINED))
        return false;
    return !m->whole_word_first || build_trie(w, &b->whole, 1u << TOKEN_NORMAL);
}

char_bpe *char_bpe_new(const model *m, bool spaces_are_marks, model_error *err)
{
    char_bpe *b = calloc(1, sizeof *b);
    char_bpe_builder w = {.b = b, .m = m, .err = err};
    if (!b) {
        char_bpe_no_memory(&w);
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
