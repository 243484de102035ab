/* merge_long.c - merges words that are too long to scan.
 *
 * A window of symbols is merged with a heap: O(n log n). A word longer than a window is merged
 * window by window. The next window begins at a token of the one before, some way before its end,
 * and the two are joined at the first token that both have: before it the first window counts,
 * after it the second.
 *
 * Why that is exact. In a merge of a text, what happens inside two neighbouring tokens of the
 * result is what happens when these two are merged alone, because nothing ever crosses their outer
 * boundaries. Conversely, take a sequence of tokens of which every two neighbours are the result
 * for their own text. The first merge of the whole that crosses one of their boundaries would also
 * be the lowest and leftmost of its two neighbours, so it would happen when these two are merged
 * alone, which it does not. So a sequence is the result for its text exactly if every two
 * neighbours are; and in the joined sequence any two neighbours come from one window. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/words/merge_word.h"

#define WINDOW 4096
#define OVERLAP 2 /* how many tokens before the end of a window the next one begins */
#define NONE UINT32_MAX

/* A window being merged, and its tokens. */
typedef struct window {
    uint32_t *tokens, *starts; /* of the result; starts[n_tokens] is the end */
    size_t n_tokens;
} window;

typedef struct workspace {
    size_t size;           /* the most symbols in a window */
    uint32_t *next, *prev; /* of each remaining symbol */
    uint32_t *symbol;
    uint32_t *rank; /* of the pair of the symbol and the next one */
    uint64_t *heap; /* rank << 32 | place; stale ones are skipped */
    size_t n_heap;
    window a, b;
} workspace;

/* Places the arrays in the scratch memory. */
static bool prepare_workspace(workspace *w, merge_scratch *s, size_t size)
{
    /* A merge removes one heap entry and adds at most two; there are `size` entries at first. */
    const size_t n_bytes =
        size * (4 * sizeof(uint32_t) + 3 * sizeof(uint64_t)) + 4 * (size + 1) * sizeof(uint32_t);
    if (s->n_bytes < n_bytes) {
        void *memory = realloc(s->memory, n_bytes);
        if (!memory)
            return false;
        s->memory = memory;
        s->n_bytes = n_bytes;
    }
    w->size = size;
    w->heap = s->memory;
    w->rank = (uint32_t *)(w->heap + 3 * size);
    w->next = w->rank + size;
    w->prev = w->next + size;
    w->symbol = w->prev + size;
    w->a.tokens = w->symbol + size;
    w->a.starts = w->a.tokens + size + 1;
    w->b.tokens = w->a.starts + size + 1;
    w->b.starts = w->b.tokens + size + 1;
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
    if (rank == MERGE_NONE)
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

/* ---- A window ---- */

static void pair_up(const merge_table *t, workspace *w, uint32_t place)
{
    const uint32_t right = w->next[place];
    w->rank[place] = right == NONE ? MERGE_NONE : merge_rank(t, w->symbol[place], w->symbol[right]);
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

static void merge_window(const merge_table *t, workspace *w, const uint32_t *symbols, size_t n,
                         window *out)
{
    memcpy(w->symbol, symbols, n * sizeof *symbols);
    for (size_t i = 0; i < n; i++) {
        w->next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
        w->prev[i] = i > 0 ? (uint32_t)i - 1 : NONE;
    }
    w->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        w->rank[i] = merge_rank(t, symbols[i], symbols[i + 1]);
        if (w->rank[i] != MERGE_NONE)
            w->heap[w->n_heap++] = (uint64_t)w->rank[i] << 32 | i;
    }
    w->rank[n - 1] = MERGE_NONE;
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

/* ---- Windows joined ---- */

/* The finished part of a long word; the symbols themselves stay until all is done. */
typedef struct row {
    uint32_t *tokens;
    size_t n_tokens, capacity;
} row;

static bool append_tokens(row *r, const uint32_t *tokens, size_t n)
{
    if (!r->tokens || r->capacity - r->n_tokens < n) {
        const size_t capacity = (r->n_tokens + n) * 2 + 64;
        uint32_t *grown = realloc(r->tokens, capacity * sizeof *grown);
        if (!grown)
            return false;
        r->tokens = grown;
        r->capacity = capacity;
    }
    memcpy(r->tokens + r->n_tokens, tokens, n * sizeof *tokens);
    r->n_tokens += n;
    return true;
}

typedef struct joint {
    size_t from;       /* the token of a at which b begins */
    size_t in_a, in_b; /* the first token that both have */
} joint;

static bool find_common(const window *a, const window *b, joint *at)
{
    const uint32_t offset = a->starts[at->from];
    at->in_b = 0;
    for (at->in_a = at->from; at->in_a < a->n_tokens; at->in_a++) {
        const uint32_t start = a->starts[at->in_a] - offset;
        const uint32_t end = a->starts[at->in_a + 1] - offset;
        while (at->in_b < b->n_tokens && b->starts[at->in_b] < start)
            at->in_b++;
        if (at->in_b < b->n_tokens && b->starts[at->in_b] == start &&
            b->starts[at->in_b + 1] == end)
            return true;
    }
    return false;
}

/* In a run of one letter, or other repetitions, a window is often equal to the one before. */
static void copy_window(window *to, const window *from)
{
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    memcpy(to->starts, from->starts, (from->n_tokens + 1) * sizeof *to->starts);
    to->n_tokens = from->n_tokens;
}

/* Merges the window after a, which begins at symbols[0], into b; false: they have no token in
 * common. */
static bool next_window(const merge_table *t, workspace *w, const uint32_t *symbols, size_t left,
                        joint *at)
{
    for (size_t back = OVERLAP; back < w->a.n_tokens; back *= 4) {
        at->from = w->a.n_tokens - back;
        const size_t start = w->a.starts[at->from];
        const size_t n = left - start < w->size ? left - start : w->size;
        if (n == w->size && memcmp(symbols, symbols + start, n * sizeof *symbols) == 0)
            copy_window(&w->b, &w->a);
        else
            merge_window(t, w, symbols + start, n, &w->b);
        if (find_common(&w->a, &w->b, at))
            return true;
    }
    return false;
}

typedef enum outcome {
    MERGED,
    NEEDS_LARGER_WINDOW,
    NO_MEMORY
} outcome;

static outcome merge_windows(const merge_table *t, workspace *w, const uint32_t *symbols, size_t n,
                             row *out)
{
    size_t start = 0, first = 0; /* of window a; its tokens before `first` do not count */
    out->n_tokens = 0;
    merge_window(t, w, symbols, n < w->size ? n : w->size, &w->a);
    while (start + w->a.starts[w->a.n_tokens] < n) {
        joint at;
        if (!next_window(t, w, symbols + start, n - start, &at) || at.in_a < first)
            return NEEDS_LARGER_WINDOW;
        if (!append_tokens(out, w->a.tokens + first, at.in_a - first))
            return NO_MEMORY;
        start += w->a.starts[at.from];
        first = at.in_b;
        const window a = w->a;
        w->a = w->b;
        w->b = a;
    }
    return append_tokens(out, w->a.tokens + first, w->a.n_tokens - first) ? MERGED : NO_MEMORY;
}

size_t merge_long(const merge_table *t, merge_scratch *s, uint32_t *symbols, size_t n)
{
    workspace w;
    row out = {0};
    outcome result = NO_MEMORY;
    if (n > UINT32_MAX / 2)
        return SIZE_MAX;
    for (size_t size = WINDOW; prepare_workspace(&w, s, size); size *= 2) {
        result = merge_windows(t, &w, symbols, n, &out);
        if (result != NEEDS_LARGER_WINDOW)
            break;
        result = NO_MEMORY;
    }
    if (result == MERGED)
        memcpy(symbols, out.tokens, out.n_tokens * sizeof *symbols);
    free(out.tokens);
    return result == MERGED ? out.n_tokens : SIZE_MAX;
}
