/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/text_reader.h"

/* ---- Open, close ---- */

static bool open_text(reader *base, failure *err)
{
    text_reader *r = (text_reader *)base;
    const char *field = corpus_field(base->options);
    r->checked = base->window.part != NULL;
    text_set_format(r, base->options->format);
    if (!json_path_fits(field))
        return fail(err, "the field %.200s has more than %d parts", field, JSON_MAX_DEPTH);
    r->paths = json_paths_new(field, base->options->fields);
    if (r->paths) {
        r->paths->strict = base->options->strict_json;
        r->paths->lists = base->options->list != LIST_NONE;
        r->paths->marks = base->options->marks != MARKS_NONE;
    }
    return r->paths || fail_memory(err);
}

static void close_text(reader *base)
{
    text_reader *r = (text_reader *)base;
    json_paths_free(r->paths);
    free(r->decoded);
}

/* ---- JSON ---- */

/* Reads the text of the line, which is the current record. */
static reader_result read_json(text_reader *r, document *d, failure *err)
{
    json_line_result result;
    if (!text_reserve_decoded(r, r->n_bytes + 1, err))
        return READER_FAILED;
    const json_line_status status = json_line_text(r->paths, window_text(&r->base.window),
                                                   r->n_bytes, r->decoded, r->base.values, &result);
    const bool is_object = status != JSON_LINE_MALFORMED && status != JSON_LINE_NO_OBJECT;
    if (is_object)
        d->values = r->base.values;
    if (status == JSON_LINE_NULL || (is_object && r->base.options->fields_only))
        return READER_NULL;
    if (status != JSON_LINE_OK) {
        text_set_reason(r, status, &result);
        d->reason = r->reason;
        d->bad_offset = d->offset + result.error_offset;
        return READER_BAD;
    }
    d->text = result.text;
    d->n_bytes = result.n_bytes;
    d->lone_surrogates = result.lone_surrogates;
    if (r->paths->marks)
        d->marks = r->base.values[r->paths->fields->n_fields - 1];
    return READER_DOCUMENT;
}

/* ---- Where records end ---- */

/* The current record and its terminator, which may be missing at the end of the input. */
static size_t finished_bytes(const text_reader *r)
{
    size_t n_after = window_size(&r->base.window) - r->n_bytes;
    return r->n_bytes + (r->terminator_bytes < n_after ? r->terminator_bytes : n_after);
}

static void finish_record(text_reader *r)
{
    if (r->at_hand) {
        window_consume(&r->base.window, finished_bytes(r));
        r->line++;
    }
    r->at_hand = false;
}

/* Skips the white space before a line. */
static bool skip_blanks(text_reader *r, failure *err)
{
    window *w = &r->base.window;
    for (;;) {
        const uint8_t *bytes = window_text(w);
        size_t n = 0;
        for (; n < window_size(w) && json_is_space(bytes[n]); n++)
            r->line += bytes[n] == '\n';
        window_consume(w, n);
        if (window_size(w) > 0 || w->at_end)
            return true;
        if (!window_fill(w, err))
            return false;
    }
}

/* Ends a sample of the text in the window at a line, or at a character. */
static size_t end_of_head(const text_reader *r, size_t n_bytes)
{
    const uint8_t *text = window_text(&r->base.window);
    const uint8_t *newline = memrchr(text, '\n', n_bytes);
    if (newline)
        return (size_t)(newline - text);
    while (n_bytes > 0 && (text[n_bytes] & 0xc0) == 0x80)
        n_bytes--;
    return n_bytes;
}

/* Finds the next record, which begins where the window does. READER_DOCUMENT: r->n_bytes of the
 * window, or more than a document may have. */
static reader_result find_record(text_reader *r, failure *err)
{
    window *w = &r->base.window;
    const reader_options *o = r->base.options;
    const bool is_text = r->base.format == CORPUS_TEXT;
    if (r->base.format == CORPUS_JSON_LINES && !skip_blanks(r, err))
        return READER_FAILED;
    for (;;) {
        const bool found = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes);
        /* An input that is one document is a document even if it is empty. */
        const bool one = is_text && r->terminator_bytes == 0 && r->line == 0;
        if (w->at_end && window_size(w) == 0 && !one)
            return READER_END;
        if (is_text && o->head_bytes && r->n_bytes > o->head_bytes) {
            r->n_bytes = end_of_head(r, o->head_bytes);
            return READER_DOCUMENT;
        }
        if (found || w->at_end || r->n_bytes > o->max_document)
            return READER_DOCUMENT;
        if (!window_fill(w, err))
            return READER_FAILED;
    }
}

/* Passes over a record that is too long, up to its last bytes. */
static bool pass_long(text_reader *r, document *d, failure *err)
{
    window *w = &r->base.window;
    bool found = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes);
    d->record_bytes = r->n_bytes;
    while (!found && !w->at_end) {
        window_consume(w, r->n_bytes);
        if (!window_fill(w, err))
            return false;
        found = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes);
        d->record_bytes += r->n_bytes;
    }
    return true;
}

static reader_result next_record(reader *base, document *d, failure *err)
{
    text_reader *r = (text_reader *)base;
    window *w = &base->window;
    if (!text_begin_input(r, err))
        return READER_FAILED;
    const bool is_json = base->format == CORPUS_JSON_LINES;
    finish_record(r);
    if (is_json && w->offset == r->begin) {
        if (!window_reach(w, TEXT_BOM_BYTES, err))
            return READER_FAILED;
        window_consume(w, text_bom_bytes(r));
    }
    const reader_result result = find_record(r, err);
    if (result != READER_DOCUMENT)
        return result;
    r->at_hand = true;
    base->n_records++;
    d->offset = w->offset;
    d->line = r->line;
    d->record_bytes = r->n_bytes;
    if (r->n_bytes > base->options->max_document) {
        const reader_options *o = base->options;
        const bool ends_here = o->on_error == ON_ERROR_FAIL &&
                               !(o->where && reader_options_want_row(o)); /* may be left out */
        return ends_here || pass_long(r, d, err) ? reader_refuse_long(base, d) : READER_FAILED;
    }
    if (is_json)
        return read_json(r, d, err);
    d->values = base->values;
    d->text = window_text(w);
    d->n_bytes = r->n_bytes;
    return READER_DOCUMENT;
}

static int seek_place(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    text_reader *r = (text_reader *)base;
    if (!text_begin_input(r, err))
        return -1;
    finish_record(r);
    r->line = to.line;
    base->n_records = to.n_records;
    return window_seek(&base->window, to.offset, max_bytes, err);
}

static reader_place place_now(const reader *base)
{
    const text_reader *r = (const text_reader *)base;
    return (reader_place){.offset = r->base.window.offset + (r->at_hand ? finished_bytes(r) : 0),
                          .line = r->line + r->at_hand,
                          .n_records = base->n_records};
}

static void describe_place(const reader *base, reader_place place, uint64_t offset, char *text,
                           size_t text_bytes)
{
    const window *w = &base->window;
    if (w->part && w->part->begin.offset > 0) /* the lines before it were not counted */
        snprintf(text, text_bytes, "%.200s: byte %" PRIu64, w->name, offset);
    else
        snprintf(text, text_bytes, "%.200s:%" PRIu64 ": byte %" PRIu64, w->name, place.line + 1,
                 offset);
}

static uint64_t lacking(const reader *base)
{
    const json_paths *p = ((const text_reader *)base)->paths;
    const field_list *fields = base->options->fields;
    uint64_t found = 0;
    char text[640];
    if (!p || p->n_lines == 0)
        return UINT64_MAX;
    for (size_t i = 0; i < fields->n_fields; i++) {
        bool always = false;
        if (json_paths_missing(p, i, &always, text, sizeof text) && always)
            found |= (uint64_t)1 << i;
    }
    return found;
}

static void note_fields(const reader *base)
{
    const json_paths *p = ((const text_reader *)base)->paths;
    const reader_options *o = base->options;
    tokmap_value_type types[FIELD_LIST_MAX];
    failure why;
    char text[640];
    for (size_t i = 0; o->fields && i < o->fields->n_fields; i++) {
        const size_t n = (size_t)snprintf(text, sizeof text, "%.200s: ", base->window.name);
        types[i] = json_paths_type(p, i);
        bool always;
        if (!json_paths_missing(p, i, &always, text + n, sizeof text - n))
            continue;
        if (always && o->missing)
            o->missing(o->context, i, text);
        else
            o->note(o->context, text);
    }
    if (!o->fields || !o->where || where_check_types(o->where, types, &why))
        return;
    fail(&why, "%.200s: --where: character %" PRIu64 ": %s in every record, which never holds",
         base->window.name, why.place, why.text);
    o->note(o->context, why.text);
}

static bool list_fields(reader *base, field_list *fields, failure *err)
{
    text_reader *r = (text_reader *)base;
    document d = {0};
    json_line_result ignored;
    reader_result result;
    do
        result = next_record(base, &d, err);
    while (result == READER_BAD && base->options->on_error == ON_ERROR_SKIP);
    if (result == READER_BAD)
        return fail(err, "line %" PRIu64 ": %s", d.line + 1, d.reason);
    if (result != READER_NULL)
        return result == READER_END;
    r->paths->listed = fields;
    r->paths->why_not_listed = err;
    return json_line_text(r->paths, window_text(&base->window), r->n_bytes, r->decoded, NULL,
                          &ignored) != JSON_LINE_MALFORMED;
}

const reader_kind text_reader_kind = {
    .reader_bytes = sizeof(text_reader),
    .open = open_text,
    .close = close_text,
    .next = next_record,
    .seek = seek_place,
    .where = place_now,
    .describe = describe_place,
    .note_fields = note_fields,
    .lacking = lacking,
    .list_fields = list_fields,
};

void text_reader_restart(reader *base, corpus_format format, bool one_record)
{
    text_reader *r = (text_reader *)base;
    text_set_format(r, format);
    if (one_record)
        r->terminator_bytes = 0;
    r->begin = r->base.window.offset;
    r->line = 0;
    r->checked = r->at_hand = false;
}
