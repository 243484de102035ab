/* SPDX-License-Identifier: Apache-2.0 */
/* merge_long.c - merges words that are too long to scan, piece by piece: short pieces by scanning,
 * longer ones with a heap.
 *
 * The next piece begins at a token of the result so far, some way before its end, and the two are
 * joined at the first token that both have: before it the result counts, after it the piece. If
 * they have none, the next piece begins earlier.
 *
 * Why that is exact. In a merge of a text, what happens inside two neighbouring tokens of the
 * result is what happens when these two are merged alone, because nothing ever crosses their outer
 * boundaries. Conversely, take a sequence of tokens of which every two neighbours are the result
 * for their own text. The first merge of the whole that crosses one of their boundaries would also
 * be the lowest and leftmost of its two neighbours, so it would happen when these two are merged
 * alone, which it does not. So a sequence is the result for its text exactly if every two
 * neighbours are; and in the joined sequence any two neighbours come from one piece.
 *
 * Why that is nearly linear. While more symbols were merged than twice the length of the result,
 * each piece is twice as long as the one before. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tokenizer/merge/merge.h"

#define OVERLAP                                                                                    \
    2 /* how many tokens before the end of the result a piece begins, if that is enough */
#define NONE UINT32_MAX

/* A part of the word, and its tokens. */
typedef struct piece {
    size_t from, n_symbols;
    uint32_t *tokens, *starts; /* starts[n_tokens] is the end; all are relative to `from` */
    size_t n_tokens;
} piece;

typedef struct workspace {
    size_t size;           /* the most symbols in a piece */
    uint32_t *next, *prev; /* of each remaining symbol */
    uint32_t *symbol;
    uint32_t *rank; /* of the pair of the symbol and the next one */
    uint64_t *heap; /* rank << 32 | place; stale ones are skipped */
    size_t n_heap;
    piece piece;
} workspace;

/* Places the arrays in the workspace memory. */
static bool prepare_workspace(workspace *w, merge_workspace *s, size_t least)
{
    if (least <= w->size)
        return true;
    const size_t size = least > 2 * w->size ? least : 2 * w->size;
    /* A merge removes one heap entry and adds at most two; there are `size` entries at first. */
    const size_t n_bytes =
        size * (4 * sizeof(uint32_t) + 3 * sizeof(uint64_t)) + 2 * (size + 1) * sizeof(uint32_t);
    if (!array_reserve(&s->memory, &s->n_bytes, n_bytes, 1))
        return false;
    w->size = size;
    w->heap = s->memory;
    w->rank = (uint32_t *)(w->heap + 3 * size);
    w->next = w->rank + size;
    w->prev = w->next + size;
    w->symbol = w->prev + size;
    w->piece = (piece){.tokens = w->symbol + size, .starts = w->symbol + 2 * size + 1};
    return true;
}

/* ---- Heap ---- */

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    const uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

static void push_merge(workspace *w, uint32_t rank, size_t place)
{
    if (rank == NO_RANK)
        return;
    const uint64_t value = (uint64_t)rank << 32 | place;
    size_t i = w->n_heap++;
    for (; i > 0 && w->heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = value;
}

static uint64_t pop_merge(workspace *w)
{
    const uint64_t top = w->heap[0];
    w->heap[0] = w->heap[--w->n_heap];
    if (w->n_heap > 1)
        sift_down(w->heap, w->n_heap, 0);
    return top;
}

/* ---- With a heap ---- */

static void pair_up(const merge_table *t, workspace *w, uint32_t place)
{
    const uint32_t right = w->next[place];
    w->rank[place] = right == NONE ? NO_RANK : merge_rank(t, w->symbol[place], w->symbol[right]);
    push_merge(w, w->rank[place], place);
}

static void merge_at(const merge_table *t, workspace *w, uint32_t place)
{
    const uint32_t gone = w->next[place];
    w->symbol[place] = merge_result(t, w->rank[place], w->symbol[place], w->symbol[gone]);
    w->symbol[gone] = NONE;
    w->next[place] = w->next[gone];
    if (w->next[place] != NONE)
        w->prev[w->next[place]] = place;
    pair_up(t, w, place);
    if (w->prev[place] != NONE)
        pair_up(t, w, w->prev[place]);
}

static void merge_with_heap(const merge_table *t, workspace *w, const uint32_t *symbols, size_t n,
                            piece *out)
{
    memcpy(w->symbol, symbols, n * sizeof *symbols);
    for (size_t i = 0; i < n; i++) {
        w->next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
        w->prev[i] = i > 0 ? (uint32_t)i - 1 : NONE;
    }
    w->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        w->rank[i] = merge_rank(t, symbols[i], symbols[i + 1]);
        if (w->rank[i] != NO_RANK)
            w->heap[w->n_heap++] = (uint64_t)w->rank[i] << 32 | i;
    }
    w->rank[n - 1] = NO_RANK;
    for (size_t i = w->n_heap / 2; i-- > 0;)
        sift_down(w->heap, w->n_heap, i);
    while (w->n_heap > 0) {
        const uint64_t top = pop_merge(w);
        const uint32_t place = (uint32_t)top;
        if (w->symbol[place] != NONE && w->rank[place] == top >> 32)
            merge_at(t, w, place);
    }
    out->n_tokens = 0;
    for (uint32_t i = 0; i != NONE; i = w->next[i]) {
        out->tokens[out->n_tokens] = w->symbol[i];
        out->starts[out->n_tokens++] = i;
    }
    out->starts[out->n_tokens] = (uint32_t)n;
}

/* ---- Pieces ---- */

static void merge_by_scanning(const merge_table *t, const uint32_t *symbols, size_t n, piece *out)
{
    uint8_t starts[MERGE_SHORT];
    memcpy(out->tokens, symbols, n * sizeof *symbols);
    out->n_tokens = merge_short(t, out->tokens, n, starts);
    for (size_t i = 0; i < out->n_tokens; i++)
        out->starts[i] = starts[i];
    out->starts[out->n_tokens] = (uint32_t)n;
}

/* Merges symbols[from .. from + n). Returns how many had to be merged: in a run of one letter, or
 * other repetitions, a piece is often equal to the one before. */
static size_t merge_piece(const merge_table *t, workspace *w, const uint32_t *symbols, size_t from,
                          size_t n)
{
    piece *p = &w->piece;
    const bool same =
        n == p->n_symbols && memcmp(symbols + from, symbols + p->from, n * sizeof *symbols) == 0;
    p->from = from;
    p->n_symbols = n;
    if (same)
        return 0;
    if (n <= MERGE_SHORT)
        merge_by_scanning(t, symbols + from, n, p);
    else
        merge_with_heap(t, w, symbols + from, n, p);
    return n;
}

/* ---- The result ---- */

/* The symbols themselves stay until all is done. */
typedef struct row {
    uint32_t *tokens;
    size_t n_tokens, capacity;
    uint64_t *starts; /* a bit for each symbol; the one at `end` is also set */
    size_t end;
} row;

static void flip_start(row *r, size_t at)
{
    r->starts[at / 64] ^= (uint64_t)1 << at % 64;
}

static size_t next_start(const row *r, size_t at)
{
    size_t i = ++at / 64;
    uint64_t bits = r->starts[i] >> at % 64 << at % 64;
    while (bits == 0)
        bits = r->starts[++i];
    return i * 64 + (size_t)__builtin_ctzll(bits);
}

static size_t previous_start(const row *r, size_t at)
{
    size_t i = at / 64;
    uint64_t bits = r->starts[i] & (((uint64_t)1 << at % 64) - 1);
    while (bits == 0)
        bits = r->starts[--i];
    return i * 64 + 63 - (size_t)__builtin_clzll(bits);
}

static void remove_tokens(row *r, size_t n)
{
    r->n_tokens -= n;
    for (; n > 0; n--) {
        flip_start(r, r->end);
        r->end = previous_start(r, r->end);
    }
}

/* Appends the tokens of the piece from `first` on, which begins at the end of the row. */
static bool append_tokens(row *r, const piece *p, size_t first)
{
    const size_t n = p->n_tokens - first;
    if (!array_reserve(&r->tokens, &r->capacity, r->n_tokens + n, sizeof *r->tokens))
        return false;
    memcpy(r->tokens + r->n_tokens, p->tokens + first, n * sizeof *r->tokens);
    r->n_tokens += n;
    for (size_t i = first + 1; i <= p->n_tokens; i++)
        flip_start(r, p->from + p->starts[i]);
    r->end = p->from + p->starts[p->n_tokens];
    return true;
}

/* The first token of the piece that the row has, too; false: there is none. *n_last: how many
 * tokens the row has from the beginning of the piece on, and then from that token on. */
static bool find_common(const row *r, const piece *p, size_t *n_last, size_t *first)
{
    size_t at = p->from;
    for (size_t i = 0; i < p->n_tokens; i++) {
        const size_t start = p->from + p->starts[i];
        for (; *n_last > 0 && at < start; --*n_last)
            at = next_start(r, at);
        if (*n_last == 0)
            return false;
        *first = i;
        if (at == start && next_start(r, at) == p->from + p->starts[i + 1])
            return true;
    }
    return false;
}

/* ---- All ---- */

typedef struct long_word {
    const uint32_t *symbols;
    size_t n;
    size_t n_merged; /* symbols of all pieces so far */
    size_t size;     /* of a piece: few different ones, so that equal pieces are found */
    row result;
} long_word;

/* *overlap: with what the result was before. */
static bool add_piece(const merge_table *t, workspace *w, merge_workspace *s, long_word *l,
                      size_t *overlap)
{
    row *r = &l->result;
    size_t from = r->end, n_back = 0;
    for (size_t enough = OVERLAP;; enough *= 4) {
        for (; n_back < enough && from > 0; n_back++)
            from = previous_start(r, from);
        while (l->size < 2 * (r->end - from)) /* at least half of a piece is new */
            l->size *= 2;
        const size_t n = l->size < l->n - from ? l->size : l->n - from;
        if (!prepare_workspace(w, s, n))
            return false;
        l->n_merged += merge_piece(t, w, l->symbols, from, n);
        size_t n_last = n_back, first = 0;
        if (from > 0 && !find_common(r, &w->piece, &n_last, &first))
            continue;
        *overlap = r->end - from;
        remove_tokens(r, n_last);
        return append_tokens(r, &w->piece, first);
    }
}

static bool merge_pieces(const merge_table *t, merge_workspace *s, long_word *l)
{
    workspace w = {0};
    size_t overlap;
    while (l->result.end < l->n) {
        if (!add_piece(t, &w, s, l, &overlap))
            return false;
        if (l->n_merged > 2 * l->result.end)
            l->size *= 2;
        else if (l->size > MERGE_SHORT && l->size > 16 * overlap)
            l->size /= 2;
    }
    return true;
}

size_t merge_long(const merge_table *t, merge_workspace *s, uint32_t *symbols, size_t n)
{
    long_word l = {.symbols = symbols, .n = n, .size = MERGE_SHORT};
    if (n > UINT32_MAX / 2)
        return SIZE_MAX;
    l.result.starts = calloc(n / 64 + 1, sizeof *l.result.starts);
    if (!l.result.starts)
        return SIZE_MAX;
    *l.result.starts = 1;
    const bool merged = merge_pieces(t, s, &l);
    if (merged && l.result.n_tokens > 0)
        memcpy(symbols, l.result.tokens, l.result.n_tokens * sizeof *symbols);
    s->n_merged += l.n_merged;
    free(l.result.starts);
    free(l.result.tokens);
    return merged ? l.result.n_tokens : SIZE_MAX;
}
