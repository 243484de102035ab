/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv.c - rows of CSV and TSV that are shown a few bytes at a time. test_csv.py compares their
 * values. */
#include "formats/csv.h"

#include <string.h>

#include "support/check.h"

#define MOST_FIELDS 8

static size_t random_bytes(uint8_t *bytes, size_t most)
{
    static const char letters[] = "\"\"\"\"\"\",,,\n\n\r\r\tab";
    const size_t n = 1 + check_below((uint32_t)most);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)letters[check_below(sizeof letters - 1)];
    return n;
}

static void check_same(const csv_scanner *a, const csv_scanner *b, size_t n_passed)
{
    CHECK_EQ(a->n_fields, b->n_fields);
    CHECK_EQ(a->n_bytes, b->n_bytes + n_passed);
    CHECK_EQ(a->end_bytes, b->end_bytes);
    CHECK_EQ(a->n_newlines, b->n_newlines);
    if (n_passed == 0)
        CHECK(a->wrong == b->wrong && (!a->wrong || a->wrong_at == b->wrong_at));
}

/* Scans rows whole, and with one byte more after each time, and compares. */
static void check_rows(const uint8_t *bytes, size_t n, bool tabs)
{
    csv_field fields[MOST_FIELDS], others[MOST_FIELDS];
    csv_scanner whole = {.tabs = tabs, .fields = fields, .most = MOST_FIELDS};
    csv_scanner grown = {.tabs = tabs, .fields = others, .most = MOST_FIELDS};
    for (size_t at = 0, row; at < n; at += row) {
        const csv_status status = csv_scan(&whole, bytes + at, n - at, true);
        csv_status other = CSV_MORE;
        for (size_t shown = 0; other == CSV_MORE; shown++)
            other = csv_scan(&grown, bytes + at, shown < n - at ? shown : n - at, shown >= n - at);
        CHECK_INT(other, status);
        if (status == CSV_UNCLOSED) {
            CHECK_EQ(whole.open_at, grown.open_at);
            CHECK_EQ(whole.open_newlines, grown.open_newlines);
            return;
        }
        check_same(&whole, &grown, 0);
        const size_t n_fields = whole.n_fields < MOST_FIELDS ? whole.n_fields : MOST_FIELDS;
        for (size_t i = 0; !whole.wrong && i < n_fields; i++)
            CHECK(fields[i].begin == others[i].begin && fields[i].end == others[i].end &&
                  fields[i].doubled == others[i].doubled);
        row = whole.n_bytes + whole.end_bytes;
        csv_pass(&whole, row, true);
        csv_pass(&grown, row, true);
    }
}

TEST(rows_do_not_depend_on_how_many_bytes_are_shown)
{
    uint8_t bytes[64];
    for (int i = 0; i < 100000; i++)
        check_rows(bytes, random_bytes(bytes, sizeof bytes), i & 1);
}

TEST(a_row_that_is_passed_in_pieces_is_the_same_and_so_is_the_next_one)
{
    uint8_t bytes[64];
    csv_field fields[MOST_FIELDS], others[MOST_FIELDS];
    for (int i = 0; i < 100000; i++) {
        const size_t n = random_bytes(bytes, sizeof bytes);
        csv_scanner whole = {.tabs = i & 1, .fields = fields, .most = MOST_FIELDS};
        csv_scanner pieces = {.tabs = i & 1, .fields = others, .most = MOST_FIELDS};
        size_t passed = 0, shown = 0;
        const csv_status status = csv_scan(&whole, bytes, n, true);
        csv_status other = CSV_MORE;
        while (other == CSV_MORE) {
            shown = shown + 1 + check_below(9);
            shown = shown < n - passed ? shown : n - passed;
            other = csv_scan(&pieces, bytes + passed, shown, shown == n - passed);
            /* The last byte may belong to the line end. */
            const size_t pass = other == CSV_MORE && pieces.at > 0 ? pieces.at - 1 : 0;
            csv_pass(&pieces, pass, false);
            passed += pass;
            shown -= pass;
        }
        CHECK_INT(other, status);
        if (status == CSV_UNCLOSED)
            continue;
        check_same(&whole, &pieces, passed);
        const size_t row = whole.n_bytes + whole.end_bytes;
        csv_pass(&whole, row, true);
        csv_pass(&pieces, row - passed, true);
        const csv_status next = csv_scan(&whole, bytes + row, n - row, true);
        CHECK_INT(csv_scan(&pieces, bytes + row, n - row, true), next);
        if (next != CSV_ROW)
            continue;
        check_same(&whole, &pieces, 0);
        CHECK(whole.wrong || fields[0].end == others[0].end);
    }
}
