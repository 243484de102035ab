/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_array.h"
#include "formats/json_line.h"
#include "formats/format.h"
#include "formats/wrong_file.h"
#include "base/array.h"

typedef struct text_reader {
    reader base;
    uint64_t begin;         /* where the input begins: a member of an archive not at 0 */
    bool checked;           /* wrong_file_check has passed, or this is a part */
    const char *terminator; /* between documents */
    size_t terminator_bytes;

    /* The current record, until the next one is asked for. */
    bool at_hand;
    uint64_t line;  /* of the current record, else of the next one */
    size_t n_bytes; /* in the window */

    /* JSON lines: */
    json_array array; /* that they come from */
    json_paths *paths;
    uint8_t *decoded;
    size_t decoded_capacity;
    char reason[256];
} text_reader;

#define TEXT_BOM_BYTES 3
/* How much of a text is looked at to find whether it is text. */
#define LOOK_BYTES ((size_t)16 << 20)

static const char byte_order_mark[] = "\xef\xbb\xbf";

static void set_format(text_reader *r, corpus_format format)
{
    bool text = format == CORPUS_TEXT;
    r->base.format = format;
    r->terminator = text ? r->base.options->separator : "\n";
    r->terminator_bytes = text ? r->base.options->separator_bytes : 1;
}

static bool reserve_decoded(text_reader *r, size_t n_bytes, failure *err)
{
    return array_reserve(&r->decoded, &r->decoded_capacity, n_bytes, 1) || fail_memory(err);
}

static void set_reason(text_reader *r, json_line_status status, const json_line_result *result)
{
    const char *field = corpus_field(r->base.options);
    if (status == JSON_LINE_MALFORMED)
        snprintf(r->reason, sizeof r->reason, "not JSON: %s", result->reason);
    else if (status == JSON_LINE_NO_OBJECT && *window_text(&r->base.window) == '[')
        snprintf(r->reason, sizeof r->reason,
                 "a JSON array, which is read only from a .json file of its own");
    else if (status == JSON_LINE_NO_FIELD)
        snprintf(r->reason, sizeof r->reason, "%s: \"%.100s\"", result->reason, field);
    else
        snprintf(r->reason, sizeof r->reason, "%s", result->reason);
}

static size_t bom_bytes(const text_reader *r)
{
    const window *w = &r->base.window;
    bool found = w->offset == r->begin && window_size(w) >= TEXT_BOM_BYTES &&
                 memcmp(window_text(w), byte_order_mark, TEXT_BOM_BYTES) == 0;
    return found ? TEXT_BOM_BYTES : 0;
}

/* Finds the first byte from there on that is not white space; *at is LOOK_BYTES if there is none
 * before that. */
static bool find_nonblank(text_reader *r, size_t from, size_t *at, failure *err)
{
    window *w = &r->base.window;
    for (*at = from; *at < LOOK_BYTES; ++*at) {
        if (!window_reach(w, *at + 1, err))
            return false;
        if (*at == window_size(w))
            *at = LOOK_BYTES;
        if (*at == LOOK_BYTES || !json_is_space(window_text(w)[*at]))
            return true;
    }
    return true;
}

/* Finds the end of the line; `whole` unless it has more than `most` bytes. */
static bool find_line_end(text_reader *r, size_t from, size_t most, size_t *at, bool *whole,
                          failure *err)
{
    window *w = &r->base.window;
    for (*at = from;;) {
        const uint8_t *newline = memchr(window_text(w) + *at, '\n', window_size(w) - *at);
        *at = newline ? (size_t)(newline - window_text(w)) : window_size(w);
        *whole = *at <= most && (newline || w->at_end);
        if (*whole || *at > most)
            return true;
        if (!window_fill(w, err))
            return false;
    }
}

typedef struct first_line {
    size_t from, to;
    bool whole; /* read to its end; else the rest is not known */
    json_line_status status;
    json_line_result result;
} first_line;

/* Parses the line that begins at `from`, unless it has more than `most` bytes. */
static bool read_line(text_reader *r, size_t from, size_t most, first_line *line, failure *err)
{
    *line = (first_line){.from = from};
    if (!find_line_end(r, from, most, &line->to, &line->whole, err))
        return false;
    if (!line->whole)
        return true;
    if (!reserve_decoded(r, line->to - from + 1, err))
        return false;
    line->status = json_line_text(r->paths, window_text(&r->base.window) + from, line->to - from,
                                  r->decoded, NULL, &line->result);
    return true;
}

/* ---- Refusals ---- */

static wrong_file_head head_of(const text_reader *r)
{
    const window *w = &r->base.window;
    const size_t n = wrong_file_head_bytes(r->base.options);
    return (wrong_file_head){
        .bytes = window_text(w),
        .n_bytes = window_size(w) < n ? window_size(w) : n,
        .whole = window_size(w) <= n && w->at_end,
        .decompressed = w->codec != NULL,
        .name = w->name,
    };
}

/* Whether the line is an object whose beginning is missing. */
static bool is_cut_line(text_reader *r, const first_line *line, bool *cut, failure *err)
{
    /* Where it may have been cut: in a string, in a key, before a key and so on; then one level
     * further down. */
    static const char *const missing[] = {
        "{\"\":\"",       "{\"",       "{",        "{\"\"",       "{\"\":",       "{\"\":1",
        "{\"\":{\"\":\"", "{\"\":{\"", "{\"\":{",  "{\"\":{\"\"", "{\"\":{\"\":", "{\"\":{\"\":1",
        "{\"\":[\"",      "{\"\":[",   "{\"\":[1",
    };
    enum {
        MOST_MISSING = 16
    };
    const uint8_t *bytes = window_text(&r->base.window) + line->from;
    size_t n = line->to - line->from;
    while (n > 0 && json_is_space(bytes[n - 1]))
        n--;
    *cut = false;
    if (!line->whole || n == 0 || bytes[n - 1] != '}' || !memchr(bytes, '"', n))
        return true;
    uint8_t *copy = calloc(1, MOST_MISSING + n + INPUT_PADDING);
    if (!copy || !reserve_decoded(r, MOST_MISSING + n, err)) {
        free(copy);
        return fail_memory(err);
    }
    memcpy(copy + MOST_MISSING, bytes, n);
    for (size_t i = 0; i < sizeof missing / sizeof *missing && !*cut; i++) {
        json_line_result result;
        const size_t n_begin = strlen(missing[i]);
        uint8_t *begin = copy + MOST_MISSING - n_begin;
        memcpy(begin, missing[i], n_begin);
        *cut = json_line_text(r->paths, begin, n_begin + n, r->decoded, NULL, &result) !=
               JSON_LINE_MALFORMED;
    }
    free(copy);
    return true;
}

/* Refuses text that looks like JSON lines of which a part is missing. `from` is its first byte that
 * is not white space. */
static bool check_text(text_reader *r, size_t from, failure *err)
{
    first_line line;
    bool cut;
    const wrong_file_head head = head_of(r);
    if (!wrong_name_check(&head, err))
        return false;
    if (from >= LOOK_BYTES)
        return true;
    if (!read_line(r, from, LOOK_BYTES, &line, err) || !is_cut_line(r, &line, &cut, err))
        return false;
    if (!cut && !find_nonblank(r, line.to, &from, err))
        return false;
    if (!cut && from < LOOK_BYTES && window_text(&r->base.window)[from] == '{') {
        if (!read_line(r, from, LOOK_BYTES, &line, err))
            return false;
        cut = line.whole && (line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL);
    }
    return !cut || fail(err, "looks like JSON lines whose first line is cut or is not an object; "
                             "repair or remove it, or use --format text to pack it as it is");
}

/* ---- The format ---- */

/* Parses the line after this one, too. *are_lines: both are objects, whatever fields they have. */
static bool look_at_next(text_reader *r, const first_line *line, bool *are_lines, failure *err)
{
    size_t from;
    first_line next;
    *are_lines = false;
    if (!find_nonblank(r, line->to, &from, err))
        return false;
    if (from >= LOOK_BYTES || window_text(&r->base.window)[from] != '{')
        return true;
    if (!read_line(r, from, LOOK_BYTES, &next, err))
        return false;
    *are_lines =
        next.whole && next.status != JSON_LINE_MALFORMED && line->status != JSON_LINE_MALFORMED;
    return true;
}

#define OTHER_JSON "JSON without the field of the text"

static bool lacks_field(json_line_status status)
{
    return status == JSON_LINE_NO_FIELD || status == JSON_LINE_NO_OBJECT;
}

/* What all that follows is as one JSON text, which may have comments; JSON_LINE_MALFORMED if it is
 * none, or larger than what is looked at. Returns false when out of memory. */
static bool read_whole_json(text_reader *r, size_t from, json_line_status *status)
{
    window *w = &r->base.window;
    failure ignored; /* of reading: it is found again, or the text is not whole */
    json_line_result result;
    *status = JSON_LINE_MALFORMED;
    if (!window_reach(w, LOOK_BYTES, &ignored) || !w->at_end)
        return true;
    const size_t n = window_size(w) - from;
    uint8_t *copy = malloc(n + INPUT_PADDING);
    if (!copy || !reserve_decoded(r, n + 1, &ignored)) {
        free(copy);
        return false;
    }
    memcpy(copy, window_text(w) + from, n);
    memset(copy + n, 0, INPUT_PADDING);
    json_blank_comments(copy, n);
    *status = json_line_text(r->paths, copy, n, r->decoded, NULL, &result);
    free(copy);
    return true;
}

/* Refuses an array, which is read as JSON lines, if none of its objects has the field. */
static bool check_array(text_reader *r, failure *err)
{
    const window *w = &r->base.window;
    first_line line = {.to = bom_bytes(r), .status = JSON_LINE_OK};
    size_t from;
    if (!find_nonblank(r, line.to, &from, err))
        return false;
    const size_t first = from;
    while (from < LOOK_BYTES) {
        if (!read_line(r, from, LOOK_BYTES, &line, err))
            return false;
        if (!line.whole || !lacks_field(line.status))
            return true;
        if (!find_nonblank(r, line.to, &from, err))
            return false;
    }
    if (!lacks_field(line.status) || !w->at_end || window_size(w) > LOOK_BYTES)
        return true;
    set_reason(r, line.status, &line.result);
    fail(err,
         "byte %zu: no object of the array has the expected field (%s): use --field to name the "
         "field, or --format text to pack it as it is",
         first, r->reason);
    return fail_kind(err, OTHER_JSON);
}

/* Decides by the first line. An empty input has no format. */
static bool decide_format(text_reader *r, failure *err)
{
    size_t from;
    first_line line;
    bool are_lines;
    const wrong_file_head head = head_of(r);
    if (!window_reach(&r->base.window, TEXT_BOM_BYTES, err))
        return false;
    if (window_size(&r->base.window) == 0)
        return true;
    if (!find_nonblank(r, bom_bytes(r), &from, err))
        return false;
    const bool is_object = from < LOOK_BYTES && window_text(&r->base.window)[from] == '{';
    if (r->base.options->fields_only) {
        set_format(r, CORPUS_JSON_LINES);
        return is_object || wrong_name_may_be_json(head.name) || wrong_name_check(&head, err);
    }
    if (!is_object) {
        set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    if (!read_line(r, from, r->base.options->max_document, &line, err))
        return false;
    /* A line that is too long is refused when it is read. */
    if (!line.whole || line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL) {
        set_format(r, CORPUS_JSON_LINES);
        return true;
    }
    set_reason(r, line.status, &line.result);
    const json_line_result result = line.result; /* the next line is parsed to the same place */
    if (!look_at_next(r, &line, &are_lines, err))
        return false;
    const bool may_be_json = wrong_name_may_be_json(head.name);
    if (line.status == JSON_LINE_MALFORMED && !may_be_json) {
        set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    const corpus_list list = r->base.options->list;
    fail(err,
         "byte %" PRIu64 ": the first line begins with { but has no %s in the expected field (%s): "
         "use %s to name the field, or --format to name the format",
         from + result.error_offset, list == LIST_NONE ? "text" : "list", r->reason,
         list == LIST_NONE     ? "--field"
         : list == LIST_TOKENS ? "--tokens"
                               : "--parts");
    bool is_other =
        line.status != JSON_LINE_MALFORMED && !are_lines && !wrong_name_promises_records(head.name);
    json_line_status whole = JSON_LINE_MALFORMED;
    if (line.status == JSON_LINE_MALFORMED && wrong_name_is_one_json(head.name) &&
        !read_whole_json(r, from, &whole))
        return fail_memory(err);
    if (whole == JSON_LINE_OK || whole == JSON_LINE_NULL)
        fail(err, "is one JSON object over several lines, with the field of the text; write it on "
                  "one line, for example with jq -c . FILE, or use --format text to pack it as it "
                  "is");
    return fail_kind(err, is_other || lacks_field(whole) ? OTHER_JSON : NULL);
}

/* Only records of JSON have fields and lists. */
static bool check_fields(const text_reader *r, failure *err)
{
    const field_list *fields = r->base.options->fields;
    if (r->base.format == CORPUS_JSON_LINES || r->base.format == CORPUS_AUTO)
        return true;
    if (r->base.options->list)
        return fail(err, "is text, which has no lists: must be JSON lines");
    if (!fields)
        return true;
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->names[i], FIELD_ROW) != 0)
            return fail(
                err, "is text, which has no fields, but --meta or --where needs the field %.100s",
                fields->names[i]);
    }
    return true;
}

static bool check_input(text_reader *r, failure *err)
{
    if (!r->checked) { /* whether it is meant to be packed as text */
        r->checked = true;
        if (!window_reach(&r->base.window, wrong_file_head_bytes(r->base.options), err))
            return false;
        const wrong_file_head head = head_of(r);
        const corpus_format format = r->base.format;
        if (!wrong_file_check(&head, r->base.options, err))
            return false;
        if ((format == CORPUS_AUTO || format == CORPUS_JSON_LINES) && r->begin == 0 &&
            wrong_file_is_array(&head)) {
            set_format(r, CORPUS_JSON_LINES);
            if (!window_change(&r->base.window, json_array_change, &r->array, err))
                return false;
            if (format == CORPUS_AUTO && !r->base.options->fields_only && !check_array(r, err))
                return false;
        }
    }
    if (r->base.format == CORPUS_AUTO && !decide_format(r, err))
        return false;
    return check_fields(r, err);
}

static bool begin_input(text_reader *r, failure *err)
{
    /* Text that is packed as it is has no fields, and is what `only_text` excludes. */
    static const char *const advice[] = {"; if NULs", ", or use --", ", or add --", "; use --"};
    const reader_options *o = r->base.options;
    const bool advised = !o->fields_only && (o->format == CORPUS_AUTO || !o->only_text);
    const bool done = check_input(r, err);
    for (size_t i = 0; !done && !advised && i < sizeof advice / sizeof *advice; i++) {
        char *at = strstr(err->text, advice[i]);
        if (at)
            *at = 0;
    }
    return done;
}

/* ---- Open, close ---- */

static bool open_text(reader *base, failure *err)
{
    text_reader *r = (text_reader *)base;
    const char *field = corpus_field(base->options);
    r->checked = base->window.part != NULL;
    set_format(r, base->options->format);
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
    if (!reserve_decoded(r, r->n_bytes + 1, err))
        return READER_FAILED;
    const json_line_status status = json_line_text(r->paths, window_text(&r->base.window),
                                                   r->n_bytes, r->decoded, r->base.values, &result);
    const bool is_object = status != JSON_LINE_MALFORMED && status != JSON_LINE_NO_OBJECT;
    if (is_object)
        d->values = r->base.values;
    if (status == JSON_LINE_NULL || (is_object && r->base.options->fields_only))
        return READER_NULL;
    if (status != JSON_LINE_OK) {
        set_reason(r, status, &result);
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
static size_t sample_end(const text_reader *r, size_t n_bytes)
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
        if (is_text && o->sample_bytes && r->n_bytes > o->sample_bytes) {
            r->n_bytes = sample_end(r, o->sample_bytes);
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
    if (!begin_input(r, err))
        return READER_FAILED;
    const bool is_json = base->format == CORPUS_JSON_LINES;
    finish_record(r);
    if (is_json && w->offset == r->begin) {
        if (!window_reach(w, TEXT_BOM_BYTES, err))
            return READER_FAILED;
        window_consume(w, bom_bytes(r));
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
        const bool ends_here = o->on_error == ON_ERROR_FAIL && !o->where;
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
    window *w = &r->base.window;
    if (!begin_input(r, err))
        return -1;
    finish_record(r);
    const uint64_t n_left = to.offset > w->offset ? to.offset - w->offset : 0;
    const uint64_t n_bytes = n_left < max_bytes ? n_left : max_bytes;
    uint64_t n_taken;
    if (!window_take(w, NULL, n_bytes, &n_taken, err))
        return -1;
    if (n_taken < n_bytes) {
        fail_changed(err,
                     "has changed: it ends at byte %" PRIu64
                     ", but an earlier run read up to byte %" PRIu64,
                     w->offset, to.offset);
        return -1;
    }
    r->line = to.line;
    base->n_records = to.n_records;
    return w->offset >= to.offset;
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
    .list_fields = list_fields,
};

void text_reader_restart(reader *base, corpus_format format, bool one_record)
{
    text_reader *r = (text_reader *)base;
    set_format(r, format);
    if (one_record)
        r->terminator_bytes = 0;
    r->begin = r->base.window.offset;
    r->line = 0;
    r->checked = r->at_hand = false;
}
