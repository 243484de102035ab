/* SPDX-License-Identifier: Apache-2.0 */
/* Images of batches: how large they are, what they refuse, and what stands where. */
#include "support/check.h"

#include "base/base.h"
#include "stage/slot_image.h"

enum {
    MAX_ROWS = 12,
    MAX_LENGTH = 5000,
    GUARD = 64,
    UNTOUCHED = 0xC3,
    TILE = TOKMAP_I_TILE
};
#define NO_ROOM ((uint64_t)1 << 32) /* places have 32 bits */

/* ---- Batches ---- */

static struct {
    tokmap_i_image_shape shape;
    tokmap_row rows[MAX_ROWS];
    uint8_t tokens[MAX_ROWS][(MAX_LENGTH + 1) * 4 + 16];
    uint8_t masks[MAX_ROWS][MAX_LENGTH];
    int32_t cu_seqlens[MAX_ROWS][MAX_LENGTH + 1];
    uint32_t n_boundaries, longest; /* of all rows, as tokmap_stage.h counts them */
} now;

static uint32_t n_inputs_of(uint32_t r)
{
    return now.rows[r].n_tokens - 1;
}

static void make_documents(uint32_t r, uint32_t one_of)
{
    const uint32_t n_inputs = n_inputs_of(r);
    int32_t *cu = now.cu_seqlens[r];
    uint32_t n = 1;
    cu[0] = 0;
    for (uint32_t i = 1; i < n_inputs; i++)
        if (check_one_in(one_of) || (i % TILE == 0 && check_one_in(2)))
            cu[n++] = (int32_t)i;
    cu[n] = (int32_t)n_inputs;
    now.rows[r].cu_seqlens = cu;
    now.rows[r].n_documents = n;
    for (uint32_t d = 0; d < n; d++)
        now.rows[r].longest_document =
            MAX(now.rows[r].longest_document, (uint32_t)(cu[d + 1] - cu[d]));
    now.n_boundaries += n + (n_inputs < now.shape.length);
    now.longest = MAX(now.longest, now.rows[r].longest_document);
    now.longest = MAX(now.longest, now.shape.length - n_inputs);
}

static void make_row(uint32_t r, bool full, uint32_t one_of)
{
    tokmap_row *row = &now.rows[r];
    const uint32_t length = now.shape.length;
    *row = (tokmap_row){.n_tokens = full || check_one_in(2) ? length + 1 : 2 + check_below(length),
                        .token_bytes =
                            now.shape.token_bytes == 2 || !(full || check_one_in(2)) ? 2 : 4};
    row->tokens = now.tokens[r] + check_below(16);
    for (size_t i = 0; i < sizeof now.tokens[r]; i++)
        now.tokens[r][i] = (uint8_t)(check_bits() >> 24);
    for (uint32_t i = 0; i < length; i++)
        now.masks[r][i] = check_one_in(2) ? (uint8_t)check_bits() : 0;
    row->loss_mask = check_one_in(3) ? NULL : now.masks[r];
    if (now.shape.has_documents)
        make_documents(r, one_of);
}

/* Full: the largest batch of its shape. */
static void make_batch(bool full)
{
    const uint32_t one_of = 1 + check_below(60);
    now.n_boundaries = now.longest = 0;
    now.shape =
        (tokmap_i_image_shape){.n_rows = 1 + check_below(MAX_ROWS),
                               .length = 1 + check_below(check_one_in(2) ? 100 : MAX_LENGTH),
                               .token_bytes = 2 + 2 * check_below(2),
                               .has_masks = check_one_in(2),
                               .has_documents = check_one_in(2)};
    for (uint32_t r = 0; r < now.shape.n_rows; r++)
        make_row(r, full, one_of);
    if (now.shape.has_documents)
        now.shape.max_boundaries = now.n_boundaries + (full ? 0 : check_below(100));
}

/* ---- Images ---- */

/* Memory of exactly the size that was promised, between guards. */
static tokmap_i_image open_image(void)
{
    const size_t n_bytes = tokmap_i_image_bytes(&now.shape);
    void *memory = NULL;
    CHECK(n_bytes > 0);
    CHECK(posix_memalign(&memory, 64, GUARD + n_bytes + GUARD) == 0);
    memset(memory, UNTOUCHED, GUARD + n_bytes + GUARD);
    return (tokmap_i_image){.memory = (uint8_t *)memory + GUARD};
}

static void check_guards(const tokmap_i_image *image)
{
    const uint8_t *end = image->memory + tokmap_i_image_bytes(&now.shape);
    for (int i = 0; i < GUARD; i++)
        CHECK(image->memory[i - GUARD] == UNTOUCHED && end[i] == UNTOUCHED);
}

static void close_image(const tokmap_i_image *image)
{
    check_guards(image);
    free(image->memory - GUARD);
}

static void begin(tokmap_i_image *image)
{
    CHECK(tokmap_i_image_begin(image, &now.shape, now.rows));
}

static tokmap_i_image write_image(void)
{
    tokmap_i_image image = open_image();
    begin(&image);
    for (uint32_t r = 0; r < now.shape.n_rows; r++)
        memcpy(tokmap_i_image_tokens(&image, r), now.rows[r].tokens,
               (size_t)now.rows[r].n_tokens * now.rows[r].token_bytes);
    return image;
}

static const tokmap_i_image_row *row_of(const tokmap_i_image *image, uint32_t r)
{
    return (const tokmap_i_image_row *)image->memory + r;
}

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

TEST(full_batches_take_what_was_promised_and_no_batch_takes_more)
{
    for (int i = 0; i < (check_long() ? 3000 : 300); i++) {
        make_batch(i & 1);
        const uint64_t promised = tokmap_i_image_bytes(&now.shape);
        const tokmap_i_image image = write_image();
        CHECK(image.n_bytes <= promised);
        if (i & 1)
            CHECK_EQ(image.n_bytes, promised);
        close_image(&image);
    }
}

/* ---- Parts ---- */

/* Each stretch is marked; none may be marked before. */
static void mark(uint8_t *marks, const tokmap_i_image *image, uint64_t begin, uint64_t n_bytes)
{
    CHECK(begin + n_bytes <= image->n_bytes);
    for (uint64_t i = begin; i < begin + n_bytes; i++)
        CHECK(marks[i]++ == 0);
}

static void check_mask(const tokmap_i_image *image, uint32_t r, uint8_t *marks)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const uint32_t n_bits = (uint32_t)up(now.shape.length, 32);
    CHECK(row->flags == (now.shape.has_masks && now.rows[r].loss_mask ? TOKMAP_I_ROW_MASKED : 0));
    if (!row->flags)
        return;
    CHECK_EQ(row->mask % 4, 0);
    mark(marks, image, row->mask, n_bits / 8);
    for (uint32_t i = 0; i < n_bits; i++)
        CHECK_EQ(image->memory[row->mask + i / 8] >> i % 8 & 1,
                 i < now.shape.length && now.masks[r][i] != 0);
}

static void check_tokens(const tokmap_i_image *image, uint32_t r, uint8_t *marks)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const size_t n_bytes = (size_t)now.rows[r].n_tokens * now.rows[r].token_bytes;
    CHECK_EQ(row->n_tokens, now.rows[r].n_tokens);
    CHECK_EQ(row->token_bytes, now.rows[r].token_bytes);
    CHECK_EQ(row->tokens % 16, 0);
    mark(marks, image, row->tokens, up(n_bytes, 16)); /* who reads whole words reads no other row */
    CHECK(memcmp(image->memory + row->tokens, now.rows[r].tokens, n_bytes) == 0);
}

static void check_documents(const tokmap_i_image *image, uint32_t r, uint32_t first)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const tokmap_row *from = &now.rows[r];
    const int32_t *boundaries = (const int32_t *)(image->memory + image->boundaries);
    const uint32_t *tiles = (const uint32_t *)(image->memory + image->tile_boundaries);
    const uint32_t n_tiles = (now.shape.length + TILE - 1) / TILE;
    const int32_t row_begin = (int32_t)(r * now.shape.length);
    CHECK_EQ(row->first_boundary, first);
    CHECK_EQ(row->n_boundaries, from->n_documents + (from->n_tokens - 1 < now.shape.length));
    for (uint32_t d = 0; d < row->n_boundaries; d++)
        CHECK_INT(boundaries[first + d], row_begin + from->cu_seqlens[d]);
    for (uint32_t t = 0; t < n_tiles; t++) {
        const uint32_t last = tiles[r * n_tiles + t];
        const int32_t tile_begin = row_begin + (int32_t)(t * TILE);
        CHECK(last >= first && last < first + row->n_boundaries);
        CHECK(boundaries[last] <= tile_begin);
        CHECK(last + 1 == first + row->n_boundaries || boundaries[last + 1] > tile_begin);
    }
}

TEST(parts_stand_apart_and_hold_what_rows_say)
{
    for (int i = 0; i < (check_long() ? 1000 : 200); i++) {
        make_batch(false);
        const tokmap_i_image image = write_image();
        uint8_t *marks = calloc(image.n_bytes, 1);
        const uint32_t n_tiles = (now.shape.length + TILE - 1) / TILE * now.shape.n_rows;
        mark(marks, &image, 0, now.shape.n_rows * sizeof(tokmap_i_image_row));
        for (uint32_t r = 0, first = 0; r < now.shape.n_rows; r++) {
            check_mask(&image, r, marks);
            check_tokens(&image, r, marks);
            if (now.shape.has_documents)
                check_documents(&image, r, first);
            first += row_of(&image, r)->n_boundaries;
        }
        CHECK_EQ(image.n_boundaries, now.n_boundaries);
        CHECK_EQ(image.longest, now.longest);
        CHECK_INT(image.boundaries != 0, now.shape.has_documents);
        CHECK_INT(image.tile_boundaries != 0, now.shape.has_documents);
        CHECK_EQ(image.boundaries % 4 + image.tile_boundaries % 4, 0);
        if (now.shape.has_documents) {
            mark(marks, &image, image.boundaries, 4ull * image.n_boundaries);
            mark(marks, &image, image.tile_boundaries, 4ull * n_tiles);
        }
        free(marks);
        close_image(&image);
    }
}

TEST(jobs_say_what_images_are)
{
    for (int i = 0; i < 50; i++) {
        make_batch(false);
        const tokmap_i_image image = write_image();
        const tokmap_i_expand_job job = tokmap_i_image_job(&image, &now.shape);
        const tokmap_i_expand_job wanted = {.n_rows = now.shape.n_rows,
                                            .length = now.shape.length,
                                            .n_tiles = (now.shape.length + TILE - 1) / TILE,
                                            .boundaries = image.boundaries,
                                            .tile_boundaries = image.tile_boundaries,
                                            .n_boundaries = now.n_boundaries};
        CHECK(memcmp(&job, &wanted, sizeof job) == 0);
        close_image(&image);
    }
}

/* ---- Refusals ---- */

TEST(more_documents_than_there_is_room_for_are_refused)
{
    for (int i = 0; i < 300; i++) {
        do
            make_batch(false);
        while (!now.shape.has_documents);
        now.shape.max_boundaries = check_below(now.n_boundaries);
        tokmap_i_image image = open_image();
        CHECK(!tokmap_i_image_begin(&image, &now.shape, now.rows));
        CHECK_EQ(image.n_boundaries, now.n_boundaries);
        close_image(&image);
        now.shape.max_boundaries = now.n_boundaries;
        image = write_image();
        CHECK_EQ(image.n_boundaries, now.n_boundaries);
        close_image(&image);
    }
}
