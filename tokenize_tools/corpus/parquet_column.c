/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/parquet_column.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/parquet_pages.h"

struct parquet_column {
    const parquet_file *file;
    const parquet_element *column;
    parquet_pages *pages;
    parquet_page page, dictionary_page;
    parquet_page_place place, dictionary_place;
    parquet_dictionary dictionary;
    parquet_values values;
    bool has_page, has_value;
    uint64_t row;               /* of the next value */
    uint64_t checksum, pending; /* pending: of a dictionary whose chunk has not begun */
};

parquet_column *parquet_column_open(const parquet_file *f, const parquet_element *column,
                                    parquet_rows rows, const parquet_column_options *options,
                                    failure *err)
{
    parquet_column *c = calloc(1, sizeof *c);
    parquet_pages *pages = c ? parquet_pages_new(f, column, rows, options) : NULL;
    if (!pages) {
        free(c);
        fail_memory(err);
        return NULL;
    }
    c->file = f;
    c->column = column;
    c->pages = pages;
    c->row = rows.begin;
    return c;
}

static void drop_dictionary(parquet_column *c)
{
    parquet_dictionary_free(&c->dictionary);
    parquet_pages_release(c->pages, &c->dictionary_page, &c->dictionary_place);
}

void parquet_column_close(parquet_column *c)
{
    if (!c)
        return;
    parquet_values_free(&c->values);
    drop_dictionary(c);
    parquet_pages_release(c->pages, &c->page, &c->place);
    parquet_pages_free(c->pages);
    free(c);
}

const parquet_page_place *parquet_column_page(const parquet_column *c)
{
    return c->has_value ? &c->place : NULL;
}

uint64_t parquet_column_checksum(const parquet_column *c)
{
    return c->checksum;
}

uint64_t parquet_column_dictionary_checksum(const parquet_column *c)
{
    return c->dictionary_page.checksum;
}

uint64_t parquet_column_n_large(const parquet_column *c)
{
    return parquet_pages_n_large(c->pages);
}

static void fail_value(const parquet_column *c, failure *err)
{
    char row[320], column[100];
    parquet_row_describe(&c->place, c->row, row, sizeof row);
    parquet_path(&c->file->footer, c->column, column, sizeof column);
    if (c->values.why == parquet_no_memory)
        fail_memory(err);
    else
        fail(err, "column %s: damaged page: %s", column, c->values.why);
    fail_at(err, "%s: ", row);
}

/* The values of the page were read; the dictionary is not needed after the last page of its row
 * group, and its memory may be needed for the next one. */
static void leave_page(parquet_column *c)
{
    const parquet_row_group *group = &c->file->footer.groups[c->place.group];
    const uint64_t end = c->place.first_row + c->place.header.n_values;
    parquet_pages_release(c->pages, &c->page, &c->place);
    c->has_page = false;
    if (end == group->first_row + group->n_rows)
        drop_dictionary(c);
}

static bool take_dictionary(parquet_column *c, failure *err)
{
    const char *why = parquet_dictionary_begin(
        &c->dictionary, c->column, &c->dictionary_place.header, c->dictionary_page.bytes);
    c->pending = c->dictionary_page.checksum;
    return !why || parquet_page_fail(&c->dictionary_place, why, err);
}

/* Rows before the first one that is wanted. */
static bool skip_rows(parquet_column *c, failure *err)
{
    tokmap_value value;
    const uint64_t row = c->row;
    c->row = c->place.first_row;
    for (; c->row < row; c->row++) {
        if (parquet_values_next(&c->values, &value) <= 0) {
            fail_value(c, err);
            return false;
        }
    }
    return true;
}

static int next_page(parquet_column *c, failure *err)
{
    parquet_page page;
    parquet_page_place place;
    int result = parquet_pages_next(c->pages, &page, &place, err);
    if (result > 0 && parquet_page_is_dictionary(&place)) {
        c->dictionary_page = page;
        c->dictionary_place = place;
        result = take_dictionary(c, err) ? parquet_pages_next(c->pages, &page, &place, err) : -1;
    }
    if (result <= 0)
        return result;
    c->page = page;
    c->place = place;
    c->has_page = true;
    c->checksum += page.checksum + c->pending;
    c->pending = 0;
    const bool begun =
        parquet_values_begin(&c->values, c->column, &place.header, page.bytes, &c->dictionary) ||
        parquet_page_fail(&place, c->values.why, err);
    return begun && skip_rows(c, err) ? 1 : -1;
}

int parquet_column_next(parquet_column *c, tokmap_value *value, failure *err)
{
    for (;;) {
        int result = c->has_page ? parquet_values_next(&c->values, value) : 0;
        if (result < 0)
            fail_value(c, err);
        if (result > 0) {
            c->has_value = true;
            c->row++;
        }
        if (result != 0)
            return result;
        if (c->has_page)
            leave_page(c);
        result = next_page(c, err);
        if (result <= 0)
            return result;
    }
}
