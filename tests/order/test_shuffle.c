/* SPDX-License-Identifier: Apache-2.0 */
/* The shuffle modes of docs/ORDER.md, section 4: what they promise. Which windows they give is in
 * test_order.py. */
#include "support/check.h"

#include "order/shuffle.h"

enum {
    MAX_WINDOWS = 70000
};

static tokmap_i_shuffle shuffle(tokmap_shuffle mode, uint64_t n, uint64_t block, uint64_t group,
                                uint64_t seed)
{
    tokmap_i_shuffle s = {.mode = mode, .id = {seed, 77, 1}, .n_windows = n};
    s.block_windows = block;
    s.group_blocks = group;
    tokmap_i_shuffle_init(&s);
    return s;
}

/* Every window once. */
static void check_epoch(tokmap_i_shuffle *s, uint64_t epoch)
{
    static bool seen[MAX_WINDOWS];
    const uint64_t n = s->n_windows;
    memset(seen, 0, sizeof seen);
    for (uint64_t x = 0; x < n; x++) {
        const uint64_t w = tokmap_i_shuffle_window(s, epoch, x);
        CHECK(w < n && !seen[w]);
        seen[w] = true;
        CHECK_EQ(tokmap_i_shuffle_place(s, epoch, w), x);
    }
}

/* The windows of a group stand in at most M runs, and one more where a block joins the end to the
 * beginning. */
static void check_runs(tokmap_i_shuffle *s, uint64_t epoch)
{
    static uint32_t group_of[MAX_WINDOWS];
    const uint64_t n = s->n_windows, n_in_group = s->block_windows * s->group_blocks;
    const uint64_t n_groups = (n + n_in_group - 1) / n_in_group;
    uint64_t *n_runs = calloc(n_groups, sizeof *n_runs);
    for (uint64_t x = 0; x < n; x++)
        group_of[tokmap_i_shuffle_window(s, epoch, x)] = (uint32_t)(x / n_in_group);
    for (uint64_t w = 0; w < n; w++)
        n_runs[group_of[w]] += w == 0 || group_of[w] != group_of[w - 1];
    uint64_t most = 0;
    for (uint64_t c = 0; c < n_groups; c++)
        most = n_runs[c] > most ? n_runs[c] : most;
    free(n_runs);
    CHECK(most <= s->group_blocks + 1);
}

static void check_shape(uint64_t n, uint64_t block, uint64_t group)
{
    tokmap_i_shuffle s = shuffle(TOKMAP_SHUFFLE_BLOCK, n, block, group, n + block);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        check_epoch(&s, epoch);
        check_runs(&s, epoch);
    }
}

TEST(block_mode_gives_every_window_once_and_reads_m_blocks_a_group)
{
    static const uint64_t blocks[] = {1, 2, 3, 7, 16, 100};
    static const uint64_t groups[] = {1, 2, 3, 5, 1000, (uint64_t)1 << 40};
    for (size_t i = 0; i < 36; i++) {
        const uint64_t block = blocks[i / 6], group = groups[i % 6];
        for (uint64_t k = 0; k <= 12; k += k < 3 ? 1 : 3)
            for (uint64_t n = k > 0 ? k * block - 1 : 1; n <= k * block + 1; n++)
                if (n > 0)
                    check_shape(n, block, group);
    }
}

TEST(block_mode_holds_for_larger_sources)
{
    check_shape(1, 1, 1);
    check_shape(5, 1000, 1);
    check_shape(5, (uint64_t)1 << 48, 1);
    check_shape(5, 1, (uint64_t)1 << 48);
    check_shape(9999, 64, 16);
    check_shape(10000, 100, 10);
    if (check_long()) {
        check_shape(65535, 1024, 8);
        check_shape(65536, 1024, 8);
        check_shape(65537, 1024, 8);
        check_shape(69999, 1, 3);
    }
}

TEST(full_and_none_give_every_window_once)
{
    for (uint64_t n = 1; n < 12000; n = n * 3 + n % 2) {
        tokmap_i_shuffle full = shuffle(TOKMAP_SHUFFLE_FULL, n, 0, 0, n);
        tokmap_i_shuffle none = shuffle(TOKMAP_SHUFFLE_NONE, n, 0, 0, n);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            check_epoch(&full, epoch);
            check_epoch(&none, epoch);
            CHECK_EQ(tokmap_i_shuffle_window(&none, epoch, n - 1), n - 1);
        }
    }
}

/* Going to and fro between epochs and groups, the largest epoch first: kept keys never show. */
TEST(what_was_asked_before_does_not_matter)
{
    for (uint64_t mode = 0; mode < 3; mode++) {
        tokmap_i_shuffle s = shuffle((tokmap_shuffle)mode, 1000, 16, 4, mode);
        for (uint64_t i = 0; i < 5000; i++) {
            const uint64_t epoch = (tokmap_i_mix(i % 2 ? i / 10 : i / 40) % 3) - 1;
            /* runs of ten, some of them from the last one on */
            const uint64_t x = (tokmap_i_mix(i / 10 + 5000) + i % 10) % 1000;
            tokmap_i_shuffle fresh = shuffle((tokmap_shuffle)mode, 1000, 16, 4, mode);
            CHECK_EQ(tokmap_i_shuffle_window(&s, epoch, x),
                     tokmap_i_shuffle_window(&fresh, epoch, x));
            CHECK_EQ(tokmap_i_shuffle_window(&s, epoch, tokmap_i_shuffle_place(&s, epoch, x)), x);
        }
    }
}

static uint64_t n_equal(tokmap_i_shuffle *a, uint64_t epoch_a, tokmap_i_shuffle *b,
                        uint64_t epoch_b)
{
    uint64_t n = 0;
    for (uint64_t x = 0; x < a->n_windows; x++)
        n += tokmap_i_shuffle_window(a, epoch_a, x) == tokmap_i_shuffle_window(b, epoch_b, x);
    return n;
}

TEST(epochs_seeds_and_copies_differ)
{
    for (uint64_t mode = 0; mode <= 2; mode += 2) {
        tokmap_i_shuffle a = shuffle((tokmap_shuffle)mode, 5000, 8, 8, 1), same = a;
        tokmap_i_shuffle seed = shuffle((tokmap_shuffle)mode, 5000, 8, 8, 2);
        tokmap_i_shuffle copy = a, source = a;
        copy.id.copy++;
        source.id.source_id++;
        CHECK_EQ(n_equal(&a, 3, &same, 3), 5000);
        CHECK(n_equal(&a, 0, &same, 1) < 12);
        CHECK(n_equal(&a, 1, &seed, 0) < 12);
        CHECK(n_equal(&a, 1, &seed, 1) < 12);
        CHECK(n_equal(&a, 1, &copy, 1) < 12);
        CHECK(n_equal(&a, 1, &source, 1) < 12);
    }
}

/* Over many epochs each window begins a block about as often as any other. */
TEST(blocks_begin_elsewhere_in_every_epoch)
{
    tokmap_i_shuffle s = shuffle(TOKMAP_SHUFFLE_BLOCK, 100, 10, 2, 9);
    uint32_t n_first[10] = {0};
    for (uint64_t epoch = 0; epoch < 1000; epoch++) {
        tokmap_i_shuffle_window(&s, epoch, 0);
        n_first[s.rotation % 10]++;
    }
    for (int i = 0; i < 10; i++)
        CHECK(n_first[i] > 60 && n_first[i] < 140);
}
