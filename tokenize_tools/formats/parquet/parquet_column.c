/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/parquet_column.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "system/platform.h"
#include "system/platform_thread.h"

/* ---- Pages, read ahead ---- */

typedef struct slot {
    parquet_page_place place;
    parquet_page page;
    bool ready, failed;
    failure err;
} slot;

typedef struct parquet_pages { /* of the column, read ahead by threads */
    parquet_column_options options;
    tokmap_i_mutex mutex;
    tokmap_i_condition room, ready; /* signalled when a slot became free; when one became ready */
    parquet_scan scan;
    parquet_page_place pending; /* found, but not taken, if `has_pending` */
    uint64_t asked;             /* up to which the file is read ahead */
    bool has_pending, at_end, stopping;
    slot *slots; /* a ring: taken pages, in order */
    size_t n_slots;
    uint64_t n_taken, n_handed_out; /* pages */
    uint64_t n_held;                /* handed out and not released, without the dictionary */
    uint64_t in_use;                /* bytes of taken pages that were not released */
    uint64_t n_large;               /* pages that were taken alone */
    parquet_page_reader reader;     /* without threads */
    tokmap_i_thread *threads;
    unsigned n_threads; /* that were started */
} parquet_pages;

/* ---- Taking pages: with the mutex ---- */

/* A page must fit together with the dictionary of its column chunk. */
static bool fits_at_all(const parquet_pages *p, const parquet_page_place *place, failure *err)
{
    const uint64_t use = parquet_page_use(place) + place->dictionary_use;
    const uint64_t have = p->options.memory_bytes * 2, mib = (uint64_t)1 << 20;
    char why[200];
    if (use <= have)
        return true;
    const double needed = (double)use * (double)p->options.memory_option / (double)have;
    snprintf(why, sizeof why,
             "reading it takes %" PRIu64 " MiB of memory, and %" PRIu64
             " MiB are allowed: use --memory %" PRIu64 "M or more threads (-j)",
             use / mib + 1, have / mib, (uint64_t)(needed / 1e6) + 1);
    return parquet_page_fail(place, why, err);
}

/* Finds the page that is taken next. False: there is none. */
static bool find_pending(parquet_pages *p)
{
    failure err;
    if (p->has_pending || p->at_end)
        return p->has_pending;
    const int found = parquet_scan_next(&p->scan, &p->pending, &err);
    p->has_pending = found > 0 && fits_at_all(p, &p->pending, &err);
    p->at_end = !p->has_pending;
    if (p->has_pending) /* the pages of a column chunk follow one another */
        tokmap_i_file_read_ahead(p->pending.file->fd, p->pending.offset,
                                 p->scan.end - p->pending.offset, &p->asked);
    if (p->at_end)
        tokmap_i_condition_signal(&p->ready);
    if (p->at_end && found != 0) { /* an error comes after the pages before it */
        slot *s = &p->slots[p->n_taken++ % p->n_slots];
        s->place = (parquet_page_place){0};
        s->ready = s->failed = true;
        s->err = err;
    }
    return p->has_pending;
}

/* If no page but the dictionary is in memory, then there is room. */
static bool has_room(const parquet_pages *p)
{
    const bool alone = p->n_taken == p->n_handed_out && p->n_held == 0;
    return alone || p->in_use + parquet_page_use(&p->pending) <= p->options.memory_bytes;
}

/* Gives the mutex up while it reads. */
static void read_pending(parquet_pages *p, parquet_page_reader *reader)
{
    slot *s = &p->slots[p->n_taken++ % p->n_slots];
    const uint64_t use = parquet_page_use(&p->pending);
    s->place = p->pending;
    s->ready = false;
    p->has_pending = false;
    p->in_use += use;
    p->n_large += use > p->options.memory_bytes;
    tokmap_i_mutex_unlock(&p->mutex);
    const bool ok = parquet_page_read(&s->page, &s->place, reader, &s->err);
    tokmap_i_mutex_lock(&p->mutex);
    s->failed = !ok;
    s->ready = true;
    p->at_end = p->at_end || !ok;
    tokmap_i_condition_signal(&p->ready);
}

static void *read_pages(void *context)
{
    parquet_pages *p = context;
    parquet_page_reader reader = {0};
    tokmap_i_thread_name("tokmap-pages");
    tokmap_i_mutex_lock(&p->mutex);
    while (!p->stopping && !p->at_end) {
        const bool has_slot = p->n_taken - p->n_handed_out < p->n_slots;
        if (!has_slot || (find_pending(p) && !has_room(p)))
            tokmap_i_condition_wait(&p->room, &p->mutex);
        else if (p->has_pending)
            read_pending(p, &reader);
    }
    tokmap_i_condition_broadcast(&p->room);
    tokmap_i_mutex_unlock(&p->mutex);
    parquet_page_reader_free(&reader);
    return NULL;
}

/* If not all threads can be started, fewer do the work. */
static bool start_threads(parquet_pages *p, failure *err)
{
    int sys_errno = 0;
    while (!sys_errno && p->n_threads < p->options.n_threads) {
        sys_errno = tokmap_i_thread_start(&p->threads[p->n_threads], read_pages, p);
        p->n_threads += !sys_errno;
    }
    return p->n_threads > 0 || p->options.n_threads == 0 ||
           fail_system(err, sys_errno, "cannot start a thread");
}

/* ---- Handing out ---- */

/* Moves the next page to *page, for pages_release. Before it waits for a page, the caller
 * must have released all but a dictionary of the same row group. 1, 0 at the end, or -1. */
static int pages_next(parquet_pages *p, parquet_page *page, parquet_page_place *place, failure *err)
{
    int result = 0;
    if (p->n_threads == 0 && !start_threads(p, err))
        return -1;
    tokmap_i_mutex_lock(&p->mutex);
    slot *s = &p->slots[p->n_handed_out % p->n_slots];
    if (p->n_threads) {
        while (!(p->n_handed_out < p->n_taken && s->ready) &&
               !(p->at_end && p->n_handed_out == p->n_taken))
            tokmap_i_condition_wait(&p->ready, &p->mutex);
    } else if (find_pending(p)) {
        read_pending(p, &p->reader);
    }
    if (p->n_handed_out < p->n_taken) {
        result = s->failed ? -1 : 1;
        if (s->failed)
            *err = s->err;
        if (result > 0) {
            *page = s->page;
            *place = s->place;
            s->page = (parquet_page){0};
            p->n_handed_out++;
            p->n_held += !parquet_page_is_dictionary(place);
            tokmap_i_condition_signal(&p->room);
        }
    }
    tokmap_i_mutex_unlock(&p->mutex);
    return result;
}

/* Frees a page, whose memory counts as used until then. */
static void pages_release(parquet_pages *p, parquet_page *page, const parquet_page_place *place)
{
    if (!page->memory)
        return;
    parquet_page_free(page);
    tokmap_i_mutex_lock(&p->mutex);
    p->in_use -= parquet_page_use(place);
    p->n_held -= !parquet_page_is_dictionary(place);
    tokmap_i_condition_broadcast(&p->room);
    tokmap_i_mutex_unlock(&p->mutex);
}

typedef struct column_reader {
    parquet_column base;
    const parquet_file *file;
    const parquet_element *column;
    parquet_pages pages;
    parquet_page page, dictionary_page;
    parquet_page_place place, dictionary_place;
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
    parquet_pages *p = &c->pages;
    c->file = f;
    c->column = column;
    c->base.n_values = rows.begin;
    p->options = *options;
    p->n_slots = options->n_threads ? (size_t)options->n_threads * 2 + 2 : 1;
    p->slots = calloc(p->n_slots, sizeof *p->slots);
    p->threads = calloc(options->n_threads + 1, sizeof *p->threads);
    tokmap_i_mutex_init(&p->mutex);
    tokmap_i_condition_init(&p->room);
    tokmap_i_condition_init(&p->ready);
    parquet_scan_begin(&p->scan, f, column, rows);
    if (p->slots && p->threads)
        return &c->base;
    parquet_column_close(&c->base);
    fail_memory(err);
    return NULL;
}

static void drop_dictionary(column_reader *c)
{
    parquet_dictionary_free(&c->dictionary);
    pages_release(&c->pages, &c->dictionary_page, &c->dictionary_place);
    c->base.dictionary_checksum = 0;
}

void parquet_column_close(parquet_column *base)
{
    column_reader *c = (column_reader *)base;
    if (!c)
        return;
    parquet_pages *p = &c->pages;
    parquet_values_free(&c->values);
    drop_dictionary(c);
    pages_release(p, &c->page, &c->place);
    tokmap_i_mutex_lock(&p->mutex);
    p->stopping = true;
    tokmap_i_condition_broadcast(&p->room);
    tokmap_i_mutex_unlock(&p->mutex);
    for (unsigned i = 0; i < p->n_threads; i++)
        tokmap_i_thread_join(p->threads[i]);
    for (size_t i = 0; p->slots && i < p->n_slots; i++)
        parquet_page_free(&p->slots[i].page);
    parquet_page_reader_free(&p->reader);
    parquet_scan_free(&p->scan);
    tokmap_i_condition_free(&p->ready);
    tokmap_i_condition_free(&p->room);
    tokmap_i_mutex_free(&p->mutex);
    free(p->threads);
    free(p->slots);
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
    pages_release(&c->pages, &c->page, &c->place);
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
        c->dictionary_page = page;
        c->dictionary_place = place;
        c->base.dictionary_checksum = c->pending = page.checksum;
        const char *why =
            parquet_dictionary_begin(&c->dictionary, c->column, &place.header, page.bytes);
        if (why && !parquet_page_fail(&place, why, err))
            return -1;
        result = pages_next(&c->pages, &page, &place, err);
    }
    if (result == 0) /* threads take no more pages */
        c->base.n_large = c->pages.n_large;
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
