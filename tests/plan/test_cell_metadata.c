/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of cells: what pack writes is read, anything else is not, and the metadata of all
 * cells together equals the metadata of a plain pack. */
#include "support/check.h"
#include "support/exact_copy.h"

#include "plan/cell_metadata.h"

#define HEAD "{\"created_by\": \"tokmap\", \"tokenizer\": {\"name\": \"a\\\", \\\"plan\\\": \"}"
#define PLAN                                                                                       \
    ", \"plan\": {\"hash\": \"0123456789abcdef\", \"cell\": 42, "                                  \
    "\"origin\": \"fedcba9876543210\"}}"

static bool reads(const char *json, cell_metadata *m)
{
    size_t n = strlen(json);
    char *copy = exact_copy(json, n);
    bool ok = cell_metadata_read(m, copy, n);
    free(copy);
    return ok;
}

TEST(the_metadata_of_a_cell_is_read)
{
    cell_metadata m;
    CHECK(
        reads(HEAD ", \"counts\": {\"records\": 18446744073709551615, \"bad_bytes\": 0}" PLAN, &m));
    CHECK_EQ(m.hash, 0x0123456789abcdef);
    CHECK_EQ(m.cell, 42);
    CHECK_EQ(m.origin, 0xfedcba9876543210);
    CHECK_EQ(m.head_bytes, strlen(HEAD));
    CHECK_EQ(m.counts.n, 2);
    CHECK_EQ(cell_counts_value(&m.counts, "records"), UINT64_MAX);
    CHECK_EQ(cell_counts_value(&m.counts, "bad_bytes"), 0);
    CHECK_EQ(cell_counts_value(&m.counts, "documents"), 0);
    CHECK(reads(HEAD ", \"counts\": {}" PLAN, &m));
}

TEST(anything_else_is_refused)
{
    static const char *const texts[] = {
        "",
        "{}",
        HEAD "}",
        HEAD ", \"counts\": {\"a\": 1}}",
        HEAD PLAN,
        HEAD ", \"counts\": {\"a\": 1}" PLAN "}",
        HEAD ", \"counts\": {\"a\": 1}" PLAN " ",
        HEAD ", \"counts\": {\"a\": 01}" PLAN,
        HEAD ", \"counts\": {\"a\": -1}" PLAN,
        HEAD ", \"counts\": {\"a\": }" PLAN,
        HEAD ", \"counts\": {\"a\": 18446744073709551616}" PLAN,
        HEAD ", \"counts\": {\"a\": 1, }" PLAN,
        HEAD ", \"counts\": {, \"a\": 1}" PLAN,
        HEAD ", \"counts\": {\"\\u0061\": 1}" PLAN,
        HEAD ", \"counts\": {\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": 1}" PLAN,
        HEAD ", \"counts\": {\"a\":1}" PLAN,
        HEAD ", \"counts\": {\"a\": 1}, \"more\": 1" PLAN,
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcdeF\", \"cell\": 42, "
             "\"origin\": \"fedcba9876543210\"}}",
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcde\", \"cell\": 42, "
             "\"origin\": \"fedcba9876543210\"}}",
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcdef\", \"cell\": 42}}",
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcdef\", \"cell\": , \"origin\": "
             "\"fedcba9876543210\"}}",
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcdef\", \"cell\": 42, "
             "\"origin\": \"fedcba9876543210\", \"bad_xxh3\": \"0123456789abcde\"}}",
        HEAD ", \"counts\": {}, \"plan\": {\"hash\": \"0123456789abcdef\", \"cell\": 42, "
             "\"origin\": \"fedcba9876543210\", }}",
        HEAD ", \"counts\": {\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, \"g\": 1, "
             "\"h\": 1, \"i\": 1, \"j\": 1, \"k\": 1, \"l\": 1, \"m\": 1, \"n\": 1, \"o\": 1, "
             "\"p\": 1, \"q\": 1}" PLAN,
    };
    cell_metadata m;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (reads(texts[i], &m))
            CHECK_FAIL("accepted: %s", texts[i]);
    }
}

TEST(cells_make_the_metadata_of_a_plain_pack)
{
    cell_metadata a, b;
    size_t n;
    const char *first = HEAD ", \"counts\": {\"records\": 5, \"bad_bytes\": 1}" PLAN;
    CHECK(reads(first, &a));
    CHECK(reads(HEAD ", \"counts\": {\"records\": 7, \"bad_bytes\": 0}" PLAN, &b));
    cell_counts sum = {0};
    CHECK(cell_counts_add(&sum, &a.counts) && cell_counts_add(&sum, &b.counts));
    char *json = cell_metadata_join(first, a.head_bytes, &sum, &n);
    CHECK(json != NULL);
    CHECK_EQ(n, strlen(HEAD ", \"counts\": {\"records\": 12, \"bad_bytes\": 1}}"));
    CHECK(memcmp(json, HEAD ", \"counts\": {\"records\": 12, \"bad_bytes\": 1}}", n) == 0);
    free(json);
}

TEST(counts_that_do_not_go_together_are_not_added)
{
    cell_metadata a, b;
    CHECK(reads(HEAD ", \"counts\": {\"records\": 5, \"bad_bytes\": 1}" PLAN, &a));
    CHECK(reads(HEAD ", \"counts\": {\"records\": 5}" PLAN, &b));
    CHECK(!cell_counts_add(&a.counts, &b.counts));
    CHECK(reads(HEAD ", \"counts\": {\"bad_bytes\": 1, \"records\": 5}" PLAN, &b));
    CHECK(!cell_counts_add(&a.counts, &b.counts));
    CHECK(
        reads(HEAD ", \"counts\": {\"records\": 18446744073709551611, \"bad_bytes\": 1}" PLAN, &b));
    CHECK(!cell_counts_add(&a.counts, &b.counts));
}

TEST(what_is_printed_is_read)
{
    static const cell_metadata printed[] = {
        {.hash = 0xfedcba9876543210, .cell = 1048575, .origin = 1},
        {.hash = 1, .cell = 0, .origin = 2},
    };
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        char json[256];
        cell_metadata m;
        snprintf(json, sizeof json, "{\"a\": 1, \"counts\": {\"a\": 2}%s}",
                 cell_metadata_plan(&printed[i]).s);
        CHECK(reads(json, &m));
        CHECK_EQ(m.hash, printed[i].hash);
        CHECK_EQ(m.cell, printed[i].cell);
        CHECK_EQ(m.origin, printed[i].origin);
    }
}
