/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge.c - merging against the definition: look for the lowest, leftmost pair, merge it, and
 * again. */

#include "support/check.h"
#include "tokenizer/merge/merge.h"

static failure err;

/* A small alphabet and few pairs, so that boundaries of windows and ties matter. */
static size_t make_pairs(merge_pair *pairs, size_t n_pairs, uint32_t n_base, bool ties)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        const uint32_t known = n_base + i;
        pairs[i] =
            (merge_pair){check_below(known), check_below(known), ties ? i / 3 : i, n_base + i};
    }
    return n_pairs;
}

static size_t naive(const merge_table *t, uint32_t *symbols, size_t n)
{
    for (;;) {
        size_t best = SIZE_MAX;
        uint32_t best_rank = UINT32_MAX, rank;
        for (size_t i = 0; i + 1 < n; i++) {
            merge_table_find(t, symbols[i], symbols[i + 1], &rank);
            if (rank < best_rank) {
                best_rank = rank;
                best = i;
            }
        }
        if (best == SIZE_MAX)
            return n;
        symbols[best] = merge_table_find(t, symbols[best], symbols[best + 1], NULL);
        memmove(&symbols[best + 1], &symbols[best + 2], (n - best - 2) * sizeof *symbols);
        n--;
    }
}

static bool same_as_naive(const merge_table *t, merge_workspace *s, const uint32_t *text, size_t n)
{
    uint32_t *a = malloc(n * sizeof *a + 4), *b = malloc(n * sizeof *b + 4);
    memcpy(a, text, n * sizeof *a);
    memcpy(b, text, n * sizeof *b);
    const size_t n_a = merge_symbols(t, s, a, n), n_b = naive(t, b, n);
    const bool same = n_a == n_b && memcmp(a, b, n_a * sizeof *a) == 0;
    free(a);
    free(b);
    return same;
}

TEST(the_lowest_leftmost_pair_merges_first_for_any_length_and_any_table)
{
    static uint32_t text[12000];
    merge_workspace workspace = {0};
    for (int round = 0; round < (check_sanitized() ? 10 : check_long() ? 200 : 30); round++) {
        merge_pair pairs[64];
        const uint32_t n_base = 1 + check_below(4);
        const size_t n_pairs = make_pairs(pairs, 1 + check_below(60), n_base, check_below(2) != 0);
        merge_table *t = merge_table_new(pairs, n_pairs, &err);
        CHECK(t != NULL);
        for (int i = 0; i < 60; i++) {
            const size_t n = check_below(i < 30 ? 60 : i < 50 ? 260 : 700);
            for (size_t k = 0; k < n; k++)
                text[k] = check_below(n_base);
            CHECK(same_as_naive(t, &workspace, text, n));
        }
        merge_table_free(t);
    }
    merge_workspace_free(&workspace);
}

TEST(windows_are_joined_exactly)
{
    static uint32_t text[16000];
    merge_workspace workspace = {0};
    for (int round = 0; round < (check_sanitized() ? 2 : check_long() ? 30 : 4); round++) {
        merge_pair pairs[200];
        const uint32_t n_base = 1 + check_below(3);
        const size_t n_pairs = make_pairs(pairs, 1 + check_below(199), n_base, check_below(2) != 0);
        merge_table *t = merge_table_new(pairs, n_pairs, &err);
        const size_t n = 4000 + check_below(check_long() ? 12000 : 5000);
        const uint32_t period = 1 + check_below(40);
        for (size_t k = 0; k < n; k++)
            text[k] = round % 2 && k >= period ? text[k - period] : check_below(n_base);
        CHECK(same_as_naive(t, &workspace, text, n));
        merge_table_free(t);
    }
    merge_workspace_free(&workspace);
}

/* Tokens of very different lengths, so that pieces are joined far from their beginning. */
TEST(tokens_of_hundreds_of_symbols_are_joined_exactly)
{
    static uint32_t text[9000];
    merge_pair pairs[40];
    merge_workspace workspace = {0};
    for (int round = 0; round < (check_sanitized() ? 2 : check_long() ? 150 : 6); round++) {
        const uint32_t n_long = 2 + check_below(9), rank = check_below(2) ? 100 : 0;
        size_t n_pairs = 0;
        for (uint32_t i = 0; i < n_long; i++, n_pairs++) /* runs of 2, 4, 8, ... */
            pairs[n_pairs] = (merge_pair){i ? 9 + i : 0, i ? 9 + i : 0, rank + i, 10 + i};
        for (uint32_t i = 0; i < 20; i++, n_pairs++)
            pairs[n_pairs] = (merge_pair){check_below(20 + i), check_below(20 + i), 50 + i, 20 + i};
        merge_table *t = merge_table_new(pairs, n_pairs, &err);
        const size_t n = 3000 + check_below(6000);
        const uint32_t rare = 1 + check_below(600);
        for (size_t k = 0; k < n; k++)
            text[k] = check_below(rare) ? 0 : check_below(4);
        CHECK(same_as_naive(t, &workspace, text, n));
        merge_table_free(t);
    }
    merge_workspace_free(&workspace);
}

/* A chain in which each pair waits for its right neighbour. */
TEST(a_run_whose_end_decides_its_beginning_is_exact)
{
    static uint32_t text[20000];
    merge_workspace workspace = {0};
    /* 0 0 -> 1, but 0 2 -> 2 comes first: the last 2 eats all zeros before it, from the right. */
    merge_pair pairs[] = {{0, 2, 0, 2}, {0, 0, 1, 1}, {1, 1, 2, 3}};
    merge_table *t = merge_table_new(pairs, 3, &err);
    for (size_t n = 4090; n < 20000; n += 3977) {
        memset(text, 0, sizeof text);
        CHECK(same_as_naive(t, &workspace, text, n));
        text[n - 1] = 2;
        CHECK(same_as_naive(t, &workspace, text, n));
        text[n / 2] = 2;
        CHECK(same_as_naive(t, &workspace, text, n));
    }
    merge_table_free(t);
    merge_workspace_free(&workspace);
}

TEST(a_million_equal_symbols_take_no_time)
{
    const size_t n = check_sanitized() ? 300000 : 3000000;
    uint32_t *text = calloc(n, sizeof *text);
    merge_pair pairs[8];
    for (uint32_t i = 0; i < 8; i++)
        pairs[i] = (merge_pair){i, i, i, i + 1};
    merge_table *t = merge_table_new(pairs, 8, &err);
    merge_workspace workspace = {0};
    const size_t left = merge_symbols(t, &workspace, text, n);
    CHECK(left == n / 256 + (size_t)__builtin_popcount((unsigned)(n % 256)));
    CHECK(workspace.n_bytes < (size_t)1 << 20);
    CHECK(workspace.n_merged < n / 10);
    merge_workspace_free(&workspace);
    merge_table_free(t);
    free(text);
}

/* Symbols are counted, because time depends on the machine. */
TEST(long_words_of_any_kind_are_merged_about_once)
{
    const size_t n = 300000;
    uint32_t *text = malloc(n * sizeof *text);
    merge_pair pairs[60];
    for (uint32_t i = 0; i < 60; i++)
        pairs[i] = i < 8 ? (merge_pair){i ? 99 + i : 0, i ? 99 + i : 0, i, 100 + i}
                         : (merge_pair){i / 8, i % 8, i, 100 + i};
    merge_table *t = merge_table_new(pairs, 60, &err);
    for (uint32_t rare = 1; rare < 3000; rare *= 5) { /* runs of 0 are longer and longer */
        merge_workspace workspace = {0};
        for (size_t k = 0; k < n; k++)
            text[k] = check_below(rare) ? 0 : check_below(8);
        CHECK(merge_symbols(t, &workspace, text, n) < n);
        CHECK(workspace.n_merged < n * 5 / 2);
        merge_workspace_free(&workspace);
    }
    merge_table_free(t);
    free(text);
}

/* If a piece began at the beginning each time, this would take hours. Pairs as above: a 2 takes all
 * zeros before it, at once or one by one. */
TEST(runs_whose_ends_decide_their_beginnings_take_linear_time)
{
    const size_t n = check_sanitized() ? 100000 : 300000;
    uint32_t *text = malloc(n * sizeof *text);
    merge_pair pairs[] = {{0, 2, 0, 2}, {0, 0, 1, 1}, {1, 1, 2, 3}, {3, 3, 3, 4}};
    merge_table *t = merge_table_new(pairs, 4, &err);
    merge_workspace workspace = {0};
    static const size_t gaps[] = {7, 100, 5000, 99991};
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        for (size_t k = 0; k < n; k++)
            text[k] = k % gaps[i] == gaps[i] - 1 ? 2 : 0;
        const size_t rest = n % gaps[i];
        CHECK_EQ(merge_symbols(t, &workspace, text, n),
                 n / gaps[i] + rest / 8 + (size_t)__builtin_popcountll(rest % 8));
    }
    merge_workspace_free(&workspace);
    merge_table_free(t);
    free(text);
}

TEST(the_lowest_rank_of_a_pair_given_twice_counts)
{
    merge_pair pairs[] = {{1, 2, 7, 9}, {1, 2, 3, 8}, {1, 2, 5, 7}, {300, 400, 2, 5}};
    merge_table *t = merge_table_new(pairs, 4, &err);
    uint32_t rank;
    CHECK_EQ(merge_table_find(t, 1, 2, &rank), 8);
    CHECK_EQ(rank, 1); /* of the ranks 2, 3, 5, 7 */
    CHECK_EQ(merge_table_find(t, 300, 400, &rank), 5);
    CHECK_EQ(merge_table_find(t, 400, 300, &rank), UINT32_MAX);
    CHECK_EQ(rank, UINT32_MAX);
    merge_table_free(t);
}

/* ---- Pairs that were made to collide ---- */

/* All begin in bucket `hit`, as merge.c places n_pairs of them. */
static void make_colliding_pairs(merge_pair *pairs, size_t n_pairs, uint64_t hit)
{
    const uint64_t n_buckets = n_pairs * 5 / 2 / 4 + 16;
    uint32_t right = 300;
    for (uint32_t i = 0; i < n_pairs; right++) {
        const uint64_t pair = (uint64_t)500 << 21 | right;
        if (((pair * 0x9E3779B97F4A7C15u) >> 32) * n_buckets >> 32 != hit)
            continue;
        pairs[i] = (merge_pair){500, right, i, 1000000 + i};
        i++;
    }
}

TEST(pairs_that_collide_are_found_up_to_a_limit_and_refused_beyond_it)
{
    static merge_pair pairs[1001];
    for (uint64_t hit = 0; hit < 600; hit += 199) {
        make_colliding_pairs(pairs, 1000, hit);
        merge_table *t = merge_table_new(pairs, 1000, &err);
        CHECK(t != NULL);
        for (uint32_t i = 0; i < 1000; i++)
            CHECK_EQ(merge_table_find(t, 500, pairs[i].right, NULL), 1000000 + i);
        CHECK_EQ(merge_table_find(t, 500, 299, NULL), UINT32_MAX);
        merge_table_free(t);
        make_colliding_pairs(pairs, 1001, hit);
        CHECK(merge_table_new(pairs, 1001, &err) == NULL);
        CHECK(strstr(err.text, "too many pairs have the same hash") != NULL);
        pairs[1000].right++; /* so that one is elsewhere */
        t = merge_table_new(pairs, 1001, &err);
        CHECK(t != NULL);
        merge_table_free(t);
    }
}
