/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/char_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "tokenizer/model/double_array.h"

#define NO_SYMBOL UINT32_MAX
#define CHAR_PAGE 256
#define LAST_CHARACTER 0x110000
#define MAX_USER_FIRSTS 4

/* Symbols are ids. Above the ids are symbols of characters that have no token, but with which
 * tokens begin or end. A symbol that is `odd` is not its own id. */
struct char_bpe {
    char_words words;
    merge_table *merges;
    uint32_t n_ids, n_symbols;

    /* By character; at the end of a word by character + LAST_CHARACTER, if there is a suffix. */
    uint16_t page_of[2 * LAST_CHARACTER / CHAR_PAGE]; /* 0: no symbols */
    uint32_t last_offset;                             /* LAST_CHARACTER, or 0: no suffix */
    uint32_t (*pages)[CHAR_PAGE];
    size_t n_pages, pages_capacity;

    uint8_t *odd; /* a bit for each symbol */
    struct odd_output {
        uint32_t symbol, first, n; /* in odd_ids */
    } * odd_outputs;               /* by symbol, ascending */
    size_t n_odd;
    id_buffer odd_ids;

    double_array user;                    /* user-defined pieces, if any */
    uint8_t user_firsts[MAX_USER_FIRSTS]; /* their first bytes; `words` handles the others */
    unsigned n_user_firsts;
    double_array whole; /* texts that are one token without merging, if any */

    bool sentencepiece, spaces_are_marks, byte_fallback;
    bool fuse_before;        /* a run of unknown characters becomes one symbol */
    bool fuse_after;         /* a run of unknown ids becomes one */
    size_t symbols_per_byte; /* at most */
    uint32_t unknown_id;
    uint32_t byte_ids[256];
};

static uint32_t symbol_of(const char_bpe *b, uint32_t c)
{
    return b->pages[b->page_of[c / CHAR_PAGE]][c % CHAR_PAGE];
}

static bool is_odd(const char_bpe *b, uint32_t symbol)
{
    return b->odd[symbol / 8] >> symbol % 8 & 1;
}

#define MAX_SPLIT_DEPTH 100 /* the limit of sentencepiece for unused pieces */
#define MAX_UNUSED_SYMBOLS 256

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
    uint32_t *characters; /* by symbol, for symbols above the ids */
    merge_list list;
    uint64_t work; /* steps taken so far */
} builder;

static bool is_little_work(builder *w, uint64_t n_steps)
{
    w->work += n_steps;
    return w->work < MAX_WORK || model_fail(w->err, 0, "there are too many long pieces");
}

/* ---- Tables: characters ---- */

static bool set_symbol(builder *w, uint32_t c, uint32_t symbol)
{
    char_bpe *b = w->b;
    uint16_t *page = &b->page_of[c / CHAR_PAGE];
    if (*page == 0 || b->n_pages == 0) {
        if (!array_reserve(&b->pages, &b->pages_capacity, b->n_pages + 1, sizeof *b->pages))
            return fail_memory(w->err);
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

/* 1 << TOKEN_... */
static unsigned merged_kinds(const model *m)
{
    const unsigned kinds = 1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED;
    return m->rule == MERGE_NONE ? kinds : kinds | 1u << TOKEN_UNUSED;
}

static bool merges_lead_to(const model *m, uint32_t id)
{
    return merged_kinds(m) >> m->tokens[id].kind & 1;
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

static void join_listed(builder *w, const merge_pair *pair)
{
    const model *m = w->m;
    uint32_t left, right;
    const bool characters = m->tokens[pair->left].kind == TOKEN_NORMAL &&
                            m->tokens[pair->right].kind == TOKEN_NORMAL &&
                            pair->left != m->unknown_id && pair->right != m->unknown_id;
    if (!characters ||
        utf8_decode_last(model_token_bytes(m, pair->left), m->tokens[pair->left].n_bytes, &left) ==
            0 ||
        utf8_decode(model_token_bytes(m, pair->right), m->tokens[pair->right].n_bytes, &right) ==
            0) {
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
        const merge_pair pair = {g->left, g->right, (uint32_t)i, g->result};
        join_listed(w, &pair);
        if (!merge_list_add(&w->list, pair, w->err))
            return false;
    }
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
        at += utf8_decode(at, (size_t)(end - at), &c);
        if (symbol_of(w->b, c) == NO_SYMBOL && !set_symbol(w, c, w->b->n_symbols++))
            return false;
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

static bool list_scores(builder *w)
{
    size_t n = 0;
    w->scores = malloc(w->m->n_tokens * sizeof *w->scores + 1);
    if (!w->scores)
        return fail_memory(w->err);
    for (uint32_t id = 0; id < w->m->n_tokens; id++)
        if (merges_lead_to(w->m, id))
            w->scores[n++] = score_order(w->m, id);
    qsort(w->scores, n, sizeof *w->scores, compare_scores);
    for (size_t i = 0; i < n; i++)
        if (w->n_scores == 0 || w->scores[w->n_scores - 1] != w->scores[i])
            w->scores[w->n_scores++] = w->scores[i];
    return true;
}

/* Returns the symbol of a part of a piece, which begins with the character c. */
static uint32_t symbol_of_part(const builder *w, const uint8_t *part, size_t n_bytes)
{
    uint32_t c, id;
    if (utf8_decode(part, n_bytes, &c) == n_bytes)
        return symbol_of(w->b, c);
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
            left = symbol_of(w->b, first);
        if (left != NO_SYMBOL && !add_split(w, id, left, cut))
            return false;
    }
    return true;
}

static bool add_scored_pairs(builder *w)
{
    if (!list_scores(w) || !double_array_of_tokens(&w->pieces, w->m, merged_kinds(w->m), w->err))
        return false;
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
        symbols[n] = symbol_of(w->b, c);
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

/* Splits an unused piece as it was merged, recursively. The stack holds the right halves. */
static bool split_unused(builder *w, uint32_t symbol)
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
        if (!token)
            c = w->characters[at.symbol - w->b->n_ids];
        if (!token || only_character(w->m, at.symbol, &c)) {
            if (!append_unknown(w, c))
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

static bool add_odd(builder *w, uint32_t symbol)
{
    char_bpe *b = w->b;
    const size_t first = b->odd_ids.n;
    if (!split_unused(w, symbol))
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

static bool add_odds(builder *w)
{
    char_bpe *b = w->b;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (b->page_of[c / CHAR_PAGE] == 0) {
            c |= CHAR_PAGE - 1; /* the whole page */
            continue;
        }
        const uint32_t symbol = symbol_of(b, c);
        if (symbol != NO_SYMBOL && symbol >= b->n_ids)
            w->characters[symbol - b->n_ids] = c;
    }
    for (uint32_t id = 0; id < b->n_ids; id++)
        if (is_split(w->m, id) && !add_odd(w, id))
            return false;
    for (uint32_t symbol = b->n_ids; symbol < b->n_symbols; symbol++)
        if (!add_odd(w, symbol))
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
    w->characters = malloc((b->n_symbols - b->n_ids) * sizeof *w->characters + 1);
    return b->odd && b->odd_outputs && w->characters ? add_odds(w) : fail_memory(w->err);
}

/* ---- Tries ---- */

static bool build_trie(builder *w, double_array *t, unsigned kinds)
{
    t->spaces_are_marks = w->b->spaces_are_marks;
    t->max_keys = SENTENCEPIECE_USER_MATCHES;
    return double_array_of_tokens(t, w->m, kinds, w->err);
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

/* ---- New and free ---- */

/* Whether tokens are whole words, and the characters of other words are unknown. */
static bool has_words(const model *m)
{
    return m->rule == MERGE_NONE && m->whole_word_first;
}

/* A run of unknown characters becomes one id, or vanishes: so it must not be cut. If it vanishes,
 * the characters around it merge, blanks too, unless each blank begins a word of the text. */
static void limit_words(builder *w)
{
    char_bpe *b = w->b;
    const uint32_t blank = symbol_of(b, b->spaces_are_marks ? CHAR_WORDS_MARK : ' ');
    const bool known = blank != NO_SYMBOL && !is_odd(b, blank);
    const bool sentence_first = w->m->whole_word_first && !w->m->metaspace_split;
    b->symbols_per_byte = b->spaces_are_marks && blank == NO_SYMBOL ? 3 : 1;
    const bool vanishes = b->unknown_id == MODEL_NO_ID && !w->m->metaspace_split;
    const bool marks_begin_words = has_words(w->m) && b->byte_fallback && b->spaces_are_marks;
    if (!marks_begin_words && (sentence_first || (!b->byte_fallback && (!known || vanishes))))
        char_words_join_all(&b->words);
    else if (marks_begin_words || !b->byte_fallback)
        char_words_join_all_but_blanks(&b->words);
}

static bool build_tables(builder *w)
{
    char_bpe *b = w->b;
    const model *m = w->m;
    b->n_ids = b->n_symbols = (uint32_t)m->n_tokens;
    char_words_init(&b->words, b->spaces_are_marks);
    if (!set_symbol(w, 0, NO_SYMBOL) /* page 0 has no symbols */ ||
        (!has_words(m) && !set_tokens_of_one(w)) ||
        (m->rule == MERGE_LISTED && !add_listed_pairs(w)) ||
        (m->rule == MERGE_SCORED && !add_scored_pairs(w)))
        return false;
    b->merges = merge_table_new(w->list.pairs, w->list.n, w->err);
    if (!b->merges || !load_odd_symbols(w))
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
    b->unknown_id = m->unknown_id;
    b->byte_fallback = m->byte_fallback;
    b->fuse_before = !b->sentencepiece && m->fuse_unknown;
    b->fuse_after = b->sentencepiece && !b->byte_fallback;
    model_byte_ids(m, b->byte_ids);
    const bool built = build_tables(&w);
    double_array_free(&w.pieces);
    free(w.scores);
    free(w.characters);
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

const char_words *char_bpe_words(const char_bpe *b)
{
    return &b->words;
}

/* ---- Symbols to ids ---- */

static int compare_odd(const void *key, const void *element)
{
    const uint32_t symbol = *(const uint32_t *)key;
    const struct odd_output *o = element;
    return (symbol > o->symbol) - (symbol < o->symbol);
}

static bool append_output(const char_bpe *b, uint32_t symbol, id_buffer *out)
{
    const uint32_t *ids = &symbol;
    size_t n = 1;
    if (is_odd(b, symbol)) {
        const struct odd_output *o =
            bsearch(&symbol, b->odd_outputs, b->n_odd, sizeof *o, compare_odd);
        ids = b->odd_ids.ids + o->first;
        n = o->n;
    }
    if (!id_buffer_reserve(out, n))
        return false;
    memcpy(out->ids + out->n, ids, n * sizeof *ids);
    out->n += n;
    return true;
}

/* Replaces the symbols from `first` on by their ids. */
static bool put_outputs(const char_bpe *b, size_t first, id_buffer *out)
{
    bool any = false;
    for (size_t i = first; i < out->n && !any; i++)
        any = is_odd(b, out->ids[i]);
    if (!any)
        return true;
    const size_t n = out->n - first;
    uint32_t *symbols = malloc(n * sizeof *symbols);
    bool put = symbols != NULL;
    if (put)
        memcpy(symbols, out->ids + first, n * sizeof *symbols);
    out->n = first;
    for (size_t i = 0; i < n && put; i++)
        put = append_output(b, symbols[i], out);
    free(symbols);
    return put;
}

void char_bpe_fuse_unknown(const char_bpe *b, size_t first, id_buffer *out)
{
    size_t n = first;
    if (!b->fuse_after)
        return;
    for (size_t i = first; i < out->n; i++) {
        if (i == first || out->ids[i] != b->unknown_id || out->ids[i - 1] != b->unknown_id)
            out->ids[n++] = out->ids[i];
    }
    out->n = n;
}

/* ---- Text to symbols ---- */

typedef struct reader {
    const char_bpe *b;
    const uint8_t *at, *end;
    uint32_t *symbols; /* with room for everything that the text can give */
    size_t n;
    bool after_unknown;
} reader;

static void put_unknown(reader *r, size_t length)
{
    const char_bpe *b = r->b;
    const bool is_mark = *r->at == ' ' && b->spaces_are_marks;
    const uint8_t *bytes = is_mark ? (const uint8_t *)MODEL_MARK : r->at;
    const size_t n_bytes = is_mark ? MODEL_MARK_BYTES : length;
    if (b->byte_fallback) {
        for (size_t i = 0; i < n_bytes; i++)
            r->symbols[r->n++] = b->byte_ids[bytes[i]];
    } else if (b->unknown_id != MODEL_NO_ID && !(b->fuse_before && r->after_unknown)) {
        r->symbols[r->n++] = b->unknown_id;
    }
    r->after_unknown = true;
}

static void read_character(reader *r)
{
    uint32_t c = *r->at, symbol = NO_SYMBOL;
    size_t length = 1;
    if (c >= 0x80)
        length = utf8_decode(r->at, (size_t)(r->end - r->at), &c);
    else if (c == ' ' && r->b->spaces_are_marks)
        c = CHAR_WORDS_MARK;
    if (length > 0)
        symbol = symbol_of(r->b, r->at + length == r->end ? c + r->b->last_offset : c);
    length = length > 0 ? length : 1;
    if (symbol != NO_SYMBOL) {
        r->symbols[r->n++] = symbol;
        r->after_unknown = false;
    } else {
        put_unknown(r, length);
    }
    r->at += length;
}

/* Returns the length of the longest user-defined piece at the start of the text, and its id. */
static size_t match_user(const char_bpe *b, const uint8_t *text, size_t n_bytes, uint32_t *id)
{
    const double_array *t = &b->user;
    return t->n_units == 0 ? 0 : double_array_longest(t, double_array_root(t), text, n_bytes, id);
}

void char_bpe_join_user_pieces(const char_bpe *b, const uint8_t *text, const size_t sizes[2],
                               uint64_t *starts)
{
    uint32_t id;
    for (unsigned k = 0; k < b->n_user_firsts; k++) {
        const uint8_t *at = text, *end = text + sizes[0];
        while (at < end && (at = memchr(at, b->user_firsts[k], (size_t)(end - at)))) {
            const size_t from = (size_t)(at++ - text);
            const size_t to = from + match_user(b, text + from, sizes[1] - from, &id);
            for (size_t i = from + 1; i < to && i < sizes[0]; i++)
                starts[i / 64] &= ~((uint64_t)1 << i % 64);
        }
    }
}

/* Merges the symbols before a user-defined piece, and appends its id. */
static bool encode_part(reader *r, merge_workspace *workspace, id_buffer *out)
{
    uint32_t user_id = 0;
    size_t length = 0;
    const size_t room = (size_t)(r->end - r->at) * r->b->symbols_per_byte;
    if (!id_buffer_reserve(out, room))
        return false;
    r->symbols = out->ids + out->n;
    r->n = 0;
    r->after_unknown = false;
    while (r->at < r->end) {
        length = match_user(r->b, r->at, (size_t)(r->end - r->at), &user_id);
        if (length > 0)
            break;
        read_character(r);
    }
    const size_t first = out->n;
    const size_t n = merge_symbols(r->b->merges, workspace, r->symbols, r->n);
    if (n == SIZE_MAX)
        return false;
    out->n += n;
    r->at += length;
    return put_outputs(r->b, first, out) && (length == 0 || id_buffer_append(out, user_id));
}

bool char_bpe_encode(const char_bpe *b, merge_workspace *workspace, const uint8_t *text,
                     size_t n_bytes, id_buffer *out)
{
    reader r = {.b = b, .at = text, .end = text + n_bytes};
    const size_t first = out->n;
    uint32_t id;
    if (double_array_find(&b->whole, text, n_bytes, &id))
        return id_buffer_append(out, id);
    while (r.at < r.end)
        if (!encode_part(&r, workspace, out))
            return false;
    char_bpe_fuse_unknown(b, first, out);
    return true;
}
