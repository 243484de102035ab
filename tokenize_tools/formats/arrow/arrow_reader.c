/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/arrow/arrow_columns.h"
#include "formats/arrow/arrow_reader.h"
#include "base/array.h"
#include "base/le.h"

#define MAX_METADATA_BYTES ((size_t)256 << 20)

static const char file_magic[] = "ARROW1";
enum {
    MAGIC_BYTES = 6,
    FILE_HEAD_BYTES = 8,
    FOOTER_END_BYTES = 10, /* its size, and the magic again */
    /* A schema without a prefix begins with the offset of its root, others with their size. */
    MAX_BARE_ROOT = 64,
    MAX_BARE_TRIES = 16
};

typedef struct arrow_reader {
    reader base;
    const char *name; /* of the input */
    char label[240];  /* with the record batch, for messages */
    bool is_file, at_end;
    uint8_t *metadata;
    size_t metadata_capacity;
    arrow_columns *columns; /* NULL: the schema has not been read */
    field_list *listed;     /* gets the names of its fields; NULL: they are not wanted */

    /* The current record batch: */
    bool in_batch;
    uint64_t batch;             /* its number, of the next one if there is none */
    uint64_t message_at, end;   /* where it begins and ends in the input */
    uint64_t first_row, n_rows; /* first_row: of the next one if there is none */
    uint64_t row;               /* in the batch; the next one */

    uint8_t *text; /* of the current document, if it was not in memory */
    size_t text_capacity;
} arrow_reader;

bool arrow_is_magic(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes >= FILE_HEAD_BYTES &&
           (memcmp(bytes, file_magic, MAGIC_BYTES + 1) == 0 || le_get32(bytes) == UINT32_MAX);
}

/* ---- Messages ---- */

static bool reserve_metadata(arrow_reader *r, size_t n_bytes, failure *err)
{
    if (n_bytes > MAX_METADATA_BYTES)
        return fail(err, "damaged: metadata of %zu bytes", n_bytes);
    return array_reserve(&r->metadata, &r->metadata_capacity, n_bytes, 1) || fail_memory(err);
}

/* Sets the place that messages name: the input, or a part of it. */
static void set_label(arrow_reader *r, const char *part)
{
    snprintf(r->label, sizeof r->label, "%.180s%s%.50s", r->name, *part ? ": " : "", part);
    r->base.window.name = r->label;
}

/* Whether a file ends like one. Only reading it from front to back would show that it was cut. */
static bool check_last_bytes(const arrow_reader *r, failure *err)
{
    const input *in = window_input(&r->base.window);
    uint8_t last[MAGIC_BYTES] = {0};
    uint64_t n_bytes;
    if (!r->is_file || !input_is_plain_file(in, &n_bytes))
        return true; /* then check_footer decides */
    const uint64_t at = n_bytes > MAGIC_BYTES ? n_bytes - MAGIC_BYTES : 0;
    const int sys_errno = input_read_at(in, last, sizeof last, at, &(size_t){0});
    return sys_errno || memcmp(last, file_magic, MAGIC_BYTES) == 0 ||
           fail(err, "the footer is missing or damaged; the file may be truncated");
}

static bool begin_schema(arrow_reader *r, const arrow_message *m, failure *err)
{
    if (r->columns)
        return fail(err, "damaged: a second schema");
    r->columns = arrow_columns_new(r->base.options, m, err);
    r->base.lacking = r->columns ? arrow_columns_lacking(r->columns) : 0;
    const bool done = r->columns && (!r->listed || arrow_columns_list(r->columns, r->listed, err));
    return done ? check_last_bytes(r, err) : fail_in_file(err, r->name);
}

/* Goes on to the next message. */
static bool leave_message(arrow_reader *r, failure *err)
{
    window *w = &r->base.window;
    if (!arrow_take(w, NULL, r->end - w->offset, err))
        return false;
    if (r->in_batch) {
        r->in_batch = false;
        r->batch++;
        r->first_row += r->n_rows;
    }
    set_label(r, "");
    return true;
}

/* unloaded: of a record batch before this offset in the input, only the number of rows is read. */
static bool take_message(arrow_reader *r, const arrow_message *m, uint64_t unloaded, failure *err)
{
    window *w = &r->base.window;
    char part[50];
    arrow_batch b;
    r->end = w->offset + m->body_bytes;
    if (r->end < w->offset)
        return fail(err, "damaged: a message of %" PRIu64 " bytes", m->body_bytes);
    if (m->kind != ARROW_SCHEMA && !r->columns)
        return fail(err, "damaged: a message before the schema");
    snprintf(part, sizeof part, "record batch %" PRIu64, r->batch);
    set_label(r, m->kind == ARROW_RECORDS ? part : m->kind == ARROW_DICTIONARY ? "dictionary" : "");
    if (m->kind == ARROW_SCHEMA)
        return begin_schema(r, m, err) && leave_message(r, err);
    const bool is_passed = m->kind == ARROW_RECORDS && r->message_at < unloaded;
    if (!arrow_read_batch(&b, m, err) ||
        (!is_passed && !arrow_columns_read(r->columns, m->kind, &b, w, err)))
        return false;
    if (m->kind == ARROW_DICTIONARY)
        return leave_message(r, err);
    r->in_batch = true;
    r->n_rows = b.n_rows;
    r->row = 0;
    return !is_passed || leave_message(r, err);
}

/* ---- The end ---- */

/* A file continues with a footer that lists the record batches. */
static bool check_footer(arrow_reader *r, failure *err)
{
    window *w = &r->base.window;
    size_t n = 0;
    uint64_t n_batches;
    while (!w->at_end || window_size(w) > 0) {
        if (window_size(w) == 0 && !window_fill(w, err))
            return false;
        const size_t n_more = window_size(w);
        if (!reserve_metadata(r, n + n_more, err))
            return false;
        if (n_more > 0)
            memcpy(r->metadata + n, window_text(w), n_more);
        window_consume(w, n_more);
        n += n_more;
    }
    const uint8_t *end = r->metadata + n - FOOTER_END_BYTES;
    if (n < FOOTER_END_BYTES || memcmp(end + 4, file_magic, MAGIC_BYTES) != 0 ||
        le_get32(end) != n - FOOTER_END_BYTES)
        return fail(err, "the footer is missing or damaged; the file may be truncated");
    if (!arrow_read_footer(r->metadata, n - FOOTER_END_BYTES, &n_batches, err))
        return fail(err, "in the footer: %s", err->text);
    return n_batches == r->batch ||
           fail(err, "the footer lists %" PRIu64 " record batches, but %" PRIu64 " were read",
                n_batches, r->batch);
}

static bool end_input(arrow_reader *r, failure *err)
{
    window *w = &r->base.window;
    r->at_end = true;
    if (!r->columns)
        return fail(err, "damaged: there is no schema");
    if (r->is_file)
        return check_footer(r, err);
    if (window_size(w) == 0 && !w->at_end && !window_fill(w, err))
        return false;
    return window_size(w) == 0 || fail(err, "data after the end of the stream");
}

/* ---- From message to message ---- */

static bool begin_input(arrow_reader *r, failure *err)
{
    window *w = &r->base.window;
    if (!window_reach(w, FILE_HEAD_BYTES, err))
        return false;
    if (!arrow_is_magic(window_text(w), window_size(w)))
        return fail(err, "is not Arrow");
    r->is_file = memcmp(window_text(w), file_magic, MAGIC_BYTES) == 0;
    return !r->is_file || arrow_take(w, NULL, FILE_HEAD_BYTES, err);
}

static bool is_schema(const uint8_t *metadata, size_t n_bytes, failure *err)
{
    arrow_message m;
    arrow_schema s = {0};
    *err = (failure){0};
    const bool done = arrow_read_message(&m, metadata, n_bytes, err) && m.kind == ARROW_SCHEMA &&
                      arrow_read_schema(&s, &m, err);
    arrow_free_schema(&s);
    return done;
}

/* Polars 2 writes the schema of a file without the prefix that says how long it is. It ends where
 * the next message begins, and is whole then. On return, `prefix` is that of the next message. */
static bool take_bare_schema(arrow_reader *r, uint8_t prefix[ARROW_PREFIX_BYTES], failure *err)
{
    window *w = &r->base.window;
    arrow_message m;
    size_t n = 0;
    unsigned n_tried = 0;
    for (bool found = false; !found;) {
        if (!reserve_metadata(r, n + ARROW_PREFIX_BYTES, err))
            return false;
        memcpy(r->metadata + n, prefix, ARROW_PREFIX_BYTES);
        n += ARROW_PREFIX_BYTES;
        if (!arrow_take(w, prefix, ARROW_PREFIX_BYTES, err))
            return false;
        if (le_get32(prefix) != UINT32_MAX)
            continue;
        found = is_schema(r->metadata, n, err);
        if (err->status == ENOMEM)
            return false;
        if (!found && ++n_tried == MAX_BARE_TRIES)
            return fail(err, "damaged: no schema at the beginning of the file");
    }
    r->message_at = w->offset - ARROW_PREFIX_BYTES;
    return arrow_read_message(&m, r->metadata, n, err) && begin_schema(r, &m, err);
}

/* A stream may end without its end marker, between two messages. */
static bool next_message(arrow_reader *r, uint64_t unloaded, failure *err)
{
    window *w = &r->base.window;
    uint8_t prefix[ARROW_PREFIX_BYTES];
    uint64_t n_taken;
    size_t metadata_bytes;
    arrow_message m;
    r->message_at = w->offset;
    if (!window_take(w, prefix, sizeof prefix, &n_taken, err))
        return false;
    if (n_taken == 0 && !r->is_file) {
        /* The format allows it, but a writer that was interrupted leaves the same. */
        reader_report(&r->base,
                      "%.200s: the stream has no end marker; its writer may have been interrupted",
                      w->name);
        return end_input(r, err);
    }
    if (n_taken < sizeof prefix)
        return fail(err, "the input ends before a message; it is truncated");
    if (r->is_file && !r->columns && le_get32(prefix) < MAX_BARE_ROOT &&
        !take_bare_schema(r, prefix, err))
        return false;
    if (!arrow_read_prefix(prefix, &metadata_bytes, err))
        return false;
    if (metadata_bytes == 0)
        return end_input(r, err);
    if (!reserve_metadata(r, metadata_bytes, err) ||
        !arrow_take(w, r->metadata, metadata_bytes, err))
        return false;
    return arrow_read_message(&m, r->metadata, metadata_bytes, err) &&
           take_message(r, &m, unloaded, err);
}

/* ---- Documents ---- */

/* Reads the text, which the batch does not hold in memory. */
static bool take_text(arrow_reader *r, size_t n_bytes, document *d, failure *err)
{
    if (!array_reserve(&r->text, &r->text_capacity, n_bytes + INPUT_PADDING, 1))
        return fail_memory(err);
    d->text = r->text;
    memset(r->text + n_bytes, 0, INPUT_PADDING);
    return arrow_columns_take(r->columns, r->text, n_bytes, err);
}

static reader_result next_arrow(reader *base, document *d, failure *err)
{
    arrow_reader *r = (arrow_reader *)base;
    arrow_text text;
    if (base->window.offset == 0 && !begin_input(r, err))
        return READER_FAILED;
    while (!r->at_end && !(r->in_batch && r->row < r->n_rows)) {
        if ((r->in_batch && !leave_message(r, err)) || !next_message(r, 0, err))
            return READER_FAILED;
    }
    if (r->at_end)
        return READER_END;
    d->offset = r->message_at;
    d->line = r->first_row + r->row;
    if (!arrow_columns_text(r->columns, r->row, &text, err) ||
        !arrow_columns_values(r->columns, r->row, base->values, err))
        return READER_FAILED;
    r->row++;
    d->values = base->values;
    if (text.is_null)
        return READER_NULL;
    d->record_bytes = text.n_bytes;
    if (text.n_bytes > base->options->max_document)
        return reader_refuse_long(base, d);
    d->text = text.bytes;
    d->n_bytes = (size_t)text.n_bytes;
    return text.bytes || take_text(r, d->n_bytes, d, err) ? READER_DOCUMENT : READER_FAILED;
}

/* ---- Places ---- */

static int fail_missing(reader_place to, failure *err)
{
    fail_changed(err,
                 "has changed: there is no record batch at byte %" PRIu64 " with the row %" PRIu64
                 ", which an earlier run read",
                 to.offset, to.line);
    return -1;
}

static int seek_arrow(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    arrow_reader *r = (arrow_reader *)base;
    window *w = &base->window;
    const uint64_t from = w->offset;
    if (w->offset == 0 && !begin_input(r, err))
        return -1;
    while (!r->at_end && (w->offset < to.offset || r->first_row < to.line)) {
        if (r->in_batch && r->message_at == to.offset)
            break;
        if (r->in_batch && !leave_message(r, err))
            return -1;
        if (w->offset - from >= max_bytes)
            return 0;
        if (w->offset > to.offset)
            return fail_missing(to, err);
        if (!next_message(r, to.offset, err))
            return -1;
    }
    const bool there = r->in_batch ? r->message_at == to.offset : w->offset == to.offset;
    const uint64_t n_rows = r->in_batch ? r->n_rows : 0;
    const bool at_start = to.offset == 0 && to.line == 0; /* before the first bytes of a file */
    if (!at_start && (!there || to.line < r->first_row || to.line - r->first_row > n_rows))
        return fail_missing(to, err);
    r->row = at_start ? 0 : to.line - r->first_row;
    return 1;
}

static reader_place place_of_arrow(const reader *base)
{
    const arrow_reader *r = (const arrow_reader *)base;
    const uint64_t row = r->first_row + (r->in_batch ? r->row : 0);
    const uint64_t in_batch = r->row < r->n_rows ? r->message_at : r->end;
    return (reader_place){
        .offset = r->in_batch ? in_batch : base->window.offset, .line = row, .n_records = row};
}

static void describe_arrow(const reader *base, reader_place place, uint64_t offset, char *text,
                           size_t text_bytes)
{
    const arrow_reader *r = (const arrow_reader *)base;
    const int n = snprintf(text, text_bytes, "%.200s: record batch %" PRIu64 ", row %" PRIu64,
                           r->name, r->batch, place.line - r->first_row);
    if (!base->options->fields_only && n < (int)text_bytes)
        snprintf(text + n, text_bytes - (size_t)n, ": byte %" PRIu64 " of the text",
                 offset > place.offset ? offset - place.offset : 0);
}

static void summarize_arrow(const reader *base, reader_summary *summary)
{
    if (((const arrow_reader *)base)->columns)
        snprintf(summary->column, sizeof summary->column, "%s", corpus_field(base->options));
}

static void note_arrow(const reader *base)
{
    const arrow_columns *columns = ((const arrow_reader *)base)->columns;
    for (size_t i = 0; columns && base->options->fields && i < base->options->fields->n_fields;
         i++) {
        const char *why = arrow_columns_why_lacking(columns, i);
        reader_note_decimal(base, i, arrow_columns_scale(columns, i));
        if (why)
            reader_note_lacking(base, i, why);
    }
}

static bool list_arrow(reader *base, field_list *fields, failure *err)
{
    arrow_reader *r = (arrow_reader *)base;
    r->listed = fields;
    bool done = begin_input(r, err);
    while (done && !r->columns)
        done = next_message(r, 0, err);
    return done;
}

static bool open_arrow(reader *base, failure *err)
{
    (void)err;
    base->format = CORPUS_ARROW;
    base->names_byte = true;
    ((arrow_reader *)base)->name = base->window.name;
    return true;
}

static void close_arrow(reader *base)
{
    arrow_reader *r = (arrow_reader *)base;
    arrow_columns_free(r->columns);
    free(r->metadata);
    free(r->text);
}

const reader_kind arrow_reader_kind = {
    .reader_bytes = sizeof(arrow_reader),
    .open = open_arrow,
    .close = close_arrow,
    .next = next_arrow,
    .seek = seek_arrow,
    .where = place_of_arrow,
    .describe = describe_arrow,
    .summarize = summarize_arrow,
    .note_fields = note_arrow,
    .has_columns = true,
    .lacking = reader_lacking_columns,
    .list_fields = list_arrow,
};
