/* SPDX-License-Identifier: Apache-2.0 */
/* Rows gathered into buffers: the scalar code against a loop that reads like the contract, the
 * vector code against the scalar one, and none beyond its bounds. */
#include "support/check.h"

#include <sys/mman.h>

#include "loader/gather.h"

enum {
    MAX_INPUTS = 300, /* of the tests that try all lengths */
    ROOM = 64,        /* before and after the output, with all places in a line of 64 */
    OUT_BYTES = ROOM + 64 + (MAX_INPUTS + 1) * 8 + ROOM,
    UNTOUCHED = 0x5A
};

typedef struct widths {
    uint32_t from, to;
} widths;
static const widths PAIRS[] = {{2, 2}, {2, 4}, {2, 8}, {4, 4}, {4, 8}};

typedef struct way {
    tokmap_i_gather_level level;
    bool streaming;
} way;
static const way WAYS[] = {{TOKMAP_I_GATHER_AVX2, false},
                           {TOKMAP_I_GATHER_AVX2, true},
                           {TOKMAP_I_GATHER_AVX512, false},
                           {TOKMAP_I_GATHER_AVX512, true},
                           {TOKMAP_I_GATHER_SCALAR, true}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void fill_random(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)check_bits();
}

/* A mask whose bytes are 0 half of the time, and otherwise anything. */
static void fill_mask(uint8_t *mask, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mask[i] = check_bits() & 1 ? (uint8_t)check_bits() : 0;
}

static uint64_t token_of(const tokmap_i_gather_row *row, size_t i)
{
    const uint8_t *p = (const uint8_t *)row->tokens + i * row->token_bytes;
    uint64_t x = 0;
    for (unsigned k = 0; k < row->token_bytes; k++)
        x |= (uint64_t)p[k] << 8 * k;
    return x;
}

static uint64_t expected_input(const tokmap_i_gather *g, const tokmap_i_gather_row *row, size_t i)
{
    return i + !g->whole < row->n_tokens ? token_of(row, i) : g->pad_id;
}

static uint64_t expected_label(const tokmap_i_gather *g, const tokmap_i_gather_row *row, size_t i)
{
    const bool counts = i + 1 < row->n_tokens && (!row->mask || row->mask[i]);
    return counts ? token_of(row, i + 1) : (uint64_t)g->ignore;
}

static uint64_t written(const void *out, size_t i, unsigned width)
{
    return width == 2   ? ((const uint16_t *)out)[i]
           : width == 4 ? ((const uint32_t *)out)[i]
                        : ((const uint64_t *)out)[i];
}

static void check_by_contract(const tokmap_i_gather *g)
{
    const uint64_t cut = UINT64_MAX >> (64 - 8 * g->width);
    const size_t n = g->n_inputs + g->whole;
    for (size_t k = 0; k < g->n_rows * n; k++) {
        const tokmap_i_gather_row *row = &g->rows[k / n];
        if (g->inputs)
            CHECK_EQ(written(g->inputs, k, g->width), expected_input(g, row, k % n) & cut);
        if (g->labels)
            CHECK_EQ(written(g->labels, k, g->width), expected_label(g, row, k % n) & cut);
    }
}

/* Outputs of one row with room around them, twice: for the code under test and for the truth. */
static _Alignas(64) uint8_t fast[2][OUT_BYTES + 64 - OUT_BYTES % 64];
static _Alignas(64) uint8_t slow[2][sizeof fast[0]];

static void run_into(uint8_t out[2][sizeof fast[0]], tokmap_i_gather *g, const size_t at[2],
                     way how)
{
    memset(out, UNTOUCHED, sizeof fast);
    g->inputs = out[0] + ROOM + at[0];
    g->labels = g->whole ? NULL : out[1] + ROOM + at[1];
    tokmap_i_gather_run_by(g, how.level, how.streaming);
}

static const way TRUTH = {TOKMAP_I_GATHER_SCALAR, false};

static void compare(tokmap_i_gather *g, const size_t at[2], way how)
{
    if (!tokmap_i_gather_works(how.level))
        return;
    run_into(fast, g, at, how);
    if (memcmp(fast, slow, sizeof fast) != 0)
        CHECK_FAIL("level %d, streaming %d, whole %d, mask %d: %u to %u bytes, %zu inputs, %u "
                   "tokens at %zu, inputs at %zu, labels at %zu",
                   how.level, how.streaming, g->whole, g->rows->mask != NULL, g->rows->token_bytes,
                   g->width, g->n_inputs, g->rows->n_tokens, (uintptr_t)g->rows->tokens % 64, at[0],
                   at[1]);
}

/* 0: whole, 1: inputs and labels, 2: those with a mask */
static void choose_kind(tokmap_i_gather *g, tokmap_i_gather_row *row, unsigned kind,
                        const uint8_t *mask)
{
    g->whole = kind == 0;
    row->mask = kind == 2 ? mask : NULL;
}

static void check_untouched(const uint8_t *out, size_t n_written)
{
    for (size_t i = 0; i < ROOM; i++)
        if (out[i] != UNTOUCHED || out[ROOM + n_written + i] != UNTOUCHED)
            CHECK_FAIL("written outside: %zu before or behind %zu bytes", i, n_written);
}

TEST(scalar_code_does_what_the_contract_says)
{
    static _Alignas(64) uint8_t source[4 * (MAX_INPUTS + 1)], mask[MAX_INPUTS];
    fill_random(source, sizeof source);
    fill_mask(mask, sizeof mask);
    for (size_t n = 1; n <= MAX_INPUTS; n++) {
        for (size_t k = 0; k < 3 * COUNT(PAIRS); k++) {
            tokmap_i_gather_row row = {.tokens = source, .token_bytes = PAIRS[k / 3].from};
            tokmap_i_gather g = {.rows = &row,
                                 .n_rows = 1,
                                 .n_inputs = n,
                                 .width = PAIRS[k / 3].to,
                                 .pad_id = 77,
                                 .ignore = -100};
            choose_kind(&g, &row, k % 3, mask);
            const size_t step = n <= 40 || check_long() ? 1 : 7;
            for (size_t n_lacking = 0; n_lacking < n; n_lacking += step) {
                row.n_tokens = (uint32_t)(n + 1 - n_lacking);
                run_into(slow, &g, (size_t[2]){0}, TRUTH);
                check_by_contract(&g);
                check_untouched(slow[0], (n + g.whole) * g.width);
                check_untouched(slow[1], g.whole ? 0 : n * g.width);
            }
        }
    }
}

/* Each place of the source with each of the inputs; the labels stand elsewhere, or at a like place,
 * where both are written in one pass. The short run takes some of the ways and kinds for each of
 * these, in turn, so that neighbouring lengths and places together have them all. */
static void compare_at_every_alignment(size_t n, widths w, uint8_t *source, const uint8_t *mask)
{
    static size_t cell;
    const size_t n_variants = 3 * COUNT(WAYS);
    for (size_t at = 0; at < 64; at += w.from) {
        tokmap_i_gather_row row = {
            .tokens = source + at, .token_bytes = w.from, .n_tokens = (uint32_t)n + 1};
        tokmap_i_gather g = {
            .rows = &row, .n_rows = 1, .n_inputs = n, .width = w.to, .pad_id = 77, .ignore = -100};
        for (size_t out = 0; out < 64; out += w.to) {
            const size_t n_turns = (check_long() ? n_variants : 4) / (check_sanitized() ? 3 : 1);
            for (size_t turn = 0; turn < n_turns; turn++) {
                const size_t variant = cell++ % n_variants;
                const size_t places[2] = {out, (out + (turn % 2) * 3 * w.to) % 64};
                choose_kind(&g, &row, variant % 3, mask + at);
                run_into(slow, &g, places, TRUTH);
                compare(&g, places, WAYS[variant / 3]);
            }
        }
    }
}

TEST(vector_code_equals_scalar_at_every_length_and_alignment)
{
    static _Alignas(64) uint8_t source[4 * (MAX_INPUTS + 1) + 64], mask[MAX_INPUTS + 64];
    fill_random(source, sizeof source);
    fill_mask(mask, sizeof mask);
    for (size_t n = 1; n <= MAX_INPUTS; n += check_sanitized() && !check_long() ? 3 : 1)
        for (size_t k = 0; k < COUNT(PAIRS); k++)
            compare_at_every_alignment(n, PAIRS[k], source, mask);
}

static void compare_all_ways(tokmap_i_gather *g, tokmap_i_gather_row *row, size_t at,
                             const uint8_t *mask)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        choose_kind(g, row, kind, mask);
        run_into(slow, g, (size_t[2]){at, at}, TRUTH);
        for (size_t i = 0; i < COUNT(WAYS); i++)
            compare(g, (size_t[2]){at, at}, WAYS[i]);
    }
}

TEST(short_rows_of_every_length_are_filled_the_same)
{
    static const size_t LENGTHS[] = {1,  2,  3,  4,  5,  8,  9,  15,  16,  17, 31,
                                     32, 33, 63, 64, 65, 96, 97, 128, 200, 300};
    static _Alignas(64) uint8_t source[4 * (MAX_INPUTS + 1)], mask[MAX_INPUTS];
    fill_random(source, sizeof source);
    fill_mask(mask, sizeof mask);
    for (size_t k = 0; k < COUNT(LENGTHS) * COUNT(PAIRS); k++) {
        const widths w = PAIRS[k % COUNT(PAIRS)];
        const size_t n = LENGTHS[k / COUNT(PAIRS)];
        tokmap_i_gather_row row = {.tokens = source, .token_bytes = w.from};
        tokmap_i_gather g = {.rows = &row,
                             .n_rows = 1,
                             .n_inputs = n,
                             .width = w.to,
                             .pad_id = UINT32_MAX - 1,
                             .ignore = INT64_MIN + 5};
        for (row.n_tokens = 2; row.n_tokens <= n + 1; row.n_tokens++)
            compare_all_ways(&g, &row, (row.n_tokens * w.to) % 64, mask);
    }
}

/* Memory between two pages that must not be accessed. */
static uint8_t *map_guarded(size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK_EQ(n_bytes % page, 0);
    uint8_t *p = mmap(NULL, n_bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    CHECK_INT(mprotect(p + page, n_bytes, PROT_READ | PROT_WRITE), 0);
    return p + page;
}

static void unmap_guarded(uint8_t *p, size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(p - page, n_bytes + 2 * page);
}

typedef struct guarded {
    size_t n_bytes;
    uint8_t *source, *mask, *inputs, *labels;
} guarded;

/* Everything at the very end of its memory, then everything at its very begin. */
static void run_at_both_edges(const guarded *m, tokmap_i_gather g, tokmap_i_gather_row row, way how)
{
    const bool masked = row.mask != NULL;
    const size_t out_bytes = (g.n_inputs + g.whole) * g.width;
    g.rows = &row;
    row.tokens = m->source + m->n_bytes - row.n_tokens * row.token_bytes;
    row.mask = masked ? m->mask + m->n_bytes - g.n_inputs : NULL;
    g.inputs = m->inputs + m->n_bytes - out_bytes;
    g.labels = g.whole ? NULL : m->labels + m->n_bytes - out_bytes;
    tokmap_i_gather_run_by(&g, how.level, how.streaming);
    row.tokens = m->source;
    row.mask = masked ? m->mask : NULL;
    g.inputs = m->inputs;
    g.labels = g.whole ? NULL : m->labels;
    tokmap_i_gather_run_by(&g, how.level, how.streaming);
}

TEST(nothing_beyond_the_row_is_read_and_nothing_beyond_the_outputs_written)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t n_bytes = (8 * (MAX_INPUTS + 1) + page - 1) / page * page;
    const guarded m = {n_bytes, map_guarded(n_bytes), map_guarded(n_bytes), map_guarded(n_bytes),
                       map_guarded(n_bytes)};
    for (size_t k = 0; k < COUNT(PAIRS) * COUNT(WAYS); k++) {
        const widths w = PAIRS[k % COUNT(PAIRS)];
        const way how = WAYS[k / COUNT(PAIRS)];
        for (size_t n = 1; n <= MAX_INPUTS && tokmap_i_gather_works(how.level); n++) {
            tokmap_i_gather g = {.n_rows = 1, .n_inputs = n, .width = w.to};
            tokmap_i_gather_row row = {.token_bytes = w.from};
            for (size_t lacking = 0; lacking < n; lacking += lacking < 70 ? 1 : 37) {
                row.n_tokens = (uint32_t)(n + 1 - lacking);
                choose_kind(&g, &row, (n + lacking) % 3, m.mask);
                run_at_both_edges(&m, g, row, how);
            }
        }
    }
    unmap_guarded(m.source, n_bytes);
    unmap_guarded(m.mask, n_bytes);
    unmap_guarded(m.inputs, n_bytes);
    unmap_guarded(m.labels, n_bytes);
}

/* Many rows anywhere in `source`, with all that may differ from row to row. */
static void choose_rows(tokmap_i_gather_row *rows, size_t n_rows, size_t n_inputs, unsigned width,
                        const uint8_t *source, size_t source_bytes)
{
    for (size_t i = 0; i < n_rows; i++) {
        tokmap_i_gather_row *row = &rows[i];
        row->token_bytes = width == 2 || check_bits() & 1 ? 2 : 4;
        row->n_tokens = (uint32_t)n_inputs + 1;
        if (check_bits() % 4 == 0)
            row->n_tokens = 2 + check_bits() % (uint32_t)n_inputs;
        const size_t n_places = (source_bytes - row->n_tokens * row->token_bytes) / 4;
        row->tokens = source + (size_t)check_bits() % n_places * 4 +
                      (row->token_bytes == 2 && check_bits() & 1 ? 2 : 0);
        row->mask = check_bits() & 1 ? source + check_bits() % (source_bytes - n_inputs) : NULL;
    }
}

static void compare_many_rows(size_t n_rows, size_t n_inputs, unsigned width, bool whole)
{
    const size_t source_bytes = 4 * (n_inputs + 1) + 100000;
    const size_t out_bytes = n_rows * (n_inputs + whole) * width + 64;
    uint8_t *source = malloc(source_bytes), *out[4];
    tokmap_i_gather_row *rows = calloc(n_rows, sizeof *rows);
    fill_random(source, source_bytes);
    for (size_t i = 0; i < source_bytes; i += 3)
        source[i] = 0; /* masks are taken from here, too */
    for (size_t i = 0; i < 4; i++)
        out[i] = malloc(out_bytes);
    choose_rows(rows, n_rows, n_inputs, width, source, source_bytes);
    tokmap_i_gather g = {.rows = rows,
                         .n_rows = n_rows,
                         .n_inputs = n_inputs,
                         .width = width,
                         .whole = whole,
                         .pad_id = 50256,
                         .ignore = -100};
    g.inputs = out[0] + width;
    g.labels = whole ? NULL : out[1] + 2 * width;
    memset(out[0], UNTOUCHED, out_bytes);
    memset(out[1], UNTOUCHED, out_bytes);
    tokmap_i_gather_run_by(&g, TOKMAP_I_GATHER_SCALAR, false);
    check_by_contract(&g);
    g.inputs = out[2] + width;
    g.labels = whole ? NULL : out[3] + 2 * width;
    for (size_t i = 0; i <= COUNT(WAYS); i++) {
        memset(out[2], UNTOUCHED, out_bytes);
        memset(out[3], UNTOUCHED, out_bytes);
        if (i == COUNT(WAYS))
            tokmap_i_gather_run(&g);
        else if (tokmap_i_gather_works(WAYS[i].level))
            tokmap_i_gather_run_by(&g, WAYS[i].level, WAYS[i].streaming);
        else
            continue;
        CHECK(memcmp(out[0], out[2], out_bytes) == 0);
        CHECK(memcmp(out[1], out[3], out_bytes) == 0);
    }
    for (size_t i = 0; i < 4; i++)
        free(out[i]);
    free(rows);
    free(source);
}

TEST(rows_of_both_widths_full_and_short_masked_or_not_share_a_call)
{
    static const size_t LENGTHS[] = {1, 7, 64, 100, 511, 1024, 1025, 4096, 32768, 32769, 70001};
    for (size_t k = 0; k < COUNT(LENGTHS) * 6; k++) {
        const size_t n = LENGTHS[k / 6];
        compare_many_rows(n > 4096 ? 3 : 40, n, 2u << k % 3, k / 3 % 2);
    }
}

TEST(outputs_beyond_the_caches_are_written_the_same)
{
    compare_many_rows(300, 2048, 8, false); /* 9.8 MB */
    compare_many_rows(300, 2048, 8, true);
    compare_many_rows(1500, 2047, 2, false);
}

TEST(fills_are_cut_to_the_width_and_any_mask_byte_but_0_counts)
{
    const uint16_t tokens[5] = {1, 2, 3, 4, 5};
    const uint8_t mask[6] = {0x80, 0, 2, 255, 1, 1};
    const tokmap_i_gather_row row = {tokens, 2, 5, mask};
    uint16_t inputs2[6], labels2[6];
    uint64_t inputs8[6];
    int64_t labels8[6];
    tokmap_i_gather g = {.rows = &row,
                         .n_rows = 1,
                         .n_inputs = 6,
                         .width = 2,
                         .inputs = inputs2,
                         .labels = labels2,
                         .pad_id = 0xFFFF1234,
                         .ignore = -100};
    tokmap_i_gather_run(&g);
    CHECK(memcmp(inputs2, (uint16_t[]){1, 2, 3, 4, 0x1234, 0x1234}, sizeof inputs2) == 0);
    CHECK(memcmp(labels2, (uint16_t[]){2, 0xFF9C, 4, 5, 0xFF9C, 0xFF9C}, sizeof labels2) == 0);
    g.width = 8;
    g.inputs = inputs8;
    g.labels = labels8;
    tokmap_i_gather_run(&g);
    CHECK_EQ(inputs8[3], 4);
    CHECK_EQ(inputs8[4], 0xFFFF1234);
    CHECK(memcmp(labels8, (int64_t[]){2, -100, 4, 5, -100, -100}, sizeof labels8) == 0);
}

TEST(inputs_alone_labels_alone_and_no_rows_at_all)
{
    static const uint32_t tokens[4] = {10, 11, 12, UINT32_MAX};
    const tokmap_i_gather_row row = {tokens, 4, 4, NULL};
    uint64_t out[4] = {7, 7, 7, 7};
    tokmap_i_gather g = {.rows = &row, .n_rows = 0, .n_inputs = 3, .width = 8, .inputs = out};
    tokmap_i_gather_run(&g);
    CHECK(memcmp(out, (uint64_t[]){7, 7, 7, 7}, sizeof out) == 0);
    g.n_rows = 1;
    tokmap_i_gather_run(&g);
    CHECK(memcmp(out, (uint64_t[]){10, 11, 12, 7}, sizeof out) == 0);
    g.inputs = NULL;
    g.labels = out;
    tokmap_i_gather_run(&g);
    CHECK(memcmp(out, (uint64_t[]){11, 12, UINT32_MAX, 7}, sizeof out) == 0);
    g.labels = NULL;
    tokmap_i_gather_run(&g);
    CHECK(memcmp(out, (uint64_t[]){11, 12, UINT32_MAX, 7}, sizeof out) == 0);
}
