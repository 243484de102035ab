/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/arrow/arrow_columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/arrow/schema.h"
#include "codec/decoder.h"
#include "formats/format.h"
#include "base/array.h"
#include "base/le.h"

#define USUAL_HELD ((uint64_t)64 << 20)

/* ---- The body of a message ---- */

/* Takes the plain bytes of buffers out of an Arrow message, in the order in which
 * they are in the input; for arrow_reader.c. */
typedef struct arrow_body {
    window *window;
    uint64_t begin; /* offset of the body in the input */
    bool is_compressed;
    void *zstd;      /* the state of the decompressor; NULL: none yet */
    bool in_frame;   /* it has begun a frame */
    bool is_plain;   /* the current buffer is not compressed */
    uint64_t end;    /* of the stored bytes of the current buffer, in the input */
    uint64_t n_left; /* plain bytes of it that were not taken */
} arrow_body;

bool arrow_take(window *w, void *dst, uint64_t n_bytes, failure *err)
{
    uint64_t n_taken;
    if (!window_take(w, dst, n_bytes, &n_taken, err))
        return false;
    return n_taken == n_bytes || fail(err, "the input ends inside a message; it is truncated");
}

static void arrow_body_close(arrow_body *b)
{
    if (b->zstd)
        decoder_find("zstd")->destroy(b->zstd);
    b->zstd = NULL;
    b->in_frame = false;
}

static bool open_zstd(arrow_body *b, failure *err)
{
    const decoder *zstd = decoder_find("zstd");
    if (b->in_frame) /* the buffer before was not taken to its end */
        arrow_body_close(b);
    if (!zstd)
        return fail(err, "is compressed with zstd, which this build of tokmap does not read");
    if (!b->zstd)
        b->zstd = zstd->create();
    return b->zstd || fail_memory(err);
}

/* Begins a buffer: *n_bytes are its plain bytes. It must not be before the one before it. */
static bool arrow_body_begin(arrow_body *b, const arrow_extent *buffer, uint64_t *n_bytes,
                             failure *err)
{
    window *w = b->window;
    uint8_t size[8];
    const uint64_t begin = b->begin + buffer->offset;
    if (begin < w->offset)
        return fail(err, "damaged: the buffers of a record batch overlap");
    if (!arrow_take(w, NULL, begin - w->offset, err))
        return false;
    b->end = begin + buffer->n_bytes;
    b->is_plain = !b->is_compressed || buffer->n_bytes == 0;
    b->n_left = *n_bytes = buffer->n_bytes;
    if (b->is_plain)
        return true;
    if (buffer->n_bytes < sizeof size)
        return fail(err, "damaged: a compressed buffer without its size");
    if (!arrow_take(w, size, sizeof size, err))
        return false;
    *n_bytes = le_get64(size);
    b->is_plain = *n_bytes == UINT64_MAX; /* it did not become smaller */
    if (b->is_plain)
        *n_bytes = buffer->n_bytes - sizeof size;
    b->n_left = *n_bytes;
    return b->is_plain || open_zstd(b, err);
}

/* Decompresses what the window has; `out` is advanced. */
static bool decode(arrow_body *b, decoder_buffers *out, failure *err)
{
    window *w = b->window;
    if (window_size(w) == 0 && w->offset < b->end) {
        if (!window_fill(w, err))
            return false;
        if (window_size(w) == 0)
            return fail(err, "the input ends inside a message; it is truncated");
    }
    const uint64_t n_stored = b->end - w->offset;
    const size_t n_in = n_stored < window_size(w) ? (size_t)n_stored : window_size(w);
    const size_t n_out = out->out_bytes;
    out->in = window_text(w);
    out->in_bytes = n_in;
    const decoder_result result = decoder_find("zstd")->decode(b->zstd, out, err);
    if (result == DECODER_FAILED)
        return false;
    const bool stuck = out->in_bytes == n_in && out->out_bytes == n_out && n_stored == n_in;
    window_consume(w, n_in - out->in_bytes);
    b->in_frame = result != DECODER_FRAME_END;
    return !stuck || fail(err, "damaged: a buffer is shorter than it says");
}

/* After the last plain byte: the end of the frame, with its checksum if it has one. */
static bool finish(arrow_body *b, failure *err)
{
    uint8_t spare;
    while (b->in_frame || b->window->offset < b->end) {
        decoder_buffers out = {.out = &spare, .out_bytes = 1};
        if (!decode(b, &out, err))
            return false;
        if (out.out_bytes == 0)
            return fail(err, "damaged: a buffer is longer than it says");
    }
    return true;
}

/* Takes n_bytes plain bytes, at most those that are left. dst may be NULL. */
static bool arrow_body_take(arrow_body *b, uint8_t *dst, uint64_t n_bytes, failure *err)
{
    uint8_t unwanted[4096] = {0};
    if (b->is_plain) {
        b->n_left -= n_bytes;
        return arrow_take(b->window, dst, n_bytes, err);
    }
    while (n_bytes > 0) {
        const size_t room =
            dst ? (size_t)n_bytes : (n_bytes < sizeof unwanted ? (size_t)n_bytes : sizeof unwanted);
        decoder_buffers out = {.out = dst ? dst : unwanted, .out_bytes = room};
        if (!decode(b, &out, err))
            return false;
        const size_t n_given = room - out.out_bytes;
        dst = dst ? dst + n_given : NULL;
        n_bytes -= n_given;
        b->n_left -= n_given;
    }
    return b->n_left > 0 || finish(b, err);
}

typedef struct dictionary {
    int64_t id;
    arrow_field field; /* of its values */
    arrow_schema schema;
    arrow_dictionary values;
} dictionary;

struct arrow_columns {
    const reader_options *options;
    arrow_schema schema;
    arrow_column columns[FIELD_LIST_MAX + 1]; /* the first one is the text, if there is one */
    size_t n_columns;
    size_t value_columns[FIELD_LIST_MAX]; /* for each of options->fields; SIZE_MAX: none */
    char *why_lacking[FIELD_LIST_MAX];    /* of the fields that have no column; owned */
    char decimals[FIELD_LIST_MAX + 1][NUMBER_DECIMAL_TEXT_BYTES]; /* of the current row */
    bool text_is_value;
    dictionary dictionaries[FIELD_LIST_MAX + 1];
    size_t n_dictionaries;

    uint64_t n_held, max_held; /* bytes of buffers in memory */
    arrow_body body;
    uint64_t text_at; /* taken of it */
};

/* A buffer that is wanted. */
typedef struct needed {
    arrow_extent extent;
    arrow_column *column;
    size_t which; /* of its buffers */
} needed;

/* ---- Which columns ---- */

static size_t add_column(arrow_columns *c, const arrow_field *field)
{
    size_t i = 0;
    while (i < c->n_columns && c->columns[i].field != field)
        i++;
    c->columns[i].field = field;
    c->n_columns += i == c->n_columns;
    return i;
}

static dictionary *find_dictionary(arrow_columns *c, int64_t id)
{
    for (size_t i = 0; i < c->n_dictionaries; i++) {
        if (c->dictionaries[i].id == id)
            return &c->dictionaries[i];
    }
    return NULL;
}

/* The column of a text or a field, which must have values of that kind. */
static bool choose_column(arrow_columns *c, const char *name, bool is_text, size_t *column,
                          failure *err)
{
    const arrow_field *f = arrow_find_field(&c->schema, name, err);
    if (!f)
        return false;
    if (!arrow_is_value(f) || (is_text && !arrow_is_text(f) && f->type != ARROW_NULL))
        return fail(err, "the column \"%.100s\" is of type %s, which is not read%s", name,
                    arrow_type_name(f), is_text ? " as text" : "");
    *column = add_column(c, f);
    if (f->has_dictionary && !find_dictionary(c, f->dictionary_id)) {
        dictionary *d = &c->dictionaries[c->n_dictionaries++];
        d->id = f->dictionary_id;
        d->schema = arrow_dictionary_schema(f, &d->field);
    }
    return true;
}

static bool choose_columns(arrow_columns *c, failure *err)
{
    if (c->options->list)
        return fail(err, "is Arrow: lists are read from JSON lines and Parquet; "
                         "'tokmap import' reads them from Arrow");
    const field_list *fields = c->options->fields;
    tokmap_value_type types[FIELD_LIST_MAX];
    size_t column = 0;
    if (!c->options->fields_only &&
        !choose_column(c, corpus_field(c->options), true, &column, err)) {
        const char *kind = err->kind;
        fail(err, "%s; use --field to name the column of the text", err->text);
        return fail_kind(err, kind);
    }
    for (size_t i = 0; fields && i < fields->n_fields; i++) {
        c->value_columns[i] = SIZE_MAX;
        types[i] = TOKMAP_VALUE_INT64;
        if (strcmp(fields->names[i], FIELD_ROW) == 0)
            continue;
        if (!choose_column(c, fields->names[i], false, &column, err)) {
            if (!err->kind || !(c->options->may_lack >> i & 1))
                return false;
            c->why_lacking[i] = strdup(err->text); /* the schema's message is valid only now */
            if (!c->why_lacking[i])
                return fail_memory(err);
            types[i] = TOKMAP_VALUE_NULL;
            continue;
        }
        const arrow_field *f = c->columns[column].field;
        c->value_columns[i] = column;
        c->text_is_value = c->text_is_value || column == 0;
        if (arrow_is_text(f) || f->type == ARROW_NULL)
            types[i] = arrow_is_text(f) ? TOKMAP_VALUE_STRING : TOKMAP_VALUE_NULL;
        else if (f->time)
            types[i] = WHERE_TIME;
    }
    return reader_check_where(c->options, types, err);
}

arrow_columns *arrow_columns_new(const reader_options *options, const arrow_message *schema,
                                 failure *err)
{
    arrow_columns *c = calloc(1, sizeof *c);
    if (!c) {
        fail_memory(err);
        return NULL;
    }
    c->options = options;
    c->max_held = options->page_memory ? options->page_memory : USUAL_HELD;
    if (arrow_read_schema(&c->schema, schema, err) && choose_columns(c, err))
        return c;
    arrow_columns_free(c);
    return NULL;
}

uint64_t arrow_columns_lacking(const arrow_columns *c)
{
    uint64_t found = 0;
    for (size_t i = 0; i < FIELD_LIST_MAX; i++)
        found |= (uint64_t)(c->why_lacking[i] != NULL) << i;
    return found;
}

const char *arrow_columns_why_lacking(const arrow_columns *c, size_t field)
{
    return c->why_lacking[field];
}

int32_t arrow_columns_scale(const arrow_columns *c, size_t field)
{
    const size_t column = c->value_columns[field];
    return column == SIZE_MAX ? 0 : c->columns[column].field->scale;
}

bool arrow_columns_list(const arrow_columns *c, field_list *fields, failure *err)
{
    for (size_t i = 0; i < c->schema.n_fields; i++) {
        const arrow_field *f = &c->schema.fields[i];
        if (f->parent == ARROW_NO_FIELD && arrow_is_value(f) &&
            !field_list_add_key(fields, (const char *)f->name.bytes, f->name.n_bytes, err))
            return false;
    }
    return true;
}

/* ---- Buffers in memory ---- */

static void free_buffers(arrow_columns *c, arrow_column *column)
{
    for (size_t i = 0; i < column->n_buffers; i++) {
        if (column->buffers[i].bytes)
            c->n_held -= column->buffers[i].n_bytes;
        free((void *)(uintptr_t)column->buffers[i].bytes);
    }
    free(column->buffers);
    column->buffers = NULL;
    column->n_buffers = 0;
}

static void free_dictionary(arrow_columns *c, arrow_dictionary *d)
{
    for (size_t i = 0; i < d->n_parts; i++)
        free_buffers(c, &d->parts[i]);
    free(d->parts);
    *d = (arrow_dictionary){0};
}

void arrow_columns_free(arrow_columns *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_columns; i++)
        free_buffers(c, &c->columns[i]);
    for (size_t i = 0; i < c->n_dictionaries; i++)
        free_dictionary(c, &c->dictionaries[i].values);
    for (size_t i = 0; i < FIELD_LIST_MAX; i++)
        free(c->why_lacking[i]);
    arrow_body_close(&c->body);
    arrow_free_schema(&c->schema);
    free(c);
}

/* ---- Reading buffers ---- */

static int by_offset(const void *a, const void *b)
{
    const uint64_t x = ((const needed *)a)->extent.offset, y = ((const needed *)b)->extent.offset;
    return (x > y) - (x < y);
}

/* What to read of a record batch. */
typedef struct request {
    const arrow_batch *batch;
    const arrow_schema *schema;
    arrow_column *columns;
    size_t n_columns;
    needed *needed;
    size_t n_needed;
} request;

/* Lists the buffers that are not empty, in the order of the input. */
static bool list_buffers(request *q, failure *err)
{
    for (size_t i = 0; i < q->n_columns; i++) {
        arrow_column *column = &q->columns[i];
        arrow_extent *extents;
        size_t n = 0;
        const bool found =
            arrow_find_buffers(q->batch, q->schema, column->field, &extents, &n, err);
        column->n_rows = q->batch->n_rows;
        column->without_text = false;
        column->buffers = calloc(n + 1, sizeof *column->buffers);
        column->n_buffers = column->buffers ? n : 0;
        needed *all = realloc(q->needed, (q->n_needed + n + 1) * sizeof *all);
        q->needed = all ? all : q->needed;
        const bool done = found && column->buffers && all;
        for (size_t k = 0; k < n && done; k++) {
            if (extents[k].n_bytes > 0)
                all[q->n_needed++] = (needed){extents[k], column, k};
        }
        free(extents);
        if (!done)
            return found && fail_memory(err);
    }
    if (q->n_needed > 0)
        qsort(q->needed, q->n_needed, sizeof *q->needed, by_offset);
    return true;
}

/* same: the bytes, which another column has too, because both are in a struct; else they are taken
 * from the body. */
static bool hold(arrow_columns *c, const needed *n, uint64_t n_bytes, const uint8_t *same,
                 failure *err)
{
    uint8_t *bytes = malloc((size_t)n_bytes + INPUT_PADDING);
    if (!bytes)
        return fail_memory(err);
    memset(bytes + n_bytes, 0, INPUT_PADDING);
    if (same)
        memcpy(bytes, same, (size_t)n_bytes);
    n->column->buffers[n->which] = (arrow_bytes){bytes, (size_t)n_bytes};
    c->n_held += n_bytes;
    return same || arrow_body_take(&c->body, bytes, n_bytes, err);
}

/* Leaves the text in the input, if it is the last that is wanted. */
static bool stays(const arrow_columns *c, const request *q, size_t which)
{
    const needed *n = &q->needed[which];
    return n->column == c->columns && which + 1 == q->n_needed && !c->text_is_value &&
           arrow_has_offsets(n->column->field) && n->which == n->column->field->depth + 2;
}

/* max_held is proportional to --memory, and to the number of threads. */
static bool refuse_size(const arrow_columns *c, uint64_t n_bytes, failure *err)
{
    const uint64_t mib = (uint64_t)1 << 20;
    const double memory = (double)n_bytes * (double)c->options->memory_option / (double)c->max_held;
    return fail(err,
                "reading it takes %" PRIu64 " MiB of memory, and %" PRIu64
                " MiB are allowed: use --memory %.0fM or more threads (-j), or write smaller "
                "record batches",
                n_bytes / mib + 1, c->max_held / mib, memory / 1e6 + 1);
}

static bool read_buffers(arrow_columns *c, const request *q, failure *err)
{
    uint64_t n_more = 0, n_bytes = 0;
    for (size_t i = 0; i < q->n_needed; i++) {
        const needed *n = &q->needed[i];
        if (i > 0 && n->extent.offset == n[-1].extent.offset &&
            n->extent.n_bytes == n[-1].extent.n_bytes) {
            const arrow_bytes *same = &n[-1].column->buffers[n[-1].which];
            if (n_more == 0 && !hold(c, n, same->n_bytes, same->bytes, err))
                return false;
            continue;
        }
        if (!arrow_body_begin(&c->body, &n->extent, &n_bytes, err))
            return false;
        if (stays(c, q, i)) {
            n->column->without_text = true;
            n->column->text_bytes = n_bytes;
            c->text_at = 0;
        } else if (n_more > 0 || n_bytes > c->max_held - c->n_held) {
            /* Looks only how much there is. */
            n_more = n_bytes < UINT64_MAX - n_more ? n_more + n_bytes : UINT64_MAX;
        } else if (!hold(c, n, n_bytes, NULL, err)) {
            return false;
        }
    }
    if (n_more == 0)
        return true;
    return refuse_size(c, n_more < UINT64_MAX - c->n_held ? c->n_held + n_more : UINT64_MAX, err);
}

static bool read_columns(arrow_columns *c, request *q, failure *err)
{
    bool done = list_buffers(q, err) && read_buffers(c, q, err);
    free(q->needed);
    for (size_t i = 0; i < q->n_columns && done; i++)
        done = arrow_check_column(&q->columns[i], err);
    return done;
}

static bool read_dictionary(arrow_columns *c, const arrow_batch *b, failure *err)
{
    dictionary *d = find_dictionary(c, b->dictionary_id);
    if (!d)
        return true;
    arrow_dictionary *values = &d->values;
    if (!b->is_delta)
        free_dictionary(c, values);
    if (!array_grow(&values->parts, values->n_parts, sizeof *values->parts))
        return fail_memory(err);
    request q = {.batch = b,
                 .schema = &d->schema,
                 .columns = &values->parts[values->n_parts],
                 .n_columns = 1};
    values->parts[values->n_parts++] =
        (arrow_column){.field = &d->field, .first = values->n_values};
    if (!read_columns(c, &q, err))
        return false;
    values->n_values += b->n_rows;
    return true;
}

static bool read_records(arrow_columns *c, const arrow_batch *b, failure *err)
{
    request q = {
        .batch = b, .schema = &c->schema, .columns = c->columns, .n_columns = c->n_columns};
    for (size_t i = 0; i < c->n_columns; i++) {
        const arrow_field *f = c->columns[i].field;
        const dictionary *d = f->has_dictionary ? find_dictionary(c, f->dictionary_id) : NULL;
        free_buffers(c, &c->columns[i]);
        c->columns[i].dictionary = d && d->values.n_parts > 0 ? &d->values : NULL;
    }
    return read_columns(c, &q, err);
}

bool arrow_columns_read(arrow_columns *c, arrow_kind kind, const arrow_batch *b, window *w,
                        failure *err)
{
    c->body.window = w;
    c->body.begin = w->offset;
    c->body.is_compressed = b->is_compressed;
    return kind == ARROW_DICTIONARY ? read_dictionary(c, b, err) : read_records(c, b, err);
}

/* ---- The current record batch ---- */

static bool refuse_row(uint64_t row, failure *err)
{
    return fail(err, "row %" PRIu64 ": %s", row, err->text);
}

bool arrow_columns_values(arrow_columns *c, uint64_t row, tokmap_value *values, failure *err)
{
    for (size_t i = 0; c->options->fields && i < c->options->fields->n_fields; i++) {
        const size_t column = c->value_columns[i];
        if (column != SIZE_MAX &&
            !arrow_read_value(&c->columns[column], row, c->decimals[column], &values[i], err))
            return refuse_row(row, err);
    }
    return true;
}

bool arrow_columns_text(arrow_columns *c, uint64_t row, arrow_text *text, failure *err)
{
    const arrow_column *column = c->columns;
    *text = (arrow_text){.is_null = c->options->fields_only || arrow_is_null(column, row)};
    if (text->is_null)
        return true;
    if (column->without_text) {
        arrow_extent extent;
        if (!arrow_find_text(column, row, &extent, err))
            return refuse_row(row, err);
        if (extent.offset < c->text_at)
            return fail(err, "row %" PRIu64 ": damaged: the texts overlap", row);
        text->n_bytes = extent.n_bytes;
        return arrow_columns_take(c, NULL, extent.offset - c->text_at, err);
    }
    tokmap_value value;
    if (!arrow_read_value(column, row, c->decimals[0], &value, err))
        return refuse_row(row, err);
    text->is_null = value.type == TOKMAP_VALUE_NULL; /* in a dictionary */
    text->bytes = (const uint8_t *)value.text;
    text->n_bytes = value.text_bytes;
    return true;
}

bool arrow_columns_take(arrow_columns *c, uint8_t *dst, uint64_t n_bytes, failure *err)
{
    c->text_at += n_bytes;
    return n_bytes == 0 || arrow_body_take(&c->body, dst, n_bytes, err);
}
