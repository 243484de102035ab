/* SPDX-License-Identifier: Apache-2.0 */
#include "oracles/char_naive.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const naive_alphabet[NAIVE_LETTERS] = {NAIVE_MARK,
                                                   NAIVE_MARK,
                                                   "a",
                                                   "b",
                                                   "s",
                                                   "S",
                                                   "1",
                                                   ".",
                                                   "[",
                                                   "\n",
                                                   "\xC3\xA9",
                                                   "\xE4\xB8\x96",
                                                   "\xE3\x80\x82",
                                                   "\xF0\x9F\x98\x80"};
const char *const naive_strangers[NAIVE_STRANGERS] = {
    "z", "~", "\t", "\xD1\x81", "\xE2\x98\x83", "\xE3\x81\x81", "\xF0\x9F\x8E\xB1"};

size_t naive_char(const uint8_t *at)
{
    return *at < 0xC0 ? 1 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
}

/* The last token with these bytes of the kinds in the mask (1 << TOKEN_...), or MODEL_NO_ID. Bytes
 * stand last in the models here, 256 of them. */
static uint32_t naive_find(const model *m, unsigned kinds, const uint8_t *bytes, size_t n)
{
    uint32_t found = MODEL_NO_ID;
    for (uint32_t id = 0; id < m->n_tokens && m->tokens[id].kind != TOKEN_BYTE; id++) {
        const model_token *t = &m->tokens[id];
        if (t->n_bytes == n && (kinds >> t->kind & 1) != 0 &&
            memcmp(model_token_bytes(m, id), bytes, n) == 0)
            found = id;
    }
    return found;
}

static uint32_t naive_byte(const model *m, uint8_t byte)
{
    return (uint32_t)m->n_tokens - 256 + byte;
}

static void naive_put(naive_ids *out, uint32_t id)
{
    out->ids[out->n++] = id;
}

static void naive_put_bytes(const model *m, const uint8_t *text, size_t n, naive_ids *out)
{
    for (size_t i = 0; i < n; i++)
        naive_put(out, naive_byte(m, text[i]));
}

/* ---- sentencepiece's BPE ---- */

#define NAIVE_MERGED (1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED | 1u << TOKEN_UNUSED)

typedef struct naive_symbol {
    const uint8_t *at;
    size_t n;
    bool frozen;
} naive_symbol;

typedef struct naive_merger {
    const model *m;
    naive_symbol symbols[NAIVE_MAX_BYTES];
    size_t n;
    size_t left_bytes[1024]; /* by id: where a piece was last seen to be split */
} naive_merger;

static size_t naive_user_match(const model *m, const uint8_t *at, size_t left)
{
    size_t longest = 0;
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const model_token *t = &m->tokens[id];
        if (t->kind == TOKEN_USER_DEFINED && t->n_bytes <= left && t->n_bytes > longest &&
            memcmp(at, model_token_bytes(m, id), t->n_bytes) == 0)
            longest = t->n_bytes;
    }
    return longest;
}

static void naive_read_symbols(naive_merger *w, const uint8_t *text, size_t n)
{
    w->n = 0;
    for (size_t i = 0; i < n;) {
        const size_t user = naive_user_match(w->m, text + i, n - i);
        const size_t length = user > 0 ? user : naive_char(text + i);
        w->symbols[w->n++] = (naive_symbol){text + i, length, user > 0};
        i += length;
    }
}

/* The piece to which symbols i and i + 1 merge. */
static uint32_t naive_pair(naive_merger *w, size_t i)
{
    const naive_symbol *a = &w->symbols[i], *b = a + 1;
    if (i + 1 >= w->n || a->frozen || b->frozen)
        return MODEL_NO_ID;
    const uint32_t id = naive_find(w->m, NAIVE_MERGED, a->at, a->n + b->n);
    if (id != MODEL_NO_ID)
        w->left_bytes[id] = a->n;
    return id;
}

static bool naive_merge_best(naive_merger *w)
{
    size_t best = SIZE_MAX;
    float best_score = 0;
    for (size_t i = 0; i + 1 < w->n; i++) {
        const uint32_t id = naive_pair(w, i);
        const float score = id == MODEL_NO_ID ? 0 : (float)w->m->tokens[id].score;
        if (id != MODEL_NO_ID && (best == SIZE_MAX || score > best_score)) {
            best = i;
            best_score = score;
        }
    }
    if (best == SIZE_MAX)
        return false;
    w->symbols[best].n += w->symbols[best + 1].n;
    memmove(&w->symbols[best + 1], &w->symbols[best + 2], (w->n - best - 2) * sizeof *w->symbols);
    w->n--;
    return true;
}

static void naive_put_piece(const naive_merger *w, const uint8_t *at, size_t n, naive_ids *out)
{
    const uint32_t id = naive_find(w->m, NAIVE_MERGED, at, n);
    const bool unused = id != MODEL_NO_ID && w->m->tokens[id].kind == TOKEN_UNUSED;
    if (unused && w->left_bytes[id] > 0) {
        naive_put_piece(w, at, w->left_bytes[id], out);
        naive_put_piece(w, at + w->left_bytes[id], n - w->left_bytes[id], out);
    } else if (id != MODEL_NO_ID && !unused) {
        naive_put(out, id);
    } else if (w->m->byte_fallback) {
        naive_put_bytes(w->m, at, n, out);
    } else if (out->n == 0 || out->ids[out->n - 1] != w->m->unknown_id) {
        naive_put(out, w->m->unknown_id);
    }
}

void naive_scored_bpe(const model *m, const uint8_t *text, size_t n, naive_ids *out)
{
    static naive_merger w;
    w.m = m;
    memset(w.left_bytes, 0, sizeof w.left_bytes);
    naive_read_symbols(&w, text, n);
    while (naive_merge_best(&w)) {
    }
    for (size_t i = 0; i < w.n; i++)
        naive_put_piece(&w, w.symbols[i].at, w.symbols[i].n, out);
}

/* ---- The BPE of tokenizer.json ---- */

static size_t naive_listed_symbols(const model *m, const uint8_t *text, size_t n, uint32_t *symbols)
{
    size_t n_symbols = 0;
    bool after_unknown = false;
    for (size_t i = 0, length; i < n; i += length) {
        length = naive_char(text + i);
        const uint32_t id = naive_find(m, 1u << TOKEN_NORMAL, text + i, length);
        if (id != MODEL_NO_ID) {
            symbols[n_symbols++] = id;
        } else if (m->byte_fallback) {
            for (size_t k = 0; k < length; k++)
                symbols[n_symbols++] = naive_byte(m, text[i + k]);
        } else if (m->unknown_id != MODEL_NO_ID && !(m->fuse_unknown && after_unknown)) {
            symbols[n_symbols++] = m->unknown_id;
        }
        after_unknown = id == MODEL_NO_ID;
    }
    return n_symbols;
}

/* If a merge is listed twice, the last one counts. */
static size_t naive_merge_of(const model *m, uint32_t left, uint32_t right)
{
    for (size_t i = m->n_merges; i > 0; i--)
        if (m->merges[i - 1].left == left && m->merges[i - 1].right == right)
            return i - 1;
    return SIZE_MAX;
}

void naive_listed_bpe(const model *m, const uint8_t *text, size_t n, naive_ids *out)
{
    uint32_t *symbols = out->ids + out->n;
    const uint32_t whole = naive_find(m, 1u << TOKEN_NORMAL, text, n);
    if (m->whole_word_first && whole != MODEL_NO_ID) {
        naive_put(out, whole);
        return;
    }
    size_t n_symbols = naive_listed_symbols(m, text, n, symbols);
    for (;;) {
        size_t best = 0, best_rank = SIZE_MAX;
        for (size_t i = 0; i + 1 < n_symbols; i++) {
            const size_t rank = naive_merge_of(m, symbols[i], symbols[i + 1]);
            best = rank < best_rank ? i : best;
            best_rank = rank < best_rank ? rank : best_rank;
        }
        if (best_rank == SIZE_MAX)
            break;
        symbols[best] = m->merges[best_rank].result;
        n_symbols--;
        memmove(&symbols[best + 1], &symbols[best + 2], (n_symbols - best - 1) * sizeof *symbols);
    }
    out->n += n_symbols;
}

/* ---- Unigram ---- */

typedef struct naive_node {
    uint32_t id;
    double score;
    float single;
    int start; /* -1: nothing leads here */
} naive_node;

/* HuggingFace's vocabulary has bytes as text: <0x41>. */
static uint32_t naive_find_piece(const model *m, bool sentencepiece, const uint8_t *bytes, size_t n)
{
    char name[8];
    if (sentencepiece)
        return naive_find(m, 1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED, bytes, n);
    for (unsigned byte = 0; byte < 256 && n == 6 && m->byte_fallback; byte++) {
        snprintf(name, sizeof name, "<0x%02X>", byte);
        if (memcmp(name, bytes, n) == 0)
            return naive_byte(m, (uint8_t)byte);
    }
    return naive_find(m, ~(1u << TOKEN_CONTROL | 1u << TOKEN_ABSENT), bytes, n);
}

typedef struct naive_lattice {
    const model *m;
    bool sentencepiece; /* floats, and its rules for scores; else HuggingFace's */
    naive_node nodes[NAIVE_MAX_BYTES + 1];
    double unknown;
    float unknown_single;
    int frontier;
} naive_lattice;

static void naive_set_unknown(naive_lattice *w)
{
    const model *m = w->m;
    w->unknown = DBL_MAX;
    w->unknown_single = FLT_MAX;
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const model_token *t = &m->tokens[id];
        if (t->kind == TOKEN_NORMAL && (float)t->score < w->unknown_single)
            w->unknown_single = (float)t->score;
        if (t->kind != TOKEN_CONTROL && t->kind != TOKEN_ABSENT && t->score < w->unknown)
            w->unknown = t->score;
    }
    w->unknown -= 10.0;
    w->unknown_single -= 10.0F;
}

/* The candidate comes after the others, so it must be better than they are. */
static void naive_try(naive_lattice *w, int start, int end, uint32_t id)
{
    const naive_node *from = &w->nodes[start];
    naive_node *to = &w->nodes[end];
    double score = w->unknown;
    float single = w->unknown_single;
    if (id != MODEL_NO_ID) {
        const model_token *t = &w->m->tokens[id];
        score = t->score;
        single = t->kind == TOKEN_USER_DEFINED ? (float)(0.1 * (end - start - 1)) : (float)t->score;
    }
    score += from->score;
    single += from->single;
    if (to->start < 0 || (w->sentencepiece ? single > to->single : score > to->score))
        *to = (naive_node){id, score, single, start};
    w->frontier = end > w->frontier ? end : w->frontier;
}

static void naive_reset(naive_lattice *w, int at)
{
    const float offset = w->nodes[at].single;
    if (!w->sentencepiece || (offset >= -100000.0F && offset <= 100000.0F))
        return;
    for (int i = at; i <= w->frontier; i++)
        if (i == at || w->nodes[i].start >= 0)
            w->nodes[i].single -= offset;
}

/* The text of a run of unknown characters, for HuggingFace; sentencepiece's come one by one. */
static void naive_put_unknown(const model *m, const uint8_t *at, size_t n, naive_ids *out)
{
    const uint32_t id = naive_find_piece(m, false, at, n);
    if (id != MODEL_NO_ID)
        naive_put(out, id);
    else if (m->byte_fallback)
        naive_put_bytes(m, at, n, out);
    else
        naive_put(out, m->unknown_id);
}

static void naive_put_path(const naive_lattice *w, const uint8_t *text, int n, naive_ids *out)
{
    static int ends[NAIVE_MAX_BYTES];
    const model *m = w->m;
    int n_ends = 0, run = -1;
    for (int end = n; end > 0; end = w->nodes[end].start)
        ends[n_ends++] = end;
    for (int i = n_ends - 1; i >= 0; i--) {
        const naive_node *node = &w->nodes[ends[i]];
        const bool unknown = node->id == MODEL_NO_ID || node->id == m->unknown_id;
        const bool last_unknown = run >= 0;
        if (!unknown && last_unknown && !w->sentencepiece)
            naive_put_unknown(m, text + run, (size_t)(node->start - run), out);
        run = !unknown ? -1 : last_unknown ? run : node->start;
        if (!unknown)
            naive_put(out, node->id);
        else if (w->sentencepiece && m->byte_fallback)
            naive_put_bytes(m, text + node->start, (size_t)(ends[i] - node->start), out);
        else if (w->sentencepiece && !last_unknown)
            naive_put(out, m->unknown_id);
    }
    if (run >= 0 && !w->sentencepiece)
        naive_put_unknown(m, text + run, (size_t)(n - run), out);
}

void naive_unigram(const model *m, bool sentencepiece, const uint8_t *text, size_t n_bytes,
                   naive_ids *out)
{
    static naive_lattice w;
    const int n = (int)n_bytes;
    w.m = m;
    w.sentencepiece = sentencepiece;
    w.frontier = 0;
    naive_set_unknown(&w);
    for (int i = 0; i <= n; i++)
        w.nodes[i] = (naive_node){.id = MODEL_NO_ID, .start = -1};
    for (int at = 0, one; at < n; at += one) {
        bool has_one = false;
        one = (int)naive_char(text + at);
        naive_reset(&w, at);
        for (int end = at + 1; end <= n && end <= at + 64; end++) {
            const uint32_t id = naive_find_piece(m, sentencepiece, text + at, (size_t)(end - at));
            if (id != MODEL_NO_ID)
                naive_try(&w, at, end, id);
            has_one |= id != MODEL_NO_ID && end == at + one;
        }
        if (!has_one)
            naive_try(&w, at, at + one, MODEL_NO_ID);
    }
    naive_put_path(&w, text, n, out);
}

/* ---- Random models and texts ---- */

static uint64_t naive_state = 1;

uint32_t naive_any(uint32_t n)
{
    naive_state = naive_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((naive_state >> 33) % n);
}

void naive_letters(char *to, size_t n, size_t n_kinds)
{
    to += strlen(to);
    *to = 0;
    for (; n > 0; n--) {
        const char *c = naive_alphabet[naive_any((uint32_t)n_kinds)];
        strcpy(to, c);
        to += strlen(c);
    }
}

bool naive_add(model *m, const char *bytes, token_kind kind, double score)
{
    failure err;
    const uint32_t id = (uint32_t)m->n_tokens;
    const size_t n = strlen(bytes);
    if (naive_find(m, ~0u, (const uint8_t *)bytes, n) != MODEL_NO_ID)
        return false;
    return model_set_token(
        m, &(new_token){.id = id, .bytes = bytes, .n_bytes = n, .kind = kind, .score = score},
        &err);
}

void naive_add_merge(model *m, unsigned kinds, uint32_t left, uint32_t right)
{
    failure err;
    uint8_t both[512];
    const size_t n_left = m->tokens[left].n_bytes, n_right = m->tokens[right].n_bytes;
    memcpy(both, model_token_bytes(m, left), n_left);
    memcpy(both + n_left, model_token_bytes(m, right), n_right);
    const uint32_t result = naive_find(m, kinds, both, n_left + n_right);
    if (result != MODEL_NO_ID)
        model_add_merge(m, (model_merge){left, right, result}, &err);
}

void naive_add_bytes(model *m)
{
    failure err;
    const uint32_t first = (uint32_t)m->n_tokens;
    for (uint32_t i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        model_set_token(
            m, &(new_token){.id = first + i, .bytes = &byte, .n_bytes = 1, .kind = TOKEN_BYTE},
            &err);
    }
    m->byte_fallback = true;
}

void naive_add_pieces(model *m, size_t n, size_t n_kinds, double grain)
{
    char text[256];
    for (size_t i = 0; i < n; i++) {
        const uint32_t what = naive_any(40);
        text[0] = 0;
        naive_letters(text, what < 12 ? 1 : 2 + naive_any(4), n_kinds);
        const token_kind kind = what < 12   ? TOKEN_NORMAL
                                : what < 14 ? TOKEN_USER_DEFINED
                                : what < 16 ? TOKEN_UNUSED
                                            : TOKEN_NORMAL;
        naive_add(m, text, kind, -grain * (1 + naive_any(20)));
    }
}

size_t naive_text(char *text, size_t n_kinds)
{
    static const size_t lengths[] = {1, 2, 3, 5, 8, 12, 20, 60};
    const size_t n = lengths[naive_any(NAIVE_N(lengths))];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t what = naive_any(16);
        const char *c = what == 0  ? naive_strangers[naive_any(NAIVE_N(naive_strangers))]
                        : what < 4 ? " "
                                   : naive_alphabet[naive_any((uint32_t)n_kinds)];
        for (uint32_t run = what == 5 ? 1 + naive_any(9) : 1; run > 0; run--) {
            strcpy(text + at, c);
            at += strlen(c);
        }
    }
    return at;
}

size_t naive_marked(const char *text, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ') {
            strcpy(out + at, NAIVE_MARK);
            at += 3;
        } else {
            out[at++] = text[i];
        }
    }
    return at;
}
