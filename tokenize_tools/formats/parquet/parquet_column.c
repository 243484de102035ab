/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/parquet_column.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "system/platform.h"

/* ---- Pages ---- */

typedef struct parquet_pages { /* of the column */
    parquet_column_options options;
    parquet_scan scan;
    parquet_page_reader reader;
    uint64_t asked;    /* up to which the file is read ahead */
    uint64_t reserved; /* memory */
} parquet_pages;

/* Takes the memory that a page needs together with the dictionary of its column chunk. */
static bool take_memory(parquet_pages *p, const parquet_page_place *place, failure *err)
{
    const uint64_t use = parquet_page_use(place) + place->dictionary_use;
    const uint64_t have = p->options.memory_bytes * 2, mib = (uint64_t)1 << 20;
    char why[200];
    if (use > have) {
        const double needed = (double)use * (double)p->options.memory_option / (double)have;
        snprintf(why, sizeof why,
                 "reading it takes %" PRIu64 " MiB of memory, and %" PRIu64
                 " MiB are allowed: use --memory %" PRIu64 "M or more threads (-j)",
                 use / mib + 1, have / mib, (uint64_t)(needed / 1e6) + 1);
        return parquet_page_fail(place, why, err);
    }
    if (use <= p->reserved)
        return true;
    if (p->options.grow && !p->options.grow(p->options.context, use - p->reserved))
        return fail_system(err, ECANCELED, "cannot read");
    p->reserved = use;
    return true;
}

/* 1: the next page, for parquet_page_free; 0 at the end; or -1. */
static int pages_next(parquet_pages *p, parquet_page *page, parquet_page_place *place, failure *err)
{
    const int found = parquet_scan_next(&p->scan, place, err);
    if (found <= 0)
        return found;
    if (!take_memory(p, place, err))
        return -1;
    /* the pages of a column chunk follow one another */
    tokmap_i_file_read_ahead(place->file->fd, place->offset, p->scan.end - place->offset,
                             &p->asked);
    *page = (parquet_page){0};
    if (parquet_page_read(page, place, &p->reader, err))
        return 1;
    parquet_page_free(page);
    return -1;
}

/* ---- Values ---- */

typedef struct column_reader {
    parquet_column base;
    const parquet_file *file;
    const parquet_element *column;
    parquet_pages pages;
    parquet_page page, dictionary_page;
    parquet_page_place place;
    parquet_dictionary dictionary;
    parquet_values values;
    bool has_page;
    uint64_t sum;     /* of the checksums of all pages that were begun */
    uint64_t pending; /* the checksum of a dictionary whose chunk has not begun */
} column_reader;

parquet_column *parquet_column_open(const parquet_file *f, const parquet_element *column,
                                    parquet_rows rows, const parquet_column_options *options,
                                    failure *err)
{
    column_reader *c = calloc(1, sizeof *c);
    if (!c) {
        fail_memory(err);
        return NULL;
    }
    c->file = f;
    c->column = column;
    c->base.n_values = rows.begin;
    c->pages.options = *options;
    parquet_scan_begin(&c->pages.scan, f, column, rows);
    return &c->base;
}

static void drop_dictionary(column_reader *c)
{
    parquet_dictionary_free(&c->dictionary);
    parquet_page_free(&c->dictionary_page);
    c->base.dictionary_checksum = 0;
}

void parquet_column_close(parquet_column *base)
{
    column_reader *c = (column_reader *)base;
    if (!c)
        return;
    parquet_values_free(&c->values);
    drop_dictionary(c);
    parquet_page_free(&c->page);
    parquet_page_reader_free(&c->pages.reader);
    parquet_scan_free(&c->pages.scan);
    free(c);
}

static void fail_value(const column_reader *c, failure *err)
{
    char row[320], column[100];
    if (c->column->max_repetition > 0) {
        parquet_page_fail(&c->place, c->values.why, err);
        return;
    }
    parquet_row_describe(&c->place, c->base.n_values, row, sizeof row);
    parquet_path(&c->file->footer, c->column, column, sizeof column);
    if (c->values.why == parquet_no_memory)
        fail_memory(err);
    else
        fail(err, "column %s: damaged page: %s", column, c->values.why);
    fail_at(err, "%s: ", row);
}

/* The values of the page were read; the dictionary is not needed after the last page of its row
 * group, and its memory may be needed for the next one. */
static void leave_page(column_reader *c)
{
    const uint64_t end = c->place.first_row + c->place.header.n_values;
    const uint64_t end_of_group =
        parquet_values_of_group(&c->file->footer, c->column, c->place.group).end;
    parquet_page_free(&c->page);
    c->has_page = false;
    if (end == end_of_group)
        drop_dictionary(c);
}

/* Rows before the first one that is wanted. */
static bool skip_rows(column_reader *c, failure *err)
{
    tokmap_value value;
    const uint64_t row = c->base.n_values;
    c->base.n_values = c->place.first_row;
    for (; c->base.n_values < row; c->base.n_values++) {
        if (parquet_values_next(&c->values, &value) <= 0) {
            fail_value(c, err);
            return false;
        }
    }
    return true;
}

static int next_page(column_reader *c, failure *err)
{
    parquet_page page;
    parquet_page_place place;
    int result = pages_next(&c->pages, &page, &place, err);
    if (result > 0 && parquet_page_is_dictionary(&place)) {
        parquet_page_free(&c->dictionary_page);
        c->dictionary_page = page;
        c->base.dictionary_checksum = c->pending = page.checksum;
        const char *why =
            parquet_dictionary_begin(&c->dictionary, c->column, &place.header, page.bytes);
        if (why && !parquet_page_fail(&place, why, err))
            return -1;
        result = pages_next(&c->pages, &page, &place, err);
    }
    if (result <= 0)
        return result;
    c->page = page;
    c->place = place;
    c->has_page = true;
    c->sum += page.checksum + c->pending;
    c->pending = 0;
    const bool begun =
        parquet_values_begin(&c->values, c->column, &place.header, page.bytes, &c->dictionary) ||
        parquet_page_fail(&place, c->values.why, err);
    return begun && skip_rows(c, err) ? 1 : -1;
}

int parquet_column_next(parquet_column *base, tokmap_value *value, failure *err)
{
    column_reader *c = (column_reader *)base;
    for (;;) {
        int result = c->has_page ? parquet_values_next(&c->values, value) : 0;
        if (result < 0)
            fail_value(c, err);
        if (result > 0) {
            base->page = &c->place;
            base->checksum = c->sum;
            base->repetition = c->values.repetition;
            base->definition = c->values.definition;
            base->n_values++;
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
