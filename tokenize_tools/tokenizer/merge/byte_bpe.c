/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/byte_bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "tokenizer/merge/word_cache.h"
#include "tokenizer/split/start_bits.h"

#define MAX_RANKED_BYTES 1024 /* because all splits of a token are tried */
#define MAX_SUFFIX_BYTES 32
#define JOINED_BITS 19
#define MIN_CUT_WORD 12 /* bytes; shorter words repeat */

/* Internally, symbols 0 to 255 are the bytes, whatever their ids, followed by the others. */
struct byte_bpe {
    const vocabulary *words;
    merge_table *merges;
    uint32_t *ids;      /* by symbol; MODEL_NO_ID for a byte without a token */
    uint8_t *is_whole;  /* a bit for each id: a word with these bytes is this token */
    uint32_t unknown;   /* the symbol of a byte without a token; UINT32_MAX: it is left out */
    uint32_t last[256]; /* the symbols of bytes at the end of a word, if there is a suffix */
    bool has_suffix, fuse_unknown;
    bool takes_bytes, can_cut;
    uint64_t *joined; /* hashes of the places that are not cut */
};

/* ---- Symbols ---- */

typedef struct builder {
    byte_bpe *b;
    const model *m;
    failure *err;
    uint32_t *symbols; /* by id */
    uint32_t n_symbols;
    merge_list list;
} builder;

static bool is_middle(uint8_t byte)
{
    return byte >> 6 == 2;
}

/* Whether it is the first byte of kana or Chinese characters. Other scripts do not gain from
 * cuts. */
static bool is_wide(uint8_t byte)
{
    return byte >= 0xE3 && byte <= 0xE9;
}

static void number_bytes(builder *w)
{
    byte_bpe *b = w->b;
    b->takes_bytes = true;
    b->can_cut = w->m->word_suffix.n_bytes == 0;
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte[1 + MODEL_PADDING] = {(uint8_t)i};
        const uint32_t id = vocabulary_find(b->words, byte, 1);
        b->ids[i] = id;
        b->takes_bytes &= id != MODEL_NO_ID;
        b->can_cut &= id != MODEL_NO_ID || !(is_middle(byte[0]) || is_wide(byte[0]));
        if (id != MODEL_NO_ID)
            w->symbols[id] = i;
    }
    w->n_symbols = 256;
}

static bool number_tokens(builder *w)
{
    byte_bpe *b = w->b;
    const model *m = w->m;
    b->ids = malloc((m->n_tokens + 256) * sizeof *b->ids);
    w->symbols = calloc(m->n_tokens + 1, sizeof *w->symbols);
    b->is_whole = calloc(m->n_tokens / 8 + 1, 1);
    b->joined = calloc(((size_t)1 << JOINED_BITS) / 64, sizeof *b->joined);
    if (!b->ids || !b->is_whole || !b->joined || !w->symbols)
        return fail_memory(w->err);
    memset(w->symbols, 0xFF, m->n_tokens * sizeof *w->symbols);
    number_bytes(w);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const bool used = m->tokens[id].kind == TOKEN_NORMAL || id == m->unknown_id;
        if (!used || w->symbols[id] != UINT32_MAX)
            continue;
        w->symbols[id] = w->n_symbols;
        b->ids[w->n_symbols++] = id;
    }
    if (w->n_symbols >= WORD_CACHE_MAX_ID)
        return model_fail(w->err, 0, "more than %u tokens", WORD_CACHE_MAX_ID - 257);
    return true;
}

/* ---- Pairs ---- */

/* Adds all pairs of tokens that together are this one: they may merge to it. */
static bool add_splits(builder *w, uint32_t id)
{
    const vocabulary *words = w->b->words;
    const uint8_t *bytes = model_token_bytes(w->m, id);
    const size_t n_bytes = w->m->tokens[id].n_bytes;
    if (n_bytes > MAX_RANKED_BYTES)
        return model_fail(w->err, 0, "a token of more than 1,024 bytes in a vocabulary of ranks");
    for (size_t cut = 1; cut < n_bytes; cut++) {
        const uint32_t left = vocabulary_find(words, bytes, cut);
        const uint32_t right =
            left == MODEL_NO_ID ? left : vocabulary_find(words, bytes + cut, n_bytes - cut);
        if (right == MODEL_NO_ID)
            continue;
        const merge_pair pair = {w->symbols[left], w->symbols[right], id, w->symbols[id]};
        if (!merge_list_add(&w->list, pair, w->err))
            return false;
    }
    return true;
}

/* Keeps the last merge of each token. Only one way to split a token ever merges to it: the last
 * step of its own merging, because the inside of a token merges as if it were alone. The others
 * would only take space in the cache. */
static bool keep_last(builder *w)
{
    merge_list *list = &w->list;
    merge_table *all = merge_table_new(list->pairs, list->n, w->err);
    size_t n_kept = 0;
    if (!all)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        const merge_pair pair = list->pairs[i];
        const uint32_t id = w->b->ids[pair.result];
        const uint8_t *bytes = model_token_bytes(w->m, id);
        const size_t n_bytes = w->m->tokens[id].n_bytes;
        uint32_t symbols[MERGE_LAST_MAX];
        merge_pair last;
        if (n_bytes > MERGE_LAST_MAX) {
            list->pairs[n_kept++] = pair;
            continue;
        }
        if (i > 0 && list->pairs[i - 1].result == pair.result)
            continue; /* the splits of a token are adjacent */
        for (size_t k = 0; k < n_bytes; k++)
            symbols[k] = bytes[k];
        if (merge_last(all, symbols, n_bytes, &last) && last.result == w->symbols[id]) {
            list->pairs[n_kept++] = (merge_pair){last.left, last.right, pair.rank, pair.result};
            w->b->is_whole[id / 8] |= (uint8_t)(1 << id % 8);
        }
    }
    list->n = n_kept;
    merge_table_free(all);
    return true;
}

static bool list_ranked(builder *w)
{
    for (uint32_t id = 0; id < w->m->n_tokens; id++)
        if (w->m->tokens[id].kind == TOKEN_NORMAL && !add_splits(w, id))
            return false;
    return keep_last(w);
}

/* A token that is not TOKEN_NORMAL has no symbol; the loaders make sure that no merge names one. */
static bool list_listed(builder *w)
{
    for (size_t i = 0; i < w->m->n_merges; i++) {
        const model_merge *g = &w->m->merges[i];
        if (!merge_list_add(&w->list,
                            (merge_pair){w->symbols[g->left], w->symbols[g->right], (uint32_t)i,
                                         w->symbols[g->result]},
                            w->err))
            return false;
    }
    return true;
}

/* Numbers the symbols in the order in which pairs, which come by rank, make them: the table of
 * pairs is faster then. */
static bool renumber_symbols(byte_bpe *b, uint32_t n_symbols, merge_list *list)
{
    uint32_t *numbers = malloc((n_symbols + 1) * sizeof *numbers); /* new by old */
    uint32_t *ids = malloc((n_symbols + 1) * sizeof *ids);
    uint32_t next = 256;
    if (numbers && ids && list->n > 0) {
        for (uint32_t i = 0; i < n_symbols; i++)
            numbers[i] = i < 256 ? i : UINT32_MAX;
        for (size_t i = 0; i < list->n; i++)
            if (numbers[list->pairs[i].result] == UINT32_MAX)
                numbers[list->pairs[i].result] = next++;
        for (uint32_t i = 256; i < n_symbols; i++)
            if (numbers[i] == UINT32_MAX)
                numbers[i] = next++;
        memcpy(ids, b->ids, n_symbols * sizeof *ids);
        for (uint32_t i = 0; i < n_symbols; i++)
            b->ids[numbers[i]] = ids[i];
        for (size_t i = 0; i < list->n; i++) {
            merge_pair *p = &list->pairs[i];
            *p = (merge_pair){numbers[p->left], numbers[p->right], p->rank, numbers[p->result]};
        }
    }
    const bool done = numbers && ids;
    free(numbers);
    free(ids);
    return done;
}

static uint32_t symbol_of(const byte_bpe *b, uint32_t id, uint32_t n_symbols)
{
    uint32_t i = 0;
    while (id != MODEL_NO_ID && i < n_symbols && b->ids[i] != id)
        i++;
    return id != MODEL_NO_ID && i < n_symbols ? i : UINT32_MAX;
}

/* Finds the symbols that are not just bytes, which have their last numbers now. */
static void find_symbols(byte_bpe *b, const model *m, uint32_t n_symbols)
{
    const model_text *suffix = &m->word_suffix;
    uint8_t bytes[MAX_SUFFIX_BYTES + 1 + MODEL_PADDING] = {0};
    b->unknown = symbol_of(b, m->unknown_id, n_symbols);
    b->fuse_unknown = m->fuse_unknown;
    b->has_suffix = suffix->n_bytes > 0;
    if (b->has_suffix)
        memcpy(bytes + 1, suffix->s, suffix->n_bytes);
    for (unsigned i = 0; i < 256 && b->has_suffix; i++) {
        bytes[0] = (uint8_t)i;
        b->last[i] = symbol_of(b, vocabulary_find(b->words, bytes, suffix->n_bytes + 1), n_symbols);
        b->takes_bytes &= b->last[i] != UINT32_MAX;
    }
}

static bool make_merges(builder *w)
{
    if (!(w->m->rule == MERGE_RANKED ? list_ranked(w) : list_listed(w)))
        return false;
    if (!renumber_symbols(w->b, w->n_symbols, &w->list))
        return fail_memory(w->err);
    w->b->merges = merge_table_new(w->list.pairs, w->list.n, w->err);
    if (!w->b->merges)
        return false;
    find_symbols(w->b, w->m, w->n_symbols);
    return true;
}

/* ---- Where words are cut ---- */

/* A word of Chinese or Japanese is often a sentence, which hardly ever repeats; its parts do. It is
 * cut where no token has the bytes of both sides. Then no merge joins the sides, and each merges as
 * if it were alone: the lowest and leftmost pair in it is its next merge, whatever is done in the
 * other. A token with the bytes of both sides is listed by the two bytes before the cut and the
 * three after it (FAR), or, if it does not have all of these, by one and one (NEAR). All five bytes
 * have tokens of their own, so no unknown token is beside a cut.
 *
 * With whole_word_first, a word that has the bytes of a token is that token, even if merges do not
 * make it. Such a word is never cut, because the token is listed; and so that no part becomes such
 * a token, nothing is cut where one would begin or end. */
#define FAR 0xFFFFFFFFFFu
#define NEAR 0x0000FFFF00u

static size_t hash_place(uint64_t place, uint64_t bytes)
{
    return (place & bytes) * 0x9E3779B97F4A7C15u >> (64 - JOINED_BITS);
}

static void join(byte_bpe *b, uint64_t place, uint64_t bytes)
{
    const size_t i = hash_place(place, bytes);
    b->joined[i / 64] |= (uint64_t)1 << i % 64;
}

static void join_inside(byte_bpe *b, const uint8_t *token, size_t n_bytes)
{
    for (size_t at = 1; at < n_bytes; at++) {
        const bool far = at >= 2 && at + 3 <= n_bytes;
        const uint64_t place = far ? le_get64(token + at - 2) : le_get(token + at - 1, 2) << 8;
        if (is_wide(token[at]) && is_middle(token[at - 1]))
            join(b, place, far ? FAR : NEAR);
    }
}

static void join_ends(byte_bpe *b, const uint8_t *token, size_t n_bytes)
{
    const uint64_t place = le_get64(token);
    for (unsigned i = 0; i < 64 * 64 && is_wide(token[0]); i++)
        join(b, place << 16 | (0x80 | i / 64) << 8 | (0x80 | i % 64), FAR);
    for (unsigned i = 0; i < 256; i++)
        if (is_wide((uint8_t)i))
            join(b, (uint64_t)token[n_bytes - 1] << 8 | i << 16, NEAR);
    b->can_cut &= n_bytes >= 3 || !is_wide(token[0]);
}

/* ---- Words ---- */

/* Writes the symbols of a word. Bytes in a row without a token are one unknown token, if they are
 * fused. */
static size_t put_symbols(const byte_bpe *b, const uint8_t *word, size_t n_bytes, uint32_t *symbols)
{
    const bool plain = b->takes_bytes && !b->has_suffix;
    bool after_unknown = false;
    size_t n = 0;
    for (; plain && n < n_bytes; n++)
        symbols[n] = word[n];
    for (size_t i = n; i < n_bytes; i++) {
        uint32_t symbol = b->ids[word[i]] != MODEL_NO_ID ? word[i] : UINT32_MAX;
        if (b->has_suffix && i + 1 == n_bytes)
            symbol = b->last[word[i]];
        const bool known = symbol != UINT32_MAX;
        symbols[n] = known ? symbol : b->unknown;
        n += known || (b->unknown != UINT32_MAX && !(b->fuse_unknown && after_unknown));
        after_unknown = !known;
    }
    return n;
}

/* Merges the bytes in place; SIZE_MAX: out of memory. */
static size_t merge_word(const byte_bpe *b, merge_workspace *workspace, const uint8_t *word,
                         size_t n_bytes, uint32_t *symbols)
{
    return merge_symbols(b->merges, workspace, symbols, put_symbols(b, word, n_bytes, symbols));
}

/* A word that is a token becomes that token at once, unless only merges count and they give
 * something else. */
static bool find_whole(byte_bpe *b, const model *m, failure *err)
{
    merge_workspace workspace = {0};
    uint32_t *symbols = malloc((vocabulary_longest(b->words) + 1) * sizeof *symbols);
    size_t n = symbols ? 0 : SIZE_MAX;
    for (uint32_t id = 0; id < m->n_tokens && n != SIZE_MAX; id++) {
        if (m->tokens[id].kind != TOKEN_NORMAL)
            continue;
        const uint8_t *bytes = model_token_bytes(m, id);
        const size_t n_bytes = m->tokens[id].n_bytes;
        const bool at_cut =
            n_bytes > 1 &&
            (is_wide(bytes[0]) || (is_middle(bytes[n_bytes - 1]) && is_middle(bytes[n_bytes - 2])));
        bool made = (b->is_whole[id / 8] >> id % 8 & 1) != 0;
        if (!made && (!m->whole_word_first || at_cut)) {
            n = merge_word(b, &workspace, bytes, n_bytes, symbols);
            made = n == 1 && b->ids[symbols[0]] == id;
        }
        join_inside(b, bytes, n_bytes);
        if (!made && at_cut && m->whole_word_first)
            join_ends(b, bytes, n_bytes);
        if (made || m->whole_word_first)
            b->is_whole[id / 8] |= (uint8_t)(1 << id % 8);
    }
    merge_workspace_free(&workspace);
    free(symbols);
    return n != SIZE_MAX || fail_memory(err);
}

bool byte_bpe_encode(const byte_bpe *b, merge_workspace *workspace, const uint8_t *word,
                     size_t n_bytes, id_buffer *out)
{
    const uint32_t whole = vocabulary_find(b->words, word, n_bytes);
    if (whole != MODEL_NO_ID && (b->is_whole[whole / 8] >> whole % 8 & 1) != 0)
        return id_buffer_append(out, whole);
    if (!id_buffer_reserve(out, n_bytes))
        return false;
    uint32_t *symbols = out->ids + out->n;
    const size_t n = merge_word(b, workspace, word, n_bytes, symbols);
    if (n == SIZE_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        symbols[i] = b->ids[symbols[i]];
    out->n += n;
    return true;
}

/* ---- Cutting words ---- */

static void cut_word(const byte_bpe *b, const uint8_t *text, size_t at, size_t end,
                     uint64_t *starts)
{
    for (at += 2; at < end; at++) {
        const uint64_t place = le_get64(text + at - 2);
        if (!is_wide(text[at]) || (place & 0xC0C000C0C0) != 0x8080008080)
            continue;
        const size_t far = hash_place(place, FAR), near = hash_place(place, NEAR);
        const uint64_t joined = b->joined[far / 64] >> far % 64 | b->joined[near / 64] >> near % 64;
        starts[at / 64] |= (~joined & 1) << at % 64; /* a branch would not be predicted */
        at += 2;
    }
}

void byte_bpe_cut_words(const byte_bpe *b, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    size_t done = 0;
    for (size_t i = 0; i * 64 < n_bytes && b->can_cut; i++) {
        uint64_t run = ~starts[i]; /* bits that 14 more follow */
        for (unsigned k = 1; k < 8; k *= 2)
            run &= run >> k;
        run &= run >> 7;
        if (run == 0 || done >= i * 64 + 64)
            continue;
        const uint8_t *in_run = text + i * 64 + __builtin_ctzll(run);
        if (!is_wide(in_run[0]) && !is_wide(in_run[1]) && !is_wide(in_run[2]))
            continue;
        size_t word = done > i * 64 ? done : i * 64, end;
        while (word > done && (starts[word / 64] >> word % 64 & 1) == 0)
            word--;
        for (; word < i * 64 + 64 && word < n_bytes; word = done = end) {
            end = split_next_start(starts, word + 1, n_bytes);
            if (end - word >= MIN_CUT_WORD)
                cut_word(b, text, word, end, starts);
        }
    }
}

/* ---- New and free ---- */

byte_bpe *byte_bpe_new(const model *m, const vocabulary *words, failure *err)
{
    builder w = {.b = calloc(1, sizeof *w.b), .m = m, .err = err};
    bool built = false;
    if (w.b)
        w.b->words = words;
    if (!w.b)
        fail_memory(err);
    else if (m->rule == MERGE_SCORED)
        model_fail(err, 0, "byte-level BPE with scores is not supported");
    else if (m->word_suffix.n_bytes > MAX_SUFFIX_BYTES)
        model_fail(err, 0, "an end_of_word_suffix of more than %d bytes", MAX_SUFFIX_BYTES);
    else
        built = number_tokens(&w) && make_merges(&w) && find_whole(w.b, m, err);
    free(w.symbols);
    free(w.list.pairs);
    if (built)
        return w.b;
    byte_bpe_free(w.b);
    return NULL;
}

void byte_bpe_free(byte_bpe *b)
{
    if (!b)
        return;
    merge_table_free(b->merges);
    free(b->ids);
    free(b->is_whole);
    free(b->joined);
    free(b);
}

bool byte_bpe_takes_bytes(const byte_bpe *b)
{
    return b->takes_bytes;
}
