/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are copied in turns, beside rows that are written one after another. */
#include "loader/gather_whole.h"
#include "support/check.h"

enum {
    MOST_ROWS = 20,
    MOST_PIECES = 12,
    MOST_TOKENS = 5000,
    SOURCE_BYTES = 200000,
    UNTOUCHED = 0xA5
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static uint8_t source[SOURCE_BYTES], wanted[MOST_ROWS * MOST_TOKENS * 4 + 1],
    copied[MOST_ROWS * MOST_TOKENS * 4 + 1];
static tokmap_piece pieces[MOST_ROWS][MOST_PIECES];
static tokmap_i_gather_row rows[MOST_ROWS];
static tokmap_i_gather g;

static const uint8_t *place_of(size_t n_tokens)
{
    return source + check_bits() % ((SOURCE_BYTES - n_tokens * g.width) / g.width) * g.width;
}

/* Cuts a row into pieces of any length, even 0. */
static void cut(size_t i, size_t n_tokens)
{
    const size_t n = 1 + check_bits() % MOST_PIECES;
    uint32_t at = 0;
    for (size_t k = 0; k < n; k++) {
        const uint32_t left = (uint32_t)n_tokens - at;
        const uint32_t some = k + 1 == n ? left : (uint32_t)(check_bits() % (left + 1));
        pieces[i][k] = (tokmap_piece){
            .tokens = place_of(some), .n_tokens = some, .place = at, .n_inputs = some};
        at += some;
    }
    rows[i].tokens = NULL;
    rows[i].pieces = pieces[i];
    rows[i].n_pieces = n;
}

static void choose(size_t n_rows, size_t n_tokens, unsigned width)
{
    g = (tokmap_i_gather){.rows = rows,
                          .n_rows = n_rows,
                          .n_inputs = n_tokens - 1,
                          .width = width,
                          .whole = true,
                          .inputs = copied};
    for (size_t i = 0; i < n_rows; i++) {
        rows[i] = (tokmap_i_gather_row){.token_bytes = width, .n_tokens = (uint32_t)n_tokens};
        rows[i].tokens = place_of(n_tokens);
        if (check_bits() & 1)
            cut(i, n_tokens);
    }
}

TEST(rows_and_pieces_are_copied_as_by_the_reference)
{
    static const tokmap_i_gather_level LEVELS[] = {TOKMAP_I_GATHER_SCALAR, TOKMAP_I_GATHER_AVX2,
                                                   TOKMAP_I_GATHER_AVX512};
    static const size_t LENGTHS[] = {2, 31, 64, 65, 1025, 2049, 4097, 5000};
    for (size_t i = 0; i < SOURCE_BYTES; i++)
        source[i] = (uint8_t)check_bits();
    for (size_t k = 0; k < COUNT(LENGTHS) * 60; k++) {
        choose(2 + check_bits() % (MOST_ROWS - 1), LENGTHS[k / 60], 2u << k % 2);
        const size_t n_bytes = g.n_rows * (g.n_inputs + 1) * g.width;
        g.inputs = wanted;
        tokmap_i_gather_run_by(&g, TOKMAP_I_GATHER_SCALAR, false);
        g.inputs = copied;
        for (size_t i = 0; i < COUNT(LEVELS); i++) {
            if (!tokmap_i_gather_works(LEVELS[i]))
                continue;
            memset(copied, UNTOUCHED, n_bytes + 1);
            CHECK(tokmap_i_gather_whole_by(&g, LEVELS[i]));
            CHECK_EQ(copied[n_bytes], UNTOUCHED);
            CHECK(memcmp(copied, wanted, n_bytes) == 0);
        }
    }
}

TEST(what_must_be_widened_or_filled_is_left_alone)
{
    choose(3, 100, 2);
    rows[1] = (tokmap_i_gather_row){.token_bytes = 2, .n_tokens = 100, .tokens = source};
    CHECK(tokmap_i_gather_whole(&g));
    memset(copied, UNTOUCHED, sizeof copied);
    const tokmap_i_gather whole = g;
    const tokmap_piece gap[2] = {{.tokens = source, .n_tokens = 50},
                                 {.tokens = source, .n_tokens = 50, .place = 51}};
    const tokmap_i_gather_row other[] = {
        {.token_bytes = 4, .n_tokens = 100, .tokens = source},
        {.token_bytes = 2, .n_tokens = 99, .tokens = source},
        {.token_bytes = 2, .n_tokens = 100, .pieces = gap, .n_pieces = 2},
        {.token_bytes = 2, .n_tokens = 100},
    };
    for (size_t k = 0; k < COUNT(other); k++) {
        rows[1] = other[k];
        CHECK(!tokmap_i_gather_whole(&g));
    }
    rows[1] = rows[0];
    g.n_rows = 1;
    CHECK(!tokmap_i_gather_whole(&g));
    g = whole;
    g.whole = false;
    CHECK(!tokmap_i_gather_whole(&g));
    g = whole;
    g.inputs = NULL;
    CHECK(!tokmap_i_gather_whole(&g));
    for (size_t i = 0; i < sizeof copied; i++)
        CHECK_EQ(copied[i], UNTOUCHED);
}
