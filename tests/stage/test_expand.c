/* SPDX-License-Identifier: Apache-2.0 */
/* From rows to images, and from images to batches in two ways: the plain C of the library, and the
 * kernel's own text, on the processor. */
#include "stage/cuda_on_cpu.h"
#include "stage/expand_case.h"

enum {
    TILE = TOKMAP_I_TILE
};
#define NO_ROOM ((uint64_t)1 << 32) /* places in images have 32 bits */

/* ---- Sizes ---- */

static uint64_t up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* Table, masks, tiles and boundaries, tokens; each of them in whole lines of 64 bytes, but for the
 * boundaries, which follow the tiles. */
static uint64_t count_bytes(const tokmap_i_image_shape *s)
{
    const uint64_t n = s->n_rows, length = s->length;
    uint64_t n_bytes = up(n * 32, 64);
    if (s->has_masks)
        n_bytes = up(n_bytes + n * up(length, 32) / 8, 64);
    if (s->has_documents)
        n_bytes = up(n_bytes + n * (up(length, TILE) / TILE) * 4 + 4ull * s->max_boundaries, 64);
    return n_bytes + n * up((length + 1) * s->token_bytes, 16);
}

TEST(sizes_are_the_sums_of_their_parts)
{
    for (int i = 0; i < 100000; i++) {
        const tokmap_i_image_shape s = {.n_rows = 1 + check_below(1u << check_below(25)),
                                        .length = 1 + check_below(1u << check_below(25)),
                                        .token_bytes = 2 + 2 * check_below(2),
                                        .has_masks = check_one_in(2),
                                        .has_documents = check_one_in(2),
                                        .max_boundaries = check_below(1u << check_below(31))};
        const uint64_t n_bytes = count_bytes(&s);
        CHECK_EQ(tokmap_i_image_bytes(&s), n_bytes < NO_ROOM ? n_bytes : 0);
    }
}

TEST(images_beyond_four_gigabytes_are_refused)
{
    tokmap_i_image_shape s = {.n_rows = 1, .length = UINT32_MAX, .token_bytes = 4};
    CHECK_EQ(tokmap_i_image_bytes(&s), 0);
    s.n_rows = UINT32_MAX; /* whose products are beyond 2^64 */
    s.has_masks = s.has_documents = true;
    s.max_boundaries = UINT32_MAX;
    CHECK_EQ(tokmap_i_image_bytes(&s), 0);
    /* A table of one line, and one row, in words of 16 bytes: the longest that fits. */
    s = (tokmap_i_image_shape){.n_rows = 1, .token_bytes = 2};
    s.length = (uint32_t)((NO_ROOM - 64 - 16) / 2 - 1);
    CHECK_EQ(tokmap_i_image_bytes(&s), NO_ROOM - 16);
    s.length++;
    CHECK_EQ(tokmap_i_image_bytes(&s), 0);
    s = (tokmap_i_image_shape){.n_rows = 1u << 24, .length = 103, .token_bytes = 2};
    CHECK_EQ(tokmap_i_image_bytes(&s), (uint64_t)(32 + 208) << 24);
    s.length = 1u << 7; /* 2^31 inputs */
    CHECK_EQ(tokmap_i_image_bytes(&s), 0);
    /* Boundaries count, too. */
    s = (tokmap_i_image_shape){.n_rows = 1, .length = 1, .token_bytes = 2, .has_documents = true};
    s.max_boundaries = (uint32_t)((NO_ROOM - 64 - 4 - 64) / 4);
    CHECK(tokmap_i_image_bytes(&s) > NO_ROOM - 128);
    s.max_boundaries += 16;
    CHECK_EQ(tokmap_i_image_bytes(&s), 0);
}

/* ---- Batches ---- */

static void shuffle(uint16_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = (uint16_t)i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = check_below(i);
        const uint16_t last = numbers[i - 1];
        numbers[i - 1] = numbers[k];
        numbers[k] = last;
    }
}

static void run_kernel(const tokmap_i_expand_job *job, size_t image_bytes)
{
    static cuda_orders orders;
    (void)image_bytes;
    const uint32_t n_blocks = job->n_rows * job->n_tiles;
    uint16_t *blocks = malloc(n_blocks * sizeof *blocks);
    CHECK(blocks != NULL);
    shuffle(blocks, n_blocks);
    for (uint32_t b = 0; b < n_blocks; b++) {
        for (int phase = 0; phase < CUDA_PHASES; phase++)
            shuffle(orders.threads[phase], TOKMAP_I_BLOCK_THREADS);
        cuda_run_block(job, blocks[b], &orders, (uint8_t)check_bits());
    }
    free(blocks);
}

static void run_plain(const tokmap_i_expand_job *job, size_t image_bytes)
{
    (void)image_bytes;
    tokmap_i_expand(job);
}

static void check_both(const plan *p)
{
    static expand_run *const runs[] = {run_plain, run_kernel};
    static const char *const names[] = {"expand.c", "expand.cu"};
    check_plan(p, runs, names, 2);
}

static plan usual(uint32_t n_rows, uint32_t length)
{
    return (plan){.n_rows = n_rows,
                  .length = length,
                  .widths = 2,
                  .cuts = CUTS_SOME,
                  .outputs = EXPAND_ALL,
                  .input_bytes = 4,
                  .label_bytes = 8,
                  .pad_id = 50256,
                  .ignore = -100};
}

TEST(every_length_around_words_and_tiles)
{
    for (uint32_t length = 1; length <= 3 * TILE + 3; length++) {
        const uint32_t to_tile = (length + 3) % TILE;
        if (length > 140 && to_tile > 6 && !(check_long() && (length + 1) % 32 <= 2))
            continue;
        for (cuts c = CUTS_NONE; c < N_CUTS; c++) {
            plan p = usual(length < 200 ? 3 : 1, length);
            p.cuts = c;
            p.widths = c & 1 ? 4 : 2;
            p.has_masks = true;
            p.has_short_rows = length % 5 == 0;
            check_both(&p);
        }
    }
}

TEST(every_choice_of_outputs_and_widths)
{
    for (uint32_t outputs = 1; outputs <= EXPAND_ALL; outputs++) {
        for (uint32_t k = 0; k < 8; k++) {
            plan p = usual(3, 77 + outputs);
            p.outputs = outputs | (k & 1 ? TOKMAP_STAGE_ROW_POSITIONS : 0);
            p.input_bytes = k & 2 ? 8 : 4;
            p.label_bytes = k & 4 ? 8 : 4;
            p.widths = 6;
            p.has_masks = p.has_short_rows = true;
            check_both(&p);
        }
    }
}

TEST(cu_seqlens_of_any_room)
{
    for (uint32_t n_cu = 1; n_cu < 1400; n_cu += n_cu < 40 ? 1 : 97) {
        plan p = usual(4, 100);
        p.cuts = CUTS_MOST;
        p.n_cu = n_cu;
        check_both(&p);
        p.outputs = TOKMAP_STAGE_CU_SEQLENS;
        check_both(&p);
    }
}

TEST(random_batches)
{
    const int n_cases = (check_long() ? 6000 : 500) / (check_sanitized() ? 5 : 1);
    memset(&expand_seen, 0, sizeof expand_seen);
    for (int i = 0; i < n_cases; i++) {
        const plan p = random_plan();
        check_both(&p);
    }
    CHECK_EQ(expand_seen.cases, n_cases);
    CHECK(expand_seen.widths[0][0] && expand_seen.widths[0][1] && expand_seen.widths[1][0] &&
          expand_seen.widths[1][1]);
    CHECK(expand_seen.tile_boundaries && expand_seen.documents_of_one && expand_seen.masked &&
          expand_seen.short_rows);
    CHECK(expand_seen.one_input && expand_seen.last_tiles_of_one && expand_seen.no_documents &&
          expand_seen.row_positions);
    CHECK(expand_seen.small_cu && expand_seen.short_at_tile && expand_seen.full_images &&
          expand_seen.refused_images && expand_seen.slices);
}
