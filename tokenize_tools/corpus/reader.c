/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/arrow_reader.h"
#include "corpus/parquet_reader.h"
#include "corpus/reader_kind.h"
#include "corpus/tar_header.h"
#include "corpus/tar_reader.h"
#include "corpus/text_reader.h"
#include "text/exact_number.h"

/* Tar is recognized whatever the format is: it holds files of that format. */
static bool choose_tar(const corpus_options *options, const uint8_t *head, size_t n_bytes)
{
    (void)options;
    return n_bytes >= TAR_BLOCK_BYTES && tar_is_header(head);
}

static bool choose_arrow(const corpus_options *options, const uint8_t *head, size_t n_bytes)
{
    return options->format == CORPUS_ARROW ||
           (options->format == CORPUS_AUTO && arrow_is_magic(head, n_bytes));
}

/* The kinds of files that are read as a stream of plain bytes, by the first ones. What is of no
 * other kind is text. */
static const struct {
    bool (*choose)(const corpus_options *options, const uint8_t *head, size_t n_bytes);
    reader *(*open)(const corpus_options *options, const window *w, failure *err);
} stream_kinds[] = {{choose_arrow, arrow_reader_open}, {choose_tar, tar_reader_open}};

static reader *open_stream(const corpus_options *options, window *w, failure *err)
{
    while (window_size(w) < TAR_BLOCK_BYTES && !w->at_end) {
        if (!window_fill(w, err))
            return NULL;
    }
    /* What begins in the middle of a file says nothing about it. */
    for (size_t i = 0; !w->part && i < sizeof stream_kinds / sizeof *stream_kinds; i++) {
        if (stream_kinds[i].choose(options, window_text(w), window_size(w)))
            return stream_kinds[i].open(options, w, err);
    }
    return text_reader_open(options, w, err);
}

static reader *open_window(const input_source *source, const corpus_options *options, int stop_fd,
                           failure *err)
{
    window w;
    reader *r = NULL;
    if (window_open(&w, source, options, stop_fd, err))
        r = open_stream(options, &w, err);
    if (!r)
        window_close(&w);
    return r;
}

reader *reader_open(const input_source *source, const corpus_options *options, int stop_fd,
                    failure *err)
{
    int sys_errno;
    const bool parquet = parquet_reader_chooses(source, options, &sys_errno);
    reader *r = NULL;
    if (sys_errno)
        fail_system(err, sys_errno, "cannot read");
    else
        r = parquet ? parquet_reader_open(source, options, stop_fd, err)
                    : open_window(source, options, stop_fd, err);
    if (r && options->fields && !(r->values = calloc(FIELD_LIST_MAX, sizeof *r->values))) {
        fail_memory(err);
        reader_close(r);
        r = NULL;
    }
    if (!r)
        fail_at(err, "%.200s: ", source->path);
    return r;
}

void reader_close(reader *r)
{
    if (!r)
        return;
    r->kind->close(r);
    window_close(&r->window);
    free(r->values);
    free(r);
}

static void set_row(reader *r, uint64_t row)
{
    const field_list *fields = r->options->fields;
    const size_t i = field_list_find(fields, FIELD_ROW, strlen(FIELD_ROW));
    if (i < fields->n_fields)
        r->values[i] = (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = (int64_t)row};
}

static bool check_kept(const reader *r, const reader_text *text, failure *err)
{
    const reader_place place = {.offset = text->offset, .line = text->line};
    char spot[320];
    size_t i = 0;
    while (i < r->options->n_kept && number_is_storable(&text->values[i]))
        i++;
    if (i == r->options->n_kept)
        return true;
    reader_describe(r, place, text->offset, spot, sizeof spot);
    fail(err,
         "--meta: the number in field %.100s is neither a signed integer of 64 bits nor "
         "exactly a float64; leave the field out of --meta",
         r->options->fields->names[i]);
    return fail_at(err, "%s: ", spot);
}

reader_result reader_next(reader *r, reader_text *text, failure *err)
{
    *text = (reader_text){0};
    reader_result result = r->kind->next(r, text, err);
    if (result >= READER_TEXT && text->values) {
        set_row(r, r->kind->row ? r->kind->row(r) : text->line);
        if (r->options->where && !where_holds(r->options->where, text->values))
            result = READER_FILTERED;
        else if (result == READER_TEXT && !check_kept(r, text, err))
            result = READER_FAILED;
    }
    if (result == READER_FAILED)
        fail_at(err, "%.200s: ", r->window.name);
    return result;
}

void reader_keep(reader *r, size_t n_bytes)
{
    r->kind->keep(r, n_bytes);
}

bool reader_skip(reader *r, reader_raw *raw, failure *err)
{
    return r->kind->skip(r, raw, err) || fail_at(err, "%.200s: ", r->window.name);
}

int reader_seek(reader *r, reader_place to, uint64_t max_bytes, failure *err)
{
    r->resumed = to.n_records > 0;
    const int result = r->kind->seek(r, to, max_bytes, err);
    if (result < 0)
        fail_at(err, "%.200s: ", r->window.name);
    return result;
}

reader_place reader_where(const reader *r)
{
    return r->kind->where(r);
}

void reader_describe(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes)
{
    r->kind->describe(r, place, offset, text, text_bytes);
}

bool reader_is_archive(const reader *r)
{
    return r->kind->is_archive;
}

uint64_t reader_n_begun(const reader *r)
{
    return r->kind->n_begun ? r->kind->n_begun(r) : 0;
}

void reader_want(reader *r, uint64_t n)
{
    r->kind->want(r, n);
}

corpus_format reader_format(const reader *r)
{
    return r->format;
}

uint64_t reader_n_records(const reader *r)
{
    return r->kind->n_records ? r->kind->n_records(r) : READER_UNKNOWN;
}

void reader_note_fields(const reader *r)
{
    if (r->options->note && r->kind->note_fields && !r->resumed)
        r->kind->note_fields(r);
}

void reader_summarize(const reader *r, reader_summary *summary)
{
    const char *codec = r->window.stream ? stream_codec(r->window.stream) : NULL;
    *summary = (reader_summary){.n_records = reader_n_records(r)};
    snprintf(summary->codec, sizeof summary->codec, "%s", codec ? codec : "");
    if (r->kind->summarize)
        r->kind->summarize(r, summary);
}

input_prefix reader_stored(const reader *r)
{
    return r->kind->stored(r);
}
