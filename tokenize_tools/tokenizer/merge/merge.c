/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "system/platform_memory.h"
#include "base/array.h"

/* A lookup costs cache misses and branches that cannot be predicted. So a slot is one word with a
 * pair (42 bits) and its rank (22 bits; ranks are renumbered without gaps); four slots make a
 * bucket, which is searched without a branch; and few buckets overflow into the next one. The
 * result of a pair is needed less often and is stored elsewhere. Most pairs of symbols do not
 * merge; a filter, which is small enough for the caches, finds nine of ten of those. */
#define SYMBOL_BITS 21
#define RANK_BITS 22
#define RANK_MASK (((uint64_t)1 << RANK_BITS) - 1)
#define FREE UINT64_MAX
#define BUCKET 4
#define BOUNDARY (((uint32_t)1 << SYMBOL_BITS) - 1) /* around a word: never merges */
#define MAX_PROBES 1000
#define FILTER_BITS 12 /* for each pair, at least */
#define DENSE 256      /* pairs of symbols below this, which is most of the first lookups */

struct merge_table {
    uint64_t *slots; /* in each bucket the free ones are last */
    size_t n_slots;
    uint32_t n_buckets;
    uint64_t *filter; /* a bit is set if a pair has its number */
    unsigned filter_shift;
    uint32_t *dense;   /* DENSE x DENSE ranks */
    bool follows_rank; /* the result is first_result + rank; else: */
    uint32_t first_result;
    uint32_t *results; /* by rank; by slot if pairs of one rank have different results */
    size_t n_results;
    bool by_slot;
};

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << SYMBOL_BITS | right;
}

static uint64_t hash_pair(uint64_t pair)
{
    return pair * 0x9E3779B97F4A7C15u;
}

/* Returns the first slot of the pair's bucket. */
static size_t bucket_of(const merge_table *t, uint64_t pair)
{
    return (size_t)((hash_pair(pair) >> 32) * t->n_buckets >> 32) * BUCKET;
}

/* Returns the pair's bit of the filter. */
static size_t bit_of(const merge_table *t, uint64_t pair)
{
    return (size_t)(hash_pair(pair) >> t->filter_shift);
}

/* ---- New and free ---- */

bool merge_list_add(merge_list *list, merge_pair pair, failure *err)
{
    if (list->n == MERGE_MAX_PAIRS)
        return model_fail(err, 0, "more than 4 million pairs of tokens that merge");
    if (!array_grow(&list->pairs, list->n, sizeof *list->pairs))
        return fail_memory(err);
    list->pairs[list->n++] = pair;
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const merge_pair *p = a, *q = b;
    return (p->rank > q->rank) - (p->rank < q->rank);
}

static bool has_ties(const merge_pair *pairs, size_t n_pairs)
{
    for (size_t i = 1; i < n_pairs; i++)
        if (pairs[i].rank == pairs[i - 1].rank && pairs[i].result != pairs[i - 1].result)
            return true;
    return false;
}

/* Whether results are consecutive in the order of ranks. */
static bool follow_rank(const merge_pair *pairs, size_t n_pairs)
{
    for (size_t i = 1; i < n_pairs; i++)
        if (pairs[i].result - pairs[i - 1].result != (pairs[i].rank != pairs[i - 1].rank))
            return false;
    return n_pairs > 0;
}

static bool allocate_filter(merge_table *t, size_t n_pairs)
{
    size_t n_bits = 64;
    while (n_bits < n_pairs * FILTER_BITS)
        n_bits *= 2;
    t->filter_shift = 64 - (unsigned)__builtin_ctzll(n_bits);
    t->filter = calloc(n_bits / 64, sizeof *t->filter);
    return t->filter != NULL;
}

static bool allocate_table(merge_table *t, const merge_pair *pairs, size_t n_pairs)
{
    t->n_buckets = (uint32_t)(n_pairs * 5 / 2 / BUCKET + 16);
    t->n_slots = (size_t)t->n_buckets * BUCKET;
    t->follows_rank = follow_rank(pairs, n_pairs);
    t->first_result = n_pairs ? pairs[0].result : 0;
    t->by_slot = has_ties(pairs, n_pairs);
    t->n_results = t->by_slot ? t->n_slots : n_pairs + 1;
    t->slots = tokmap_i_big_memory_new(t->n_slots * sizeof *t->slots);
    t->dense = malloc(sizeof *t->dense * DENSE * DENSE);
    t->results = tokmap_i_big_memory_new(t->n_results * sizeof *t->results);
    if (!t->slots || !t->dense || !t->results || !allocate_filter(t, n_pairs))
        return false;
    memset(t->slots, 0xFF, t->n_slots * sizeof *t->slots);
    memset(t->dense, 0xFF, sizeof *t->dense * DENSE * DENSE);
    return true;
}

/* The pairs come by rank, so the first of two equal pairs is the lower one. False: too many pairs
 * have the same hash, which happens only if they were made to. */
static bool add_pair(merge_table *t, const merge_pair *p, uint32_t rank)
{
    const uint64_t pair = pair_of(p->left, p->right);
    const size_t bit = bit_of(t, pair);
    size_t i = bucket_of(t, pair), n_probes = 0;
    for (; t->slots[i] != FREE; i = i + 1 == t->n_slots ? 0 : i + 1)
        if (t->slots[i] >> RANK_BITS == pair || ++n_probes == MAX_PROBES)
            return n_probes < MAX_PROBES;
    t->slots[i] = pair << RANK_BITS | rank;
    t->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    t->results[t->by_slot ? i : rank] = p->result;
    if (p->left < DENSE && p->right < DENSE)
        t->dense[p->left * DENSE + p->right] = rank;
    return true;
}

merge_table *merge_table_new(merge_pair *pairs, size_t n_pairs, failure *err)
{
    errno = 0;
    merge_table *t = calloc(1, sizeof *t);
    if (n_pairs > 0)
        qsort(pairs, n_pairs, sizeof *pairs, by_rank);
    bool made = t && n_pairs < RANK_MASK && allocate_table(t, pairs, n_pairs);
    uint32_t rank = 0;
    for (size_t i = 0; i < n_pairs && made; i++) {
        const merge_pair *p = &pairs[i];
        rank += i > 0 && p->rank != pairs[i - 1].rank;
        made = p->left < BOUNDARY && p->right < BOUNDARY && p->result < BOUNDARY &&
               add_pair(t, p, rank);
    }
    if (made)
        return t;
    model_table_failed(err, "pairs");
    merge_table_free(t);
    return NULL;
}

void merge_table_free(merge_table *t)
{
    if (!t)
        return;
    tokmap_i_big_memory_free(t->slots, t->n_slots * sizeof *t->slots);
    tokmap_i_big_memory_free(t->results, t->n_results * sizeof *t->results);
    free(t->filter);
    free(t->dense);
    free(t);
}

/* ---- Look up ---- */

static uint32_t rank_of(const merge_table *t, uint64_t pair)
{
    const size_t bit = bit_of(t, pair);
    if ((t->filter[bit / 64] >> bit % 64 & 1) == 0)
        return NO_RANK;
    for (size_t i = bucket_of(t, pair);; i = i + BUCKET == t->n_slots ? 0 : i + BUCKET) {
        const uint64_t *slots = &t->slots[i];
        uint32_t rank = NO_RANK;
        for (size_t k = 0; k < BUCKET; k++) {
            const uint32_t this_rank = (uint32_t)(slots[k] & RANK_MASK);
            rank = slots[k] >> RANK_BITS == pair ? this_rank : rank;
        }
        if (__builtin_expect(rank != NO_RANK || slots[BUCKET - 1] == FREE, 1))
            return rank;
    }
}

uint32_t merge_rank(const merge_table *t, uint32_t left, uint32_t right)
{
    if ((left | right) < DENSE)
        return t->dense[left * DENSE + right];
    return rank_of(t, pair_of(left, right));
}

uint32_t merge_result(const merge_table *t, uint32_t rank, uint32_t left, uint32_t right)
{
    if (t->follows_rank)
        return t->first_result + rank;
    if (!t->by_slot)
        return t->results[rank];
    const uint64_t pair = pair_of(left, right);
    size_t i = bucket_of(t, pair);
    while (t->slots[i] >> RANK_BITS != pair)
        i = i + 1 == t->n_slots ? 0 : i + 1;
    return t->results[i];
}

uint32_t merge_table_find(const merge_table *t, uint32_t left, uint32_t right, uint32_t *rank)
{
    const uint32_t found = merge_rank(t, left, right);
    if (rank)
        *rank = found;
    return found == NO_RANK ? NO_RANK : merge_result(t, found, left, right);
}

/* ---- Short words: search for the lowest rank again after each merge ---- */

/* In a word of more than FEW symbols, the smallest turn of each group of places is kept: a merge
 * changes few groups. */
#define GROUP 16
#define FEW 44
#define PLACES (MERGE_SHORT + GROUP)

/* A word being merged, with its symbols at 1 to n. A symbol that was merged into the one before
 * keeps its place, but never gets a turn.
 *
 * A turn is rank << 32 | place: the smallest is the next merge. 64 bits also keep compilers from
 * searching with vectors, which would wait for the words just written. */
typedef struct short_word {
    uint64_t turns[PLACES];
    uint64_t smallest[PLACES / GROUP]; /* of each group */
    uint32_t symbols[PLACES];
    uint8_t next[PLACES], prev[PLACES];
} short_word;

/* NO_RANK gives a turn not less than NO_TURN. */
#define NO_TURN ((uint64_t)NO_RANK << 32)

static uint64_t turn_of(uint32_t rank, size_t place)
{
    return (uint64_t)rank << 32 | place;
}

/* n_turns is a multiple of 4. */
static uint64_t smallest_turn(const uint64_t *turns, size_t n_turns)
{
    uint64_t a = NO_TURN, b = NO_TURN;
    for (size_t i = 0; i < n_turns; i += 4) {
        const uint64_t *four = &turns[i];
        a = four[0] < a ? four[0] : a;
        b = four[1] < b ? four[1] : b;
        a = four[2] < a ? four[2] : a;
        b = four[3] < b ? four[3] : b;
    }
    return a < b ? a : b;
}

static void begin_word(const merge_table *t, short_word *w, const uint32_t *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w->symbols[i + 1] = symbols[i];
        w->next[i + 1] = (uint8_t)(i + 2);
        w->prev[i + 1] = (uint8_t)i;
    }
    w->symbols[0] = w->symbols[n + 1] = BOUNDARY;
    w->prev[n + 1] = (uint8_t)n;
    for (size_t i = 1; i < n; i++)
        w->turns[i] = turn_of(merge_rank(t, w->symbols[i], w->symbols[i + 1]), i);
    w->turns[0] = NO_TURN;
    for (size_t i = n; i <= (n | 3); i++)
        w->turns[i] = NO_TURN;
}

static void merge_pair_at(const merge_table *t, short_word *w, uint64_t turn)
{
    const size_t at = (uint8_t)turn, gone = w->next[at], after = w->next[gone],
                 before = w->prev[at];
    const uint32_t symbol =
        merge_result(t, (uint32_t)(turn >> 32), w->symbols[at], w->symbols[gone]);
    w->symbols[at] = symbol;
    w->next[at] = (uint8_t)after;
    w->prev[after] = (uint8_t)at;
    w->turns[gone] = NO_TURN;
    const uint64_t right = pair_of(symbol, w->symbols[after]),
                   left = pair_of(w->symbols[before], symbol);
    __builtin_prefetch(&t->slots[bucket_of(t, right)]); /* while their bits are looked at */
    __builtin_prefetch(&t->slots[bucket_of(t, left)]);
    w->turns[at] = turn_of(rank_of(t, right), at);
    w->turns[before] = turn_of(rank_of(t, left), before);
}

/* Recomputes the smallest turns of the groups from `from` to `to`. */
static void update_groups(short_word *w, size_t from, size_t to)
{
    for (size_t i = from / GROUP; i <= to / GROUP; i++)
        w->smallest[i] = smallest_turn(&w->turns[i * GROUP], GROUP);
}

static void merge_in_groups(const merge_table *t, short_word *w, size_t n)
{
    for (size_t i = (n | 3) + 1; i % GROUP != 0; i++)
        w->turns[i] = NO_TURN;
    for (size_t i = n / GROUP + 1; i % 4 != 0; i++)
        w->smallest[i] = NO_TURN;
    update_groups(w, 0, n);
    for (uint64_t turn; (turn = smallest_turn(w->smallest, (n / GROUP | 3) + 1)) < NO_TURN;) {
        const size_t before = w->prev[(uint8_t)turn], gone = w->next[(uint8_t)turn];
        merge_pair_at(t, w, turn);
        update_groups(w, before, gone);
    }
}

size_t merge_short(const merge_table *t, uint32_t *symbols, size_t n, uint8_t *starts)
{
    short_word w;
    const size_t n_turns = (n | 3) + 1;
    begin_word(t, &w, symbols, n);
    if (n > FEW)
        merge_in_groups(t, &w, n);
    else
        for (uint64_t turn; (turn = smallest_turn(w.turns, n_turns)) < NO_TURN;)
            merge_pair_at(t, &w, turn);
    size_t n_left = 0;
    for (size_t i = 1; i <= n; i = w.next[i]) {
        starts[n_left] = (uint8_t)(i - 1);
        symbols[n_left++] = w.symbols[i];
    }
    return n_left;
}

bool merge_last(const merge_table *t, const uint32_t *symbols, size_t n, merge_pair *last)
{
    short_word w;
    const size_t n_turns = (n | 3) + 1;
    size_t n_left = n;
    begin_word(t, &w, symbols, n);
    for (uint64_t turn; (turn = smallest_turn(w.turns, n_turns)) < NO_TURN; n_left--) {
        last->left = w.symbols[1];
        last->right = w.symbols[w.next[1]];
        last->rank = (uint32_t)(turn >> 32);
        merge_pair_at(t, &w, turn);
        last->result = w.symbols[1];
    }
    return n_left == 1 && n > 1;
}

size_t merge_symbols(const merge_table *t, merge_workspace *s, uint32_t *symbols, size_t n)
{
    uint8_t starts[MERGE_SHORT];
    if (n < 2)
        return n;
    return n <= MERGE_SHORT ? merge_short(t, symbols, n, starts) : merge_long(t, s, symbols, n);
}

void merge_workspace_free(merge_workspace *s)
{
    free(s->memory);
    *s = (merge_workspace){0};
}
