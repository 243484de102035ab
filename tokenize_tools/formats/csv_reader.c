/* SPDX-License-Identifier: Apache-2.0 */
/* csv_reader.c - CSV and TSV as records; the names and the types of their columns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/json_parts.h"
#include "base/number.h"
#include "formats/csv.h"
#include "formats/format.h"
#include "formats/wrong_file.h"

/* A first row that is larger does not name columns. */
#define MAX_HEADER_BYTES ((size_t)1 << 20)
/* How much of an input is looked at to find the types of its columns. */
#define LOOK_BYTES ((size_t)1 << 20)

typedef struct csv_reader {
    reader base;
    bool begun, has_columns; /* has_columns: else the input is empty */
    csv_columns columns;
    size_t text_column, field_columns[FIELD_LIST_MAX]; /* or CSV_NO_COLUMN */
    /* Bits of fields: of strings; with numbers among their values; without a column. */
    uint64_t text_fields, number_fields;

    csv_scanner row; /* the current one, if at_hand */
    bool at_hand;
    uint64_t line; /* of the current row, else of the next one */
    uint8_t *decoded;
    size_t decoded_capacity;
    char reason[128];
} csv_reader;

static bool open_csv(reader *base, failure *err)
{
    (void)err;
    base->format = base->options->format; /* by the name: when the input has a row */
    return true;
}

static void close_csv(reader *base)
{
    csv_reader *r = (csv_reader *)base;
    csv_columns_free(&r->columns);
    free(r->decoded);
}

/* ---- Rows in the window ---- */

/* Reads on to the end of the row. If it has more than `most` bytes, *status may be CSV_MORE. */
static bool scan_row(csv_reader *r, size_t most, csv_status *status, failure *err)
{
    window *w = &r->base.window;
    for (;;) {
        *status = csv_scan(&r->row, window_text(w), window_size(w), w->at_end);
        /* The last byte may belong to the line end. */
        if (*status != CSV_MORE || r->row.at > most + 1)
            return true;
        if (!window_fill(w, err))
            return false;
    }
}

/* Passes over line ends without a row before them. */
static bool skip_blank_rows(csv_reader *r, failure *err)
{
    window *w = &r->base.window;
    for (;;) {
        if (!window_reach(w, 2, err))
            return false;
        const uint8_t *bytes = window_text(w);
        const size_t n = window_size(w);
        const size_t n_blank = n > 0 && bytes[0] == '\n'                       ? 1
                               : n > 1 && bytes[0] == '\r' && bytes[1] == '\n' ? 2
                                                                               : 0;
        if (n_blank == 0)
            return true;
        window_consume(w, n_blank);
        csv_pass(&r->row, n_blank, true);
        r->line++;
    }
}

static void finish_row(csv_reader *r)
{
    if (!r->at_hand)
        return;
    const size_t n_bytes = r->row.n_bytes + r->row.end_bytes;
    r->line += 1 + r->row.n_newlines;
    window_consume(&r->base.window, n_bytes);
    csv_pass(&r->row, n_bytes, true);
    r->at_hand = false;
}

static bool fail_unclosed(const csv_reader *r, failure *err)
{
    const uint64_t row_offset = r->base.window.offset - r->row.passed;
    return fail(err,
                "line %" PRIu64 ": byte %" PRIu64 ": the input ends within quotes that begin here; "
                "it is truncated, or a quote is missing",
                r->line + r->row.open_newlines + 1, row_offset + r->row.open_at);
}

/* ---- The beginning ---- */

#define NO_TEXT "a table without the column of the text"

/* Refuses a row that has one field, with the separators of another format in it. */
static bool check_separators(const csv_reader *r, failure *err)
{
    const uint8_t *bytes = window_text(&r->base.window);
    const size_t n = r->row.n_bytes;
    const char *why = NULL;
    if (r->row.n_fields != 1)
        return true;
    if (r->row.tabs && memchr(bytes, ',', n))
        why = "has commas between its columns, and no tabs; use --format csv";
    else if (!r->row.tabs && memchr(bytes, '\t', n))
        why = "has tabs between its columns, and no commas; use --format tsv";
    else if (memchr(bytes, ';', n))
        why = "has semicolons between its columns; write it with commas, as RFC 4180 says";
    if (!why)
        return true;
    fail(err, "%s", why);
    return fail_kind(err, NO_TEXT);
}

/* Reads the names of the columns from the first row, or those that are given. */
static bool read_header(csv_reader *r, failure *err)
{
    window *w = &r->base.window;
    const char *given = r->base.options->columns;
    csv_status status;
    if (!scan_row(r, MAX_HEADER_BYTES, &status, err))
        return false;
    if (given) {
        const bool done = csv_columns_given(&r->columns, given, err) &&
                          (status != CSV_ROW || r->columns.n < 2 || check_separators(r, err));
        r->row = (csv_scanner){.tabs = r->row.tabs}; /* the row is read again */
        return done;
    }
    const bool is_row = status == CSV_ROW && r->row.n_bytes <= MAX_HEADER_BYTES;
    if (is_row && r->row.wrong && !check_separators(r, err))
        return false;
    if (!is_row || r->row.wrong) {
        fail(err, "line %" PRIu64 ": byte %" PRIu64 ": %s, in the row that names the columns",
             r->line + 1, w->offset + (is_row ? r->row.wrong_at : 0),
             is_row                   ? r->row.wrong
             : status == CSV_UNCLOSED ? "a quote that is not closed"
                                      : "more than 1 MiB");
        return fail_kind(err, NO_TEXT);
    }
    if (!csv_columns_read(&r->columns, window_text(w), &r->row, err))
        return false;
    const reader_options *o = r->base.options;
    bool is_found =
        !o->fields_only && csv_columns_find(&r->columns, corpus_field(o)) != CSV_NO_COLUMN;
    for (size_t i = 0; o->fields_only && o->fields && i < o->fields->n_fields; i++)
        is_found |= csv_columns_find(&r->columns, o->fields->names[i]) != CSV_NO_COLUMN;
    if (!is_found && !check_separators(r, err))
        return false;
    r->at_hand = true;
    finish_row(r);
    return true;
}

static void list_columns(const csv_columns *c, const char *begin, failure *err)
{
    enum {
        MOST_LISTED = 20
    };
    size_t n = strlen(err->text);
    for (size_t i = 0, n_listed = 0; i < c->n && i < MOST_LISTED; i++) {
        const csv_name *name = &c->names[i];
        if (csv_name_is_plain(name))
            n += (size_t)snprintf(err->text + n, sizeof err->text - n, "%s%.*s",
                                  n_listed++ ? ", " : begin, (int)name->n_bytes,
                                  (const char *)name->text);
    }
}

static void say_lacking(const csv_reader *r, size_t field, failure *err)
{
    fail(err, "it has no column \"%.100s\"", r->base.options->fields->names[field]);
    list_columns(&r->columns, "; it has ", err);
}

static bool choose_columns(csv_reader *r, failure *err)
{
    const reader_options *o = r->base.options;
    const char *field = corpus_field(o);
    r->text_column = o->fields_only ? CSV_NO_COLUMN : csv_columns_find(&r->columns, field);
    if (r->text_column == CSV_NO_COLUMN && !o->fields_only) {
        fail(err, "it has no column \"%.100s\"", field);
        list_columns(&r->columns, "; use --field with one of ", err);
        return fail_kind(err, NO_TEXT);
    }
    for (size_t i = 0; o->fields && i < o->fields->n_fields; i++) {
        const char *name = o->fields->names[i];
        const bool is_row = strcmp(name, FIELD_ROW) == 0;
        r->field_columns[i] = is_row ? CSV_NO_COLUMN : csv_columns_find(&r->columns, name);
        if (is_row || r->field_columns[i] != CSV_NO_COLUMN || reader_may_lack(&r->base, i))
            continue;
        say_lacking(r, i, err);
        return fail_kind(err, "a table without the column");
    }
    r->row.fields = r->columns.fields;
    r->row.most = r->columns.n;
    return true;
}

static bool is_number(const uint8_t *bytes, const csv_field *f)
{
    json_number state = NUMBER_BEGINS;
    for (size_t i = f->begin; i < f->end; i++)
        if (!json_number_step(&state, bytes[i]))
            return false;
    return json_number_may_end(state);
}

static void look_at_values(csv_reader *r, const uint8_t *bytes)
{
    for (size_t i = 0; i < r->base.options->fields->n_fields; i++) {
        const size_t column = r->field_columns[i];
        if (column == CSV_NO_COLUMN)
            continue;
        const csv_field *f = &r->columns.fields[column];
        if (f->begin < f->end)
            *(is_number(bytes, f) ? &r->number_fields : &r->text_fields) |= (uint64_t)1 << i;
    }
}

/* Finds the types of the columns by the first rows, unless they are known. */
static bool choose_types(csv_reader *r, failure *err)
{
    const reader_options *o = r->base.options;
    window *w = &r->base.window;
    r->text_fields = o->text_fields;
    if (!o->fields || o->types_known)
        return true;
    if (!window_reach(w, LOOK_BYTES, err))
        return false;
    const bool is_all = window_size(w) <= LOOK_BYTES && w->at_end;
    const size_t n_bytes = window_size(w) < LOOK_BYTES ? window_size(w) : LOOK_BYTES;
    csv_scanner s = {.tabs = r->row.tabs, .fields = r->columns.fields, .most = r->columns.n};
    for (size_t at = 0, n; at < n_bytes; at += n) {
        const uint8_t *row = window_text(w) + at;
        if (csv_scan(&s, row, n_bytes - at, is_all) != CSV_ROW)
            break;
        if (!s.wrong && s.n_fields == r->columns.n)
            look_at_values(r, row);
        n = s.n_bytes + s.end_bytes;
        csv_pass(&s, n, true);
    }
    return true;
}

/* Checks the input, and reads its first row. An empty input has no columns, and no format by its
 * name. */
static bool begin_input(csv_reader *r, failure *err)
{
    reader *base = &r->base;
    const reader_options *o = base->options;
    window *w = &base->window;
    static const uint8_t byte_order_mark[] = {0xef, 0xbb, 0xbf};
    if (r->begun)
        return true;
    r->begun = true;
    if (!window_reach(w, wrong_file_head_bytes(o), err))
        return false;
    const wrong_file_head head = wrong_file_head_of(w, o);
    if (!wrong_file_check(&head, o, err))
        return wrong_file_strip(o, err);
    if (window_size(w) >= sizeof byte_order_mark &&
        memcmp(window_text(w), byte_order_mark, sizeof byte_order_mark) == 0)
        window_consume(w, sizeof byte_order_mark);
    const corpus_format format = o->format == CORPUS_AUTO ? wrong_name_table(w->name) : o->format;
    r->row.tabs = format == CORPUS_TSV;
    if (!skip_blank_rows(r, err))
        return false;
    if (window_size(w) == 0)
        return true;
    base->format = format;
    r->has_columns = true;
    if (o->list)
        return fail(err, "is a table of text, which has no lists: must be JSON lines");
    return read_header(r, err) && choose_columns(r, err) && choose_types(r, err);
}

/* ---- Records ---- */

/* Passes over a row that is too long. */
static bool pass_long(csv_reader *r, document *d, csv_status *status, failure *err)
{
    window *w = &r->base.window;
    while (*status == CSV_MORE) {
        /* The last byte may belong to the line end. */
        const size_t n = r->row.at > 0 ? r->row.at - 1 : 0;
        window_consume(w, n);
        csv_pass(&r->row, n, false);
        if (!window_fill(w, err))
            return false;
        *status = csv_scan(&r->row, window_text(w), window_size(w), w->at_end);
    }
    d->record_bytes = r->row.passed + r->row.n_bytes;
    return *status == CSV_ROW || fail_unclosed(r, err);
}

static reader_result refuse_long(csv_reader *r, document *d, csv_status status, failure *err)
{
    const reader_options *o = r->base.options;
    const bool ends_here =
        o->on_error == ON_ERROR_FAIL && !(o->where && reader_options_want_row(o));
    d->record_bytes = r->row.n_bytes;
    return ends_here || pass_long(r, d, &status, err) ? reader_refuse_long(&r->base, d)
                                                      : READER_FAILED;
}

static reader_result refuse_row(csv_reader *r, document *d)
{
    d->reason = r->row.wrong;
    d->bad_offset = d->offset + r->row.wrong_at;
    if (d->reason)
        return READER_BAD;
    snprintf(r->reason, sizeof r->reason, "the row has %zu %s, and there are %zu columns",
             r->row.n_fields, r->row.n_fields == 1 ? "field" : "fields", r->columns.n);
    d->reason = r->reason;
    d->bad_offset = d->offset;
    return READER_BAD;
}

/* Returns the field of a column in the row; an empty one for CSV_NO_COLUMN. */
static csv_field field_of(const csv_reader *r, size_t column)
{
    static const csv_field none;
    return column == CSV_NO_COLUMN ? none : r->columns.fields[column];
}

/* Returns the bytes of a field: in the row, or with its quotes as they are meant. *used: how much
 * of r->decoded is taken. */
static const uint8_t *text_of(csv_reader *r, const csv_field *f, size_t *used, size_t *n_bytes)
{
    const uint8_t *row = window_text(&r->base.window);
    *n_bytes = f->end - f->begin;
    if (!f->doubled)
        return row + f->begin;
    uint8_t *decoded = r->decoded + *used;
    *n_bytes = csv_copy_field(decoded, row, f);
    *used += *n_bytes;
    return decoded;
}

static bool set_value(csv_reader *r, size_t i, size_t *used, failure *err)
{
    tokmap_value *v = &r->base.values[i];
    const csv_field f = field_of(r, r->field_columns[i]);
    size_t n_bytes;
    *v = (tokmap_value){.type = TOKMAP_VALUE_NULL};
    if (f.begin == f.end)
        return true;
    const uint8_t *row = window_text(&r->base.window);
    if (r->text_fields >> i & 1) {
        const char *text = (const char *)text_of(r, &f, used, &n_bytes);
        *v = (tokmap_value){.type = TOKMAP_VALUE_STRING, .text = text, .text_bytes = n_bytes};
        return true;
    }
    if (!is_number(row, &f)) {
        const char *name = r->base.options->fields->names[i];
        return fail(
            err,
            "line %" PRIu64 ": byte %" PRIu64 ": the value in the column \"%.200s\" is not "
            "a number, and the values of this column are kept as numbers; --meta-text %.200s "
            "keeps them as strings",
            r->line + 1, r->base.window.offset + f.begin, name, name);
    }
    *v = number_read((const char *)row + f.begin, f.end - f.begin);
    return true;
}

/* Reads the text and the values of a row. */
static reader_result read_row(csv_reader *r, document *d, failure *err)
{
    const reader_options *o = r->base.options;
    const size_t n_fields = o->fields ? o->fields->n_fields : 0;
    size_t used = 0, n_doubled = 0;
    for (size_t i = 0; i <= n_fields; i++) {
        const csv_field f = field_of(r, i < n_fields ? r->field_columns[i] : r->text_column);
        n_doubled += f.doubled ? f.end - f.begin : 0;
    }
    if (n_doubled > 0 && !array_reserve(&r->decoded, &r->decoded_capacity, n_doubled, 1))
        return fail_memory(err);
    for (size_t i = 0; i < n_fields; i++)
        if (!set_value(r, i, &used, err))
            return READER_FAILED;
    d->values = r->base.values;
    if (r->text_column == CSV_NO_COLUMN)
        return READER_NULL;
    const csv_field text = field_of(r, r->text_column);
    d->text = text_of(r, &text, &used, &d->n_bytes);
    return d->n_bytes > 0 ? READER_DOCUMENT : READER_NULL;
}

static reader_result next_row(reader *base, document *d, failure *err)
{
    csv_reader *r = (csv_reader *)base;
    window *w = &base->window;
    csv_status status;
    if (!begin_input(r, err))
        return READER_FAILED;
    finish_row(r);
    if (!skip_blank_rows(r, err))
        return READER_FAILED;
    if (window_size(w) == 0)
        return READER_END;
    const size_t most = base->options->max_document;
    if (!scan_row(r, most, &status, err))
        return READER_FAILED;
    if (status == CSV_UNCLOSED && window_size(w) <= most)
        return fail_unclosed(r, err);
    r->at_hand = true;
    base->n_records++;
    d->offset = w->offset;
    d->line = r->line;
    d->record_bytes = r->row.n_bytes;
    if (status != CSV_ROW || r->row.n_bytes > most)
        return refuse_long(r, d, status, err);
    if (r->row.wrong || r->row.n_fields != r->columns.n)
        return refuse_row(r, d);
    return read_row(r, d, err);
}

/* ---- Places ---- */

static int seek_row(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    csv_reader *r = (csv_reader *)base;
    window *w = &base->window;
    if (!begin_input(r, err))
        return -1;
    finish_row(r);
    if (to.offset < w->offset) /* before the row that names the columns */
        return 1;
    if (to.offset > w->offset)
        r->row = (csv_scanner){.tabs = r->row.tabs, .fields = r->row.fields, .most = r->row.most};
    r->line = to.line;
    base->n_records = to.n_records;
    return window_seek(w, to.offset, max_bytes, err);
}

static reader_place place_of_csv(const reader *base)
{
    const csv_reader *r = (const csv_reader *)base;
    const uint64_t n_bytes = r->at_hand ? r->row.n_bytes + r->row.end_bytes : 0;
    return (reader_place){.offset = base->window.offset + n_bytes,
                          .line = r->line + (r->at_hand ? 1 + r->row.n_newlines : 0),
                          .n_records = base->n_records};
}

static void describe_row(const reader *base, reader_place place, uint64_t offset, char *text,
                         size_t text_bytes)
{
    snprintf(text, text_bytes, "%.200s:%" PRIu64 ": byte %" PRIu64, base->window.name,
             place.line + 1, offset);
}

/* ---- What is known of the input ---- */

static void summarize_csv(const reader *base, reader_summary *summary)
{
    const csv_reader *r = (const csv_reader *)base;
    if (!r->has_columns)
        return;
    snprintf(summary->column, sizeof summary->column, "%s", corpus_field(base->options));
    summary->text_fields = r->text_fields;
    summary->number_fields = r->number_fields;
    summary->header = r->columns.n;
    for (size_t i = 0; i < r->columns.n; i++) /* in any order */
        summary->header += tokmap_i_checksum(r->columns.names[i].text, r->columns.names[i].n_bytes);
}

static void note_fields(const reader *base)
{
    const csv_reader *r = (const csv_reader *)base;
    const reader_options *o = base->options;
    failure why;
    for (size_t i = 0; o->fields && i < o->fields->n_fields; i++) {
        if (!(base->lacking >> i & 1))
            continue;
        say_lacking(r, i, &why);
        reader_note_lacking(base, i, why.text);
    }
}

/* An empty input does not say which columns it has. */
static uint64_t lacking(const reader *base)
{
    return ((const csv_reader *)base)->has_columns ? base->lacking : UINT64_MAX;
}

static bool list_fields(reader *base, field_list *fields, failure *err)
{
    csv_reader *r = (csv_reader *)base;
    bool done = begin_input(r, err);
    for (size_t i = 0; done && i < r->columns.n; i++)
        done = field_list_add_key(fields, (const char *)r->columns.names[i].text,
                                  r->columns.names[i].n_bytes, err);
    return done;
}

const reader_kind csv_reader_kind = {
    .reader_bytes = sizeof(csv_reader),
    .open = open_csv,
    .close = close_csv,
    .next = next_row,
    .seek = seek_row,
    .where = place_of_csv,
    .describe = describe_row,
    .summarize = summarize_csv,
    .note_fields = note_fields,
    .has_columns = true,
    .lacking = lacking,
    .list_fields = list_fields,
};
