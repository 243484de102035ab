/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

reader *reader_new(const reader *begin, failure *err)
{
    reader *r = calloc(1, begin->kind->reader_bytes);
    tokmap_value *values = begin->options->fields ? calloc(FIELD_LIST_MAX, sizeof *values) : NULL;
    if (!r || (begin->options->fields && !values)) {
        free(r);
        free(values);
        fail_memory(err);
        return NULL;
    }
    *r = *begin;
    r->inner = r;
    r->values = values;
    r->n_in_all = READER_UNKNOWN;
    if (r->kind->open(r, err))
        return r;
    r->window = (window){0};
    r->fd = -1;
    reader_close(r);
    return NULL;
}

void reader_close(reader *r)
{
    if (!r)
        return;
    if (r->kind->close)
        r->kind->close(r);
    if (r->inner != r)
        reader_close(r->inner);
    window_close(&r->window);
    free(r->values);
    free(r->marked.bytes);
    free(r->marked.ranges);
    free(r);
}

/* Puts the name, and the byte if the content is wrong, before the text. */
static bool name_place(const reader *r, failure *err)
{
    const window *w = &r->inner->window;
    if (r->names_byte && err->status <= 0)
        return fail_at(err, "%.200s: byte %" PRIu64 ": ", w->name, w->offset);
    return fail_in_file(err, w->name);
}

bool reader_check_where(const reader_options *o, const tokmap_value_type *types, failure *err)
{
    return !o->where || where_check_types(o->where, types, err) ||
           fail(err, "--where: character %" PRIu64 ": %s", err->place, err->text);
}

void reader_note_decimal(const reader *r, size_t field, int32_t scale)
{
    const reader_options *o = r->options;
    char text[640];
    if (field >= o->n_kept || scale == 0)
        return;
    snprintf(text, sizeof text,
             "%.200s: --meta: the field %.200s has decimals; the nearest float64 of each is kept",
             r->window.name, o->fields->names[field]);
    o->note(o->context, text);
}

void reader_report(const reader *r, const char *format, ...)
{
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->options->report)
        r->options->report(r->options->context, text);
}

/* Returns which field it is, or that there is none. */
static size_t set_row(reader *r, const field_list *fields, uint64_t line)
{
    /* A line is the number of a record, except where that may have several. */
    const bool is_table = r->format == CORPUS_CSV || r->format == CORPUS_TSV;
    const uint64_t row = is_table || reader_is_archive(r) ? r->inner->n_records - 1 : line;
    const size_t i = field_list_find(fields, FIELD_ROW, strlen(FIELD_ROW));
    if (i == fields->n_fields)
        return WHERE_NO_FIELD;
    r->inner->values[i] = (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = (int64_t)row};
    return i;
}

/* Whether options->where leaves the record out by its number alone: its fields were not read. */
static bool is_left_out_unread(reader *r, const document *d)
{
    const reader_options *o = r->options;
    if (!d->is_long || d->values || !o->where)
        return false;
    const size_t row = set_row(r, o->fields, d->line);
    return where_fails_by(o->where, row, r->inner->values);
}

static bool check_kept(const reader *r, const document *d, failure *err)
{
    const reader_place place = {.offset = d->offset, .line = d->line};
    char spot[320];
    size_t i = 0;
    while (i < r->options->n_kept && number_is_storable(&d->values[i]))
        i++;
    if (i == r->options->n_kept)
        return true;
    reader_describe(r, place, d->offset, spot, sizeof spot);
    const char *name = r->options->fields->names[i];
    const bool is_table = reader_is_table(r);
    fail(err,
         "--meta: the number in field %.100s is neither a signed integer of 64 bits nor "
         "exactly a float64; %s%.*s%s",
         name, is_table ? "--meta-text " : "leave the field out of --meta", is_table ? 100 : 0,
         name, is_table ? " keeps the values of this column as strings" : "");
    return fail_at(err, "%s: ", spot);
}

reader_result reader_next(reader *r, document *d, failure *err)
{
    const field_list *fields = r->options->fields;
    *d = (document){0};
    reader_result result = r->kind->next(r, d, err);
    if (result == READER_NULL && r->options->fields_only) {
        d->text = (const uint8_t *)"";
        result = READER_DOCUMENT;
    }
    if (result == READER_BAD && is_left_out_unread(r, d))
        result = READER_FILTERED;
    if (result == READER_DOCUMENT && fields && !d->values)
        result = fail(err, "is of a format without fields, which --meta or --where needs");
    if (result >= READER_DOCUMENT && fields && d->values) {
        set_row(r, fields, d->line);
        if (r->options->where && !where_holds(r->options->where, d->values))
            result = READER_FILTERED;
        else if (result == READER_DOCUMENT && !check_kept(r, d, err))
            result = READER_FAILED;
    }
    if (result == READER_DOCUMENT && r->options->list)
        result = marked_text_read(&r->marked, r->options, d, err);
    if (result == READER_DOCUMENT && d->n_bytes > r->options->max_document)
        result = reader_refuse_long(r, d);
    if (result == READER_FAILED)
        name_place(r, err);
    return result;
}

bool reader_is_table(const reader *r)
{
    const corpus_format format = reader_format(r);
    return format == CORPUS_CSV || format == CORPUS_TSV;
}

bool reader_list_fields(reader *r, field_list *fields, failure *err)
{
    const bool done = r->kind->list_fields
                          ? r->kind->list_fields(r, fields, err)
                          : fail(err, "is a tar archive, whose fields cannot be listed; name them");
    return done || name_place(r, err);
}

reader_result reader_refuse_long(const reader *r, document *d)
{
#define RAISE_IT(times)                                                                            \
    "longer than --max-document allows; raise it (at most 2G; the run may need " times             \
    " times as much memory)"
    d->reason = r->options->list == LIST_PARTS ? RAISE_IT("16")
                : r->format == CORPUS_TEXT || r->format == CORPUS_LINES
                    ? RAISE_IT("8") ", or use --separator or --lines if the file has many documents"
                    : RAISE_IT("8");
    d->bad_offset = d->offset;
    d->is_long = true;
    return READER_BAD;
}

int reader_seek(reader *r, reader_place to, uint64_t max_bytes, failure *err)
{
    r->resumed = to.n_records > 0;
    const int result = r->kind->seek(r, to, max_bytes, err);
    if (result < 0)
        name_place(r, err);
    return result;
}

reader_place reader_where(const reader *r)
{
    return r->kind->where(r);
}

void reader_describe(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes)
{
    r->inner->kind->describe(r->inner, place, offset, text, text_bytes);
}

bool reader_is_archive(const reader *r)
{
    return r->inner != r;
}

corpus_format reader_format(const reader *r)
{
    return r->format;
}

uint64_t reader_n_records(const reader *r)
{
    return r->n_in_all;
}

void reader_note_fields(const reader *r)
{
    if (r->options->note && r->inner->kind->note_fields && !r->resumed)
        r->inner->kind->note_fields(r->inner);
}

bool reader_lacking(const reader *r, uint64_t *fields)
{
    const bool known = r->inner->kind->lacking && r->options->fields;
    *fields = known ? r->inner->kind->lacking(r->inner) : UINT64_MAX;
    return *fields != UINT64_MAX;
}

bool reader_has_columns(const reader *r)
{
    return r->inner->kind->has_columns;
}

uint64_t reader_lacking_columns(const reader *r)
{
    return r->lacking;
}

bool reader_may_lack(reader *r, size_t field)
{
    if (!(r->options->may_lack >> field & 1))
        return false;
    r->lacking |= (uint64_t)1 << field;
    return true;
}

void reader_note_lacking(const reader *r, size_t field, const char *why)
{
    const reader_options *o = r->options;
    char text[2300];
    snprintf(text, sizeof text, "%.200s: %s", r->window.name, why);
    if (o->missing)
        o->missing(o->context, field, text);
    else
        o->note(o->context, text);
}

void reader_summarize(const reader *r, reader_summary *summary)
{
    const bool is_archive = reader_is_archive(r);
    const char *codec = r->inner->window.codec;
    *summary = (reader_summary){.n_records = reader_n_records(r),
                                .is_array = r->inner->window.change != NULL};
    snprintf(summary->codec, sizeof summary->codec, "%s%s%s", is_archive ? "tar" : "",
             is_archive && codec ? ", " : "", codec ? codec : "");
    if (r->kind->summarize)
        r->kind->summarize(r, summary);
    if (r->options->fields_only)
        *summary->column = 0;
    if (*summary->column)
        summary->why_column =
            strcmp(corpus_field(r->options), "text") == 0 ? "the default" : "named by --field";
}

const input *reader_input(const reader *r)
{
    return r->window.stream ? window_input(&r->window) : NULL;
}

input_prefix reader_stored(const reader *r)
{
    return r->kind->stored ? r->kind->stored(r) : window_stored(&r->inner->window);
}
