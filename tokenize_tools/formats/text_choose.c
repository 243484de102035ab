/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/json_reader.h"
#include "formats/text_reader.h"
#include "formats/wrong_file.h"

/* How much of a text is looked at to find whether it is text. */
#define LOOK_BYTES ((size_t)16 << 20)

static const char byte_order_mark[] = "\xef\xbb\xbf";

void text_set_format(text_reader *r, corpus_format format)
{
    bool text = format == CORPUS_TEXT;
    r->base.format = format;
    r->terminator = text ? r->base.options->separator : "\n";
    r->terminator_bytes = text ? r->base.options->separator_bytes : 1;
}

bool text_reserve_decoded(text_reader *r, size_t n_bytes, failure *err)
{
    return array_reserve(&r->decoded, &r->decoded_capacity, n_bytes, 1) || fail_memory(err);
}

void text_set_reason(text_reader *r, json_line_status status, const json_line_result *result)
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

size_t text_bom_bytes(const text_reader *r)
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
    if (!text_reserve_decoded(r, line->to - from + 1, err))
        return false;
    line->status = json_line_text(r->paths, window_text(&r->base.window) + from, line->to - from,
                                  r->decoded, NULL, &line->result);
    return true;
}

/* ---- Refusals ---- */

/* Refuses text whose second line is a JSON object with the field. `from` is its first byte that is
 * not white space. */
static bool check_text(text_reader *r, size_t from, failure *err)
{
    first_line line;
    const wrong_file_head head = wrong_file_head_of(&r->base.window, r->base.options);
    if (!wrong_name_check(&head, err))
        return false;
    if (from >= LOOK_BYTES)
        return true;
    if (!read_line(r, from, LOOK_BYTES, &line, err) || !find_nonblank(r, line.to, &from, err))
        return false;
    if (from >= LOOK_BYTES || window_text(&r->base.window)[from] != '{')
        return true;
    if (!read_line(r, from, LOOK_BYTES, &line, err))
        return false;
    const bool is_object = line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL;
    return !(line.whole && is_object) ||
           fail(err, "looks like JSON lines whose first line is cut or is not an object; "
                     "repair or remove it, or use --format text to pack it as it is");
}

/* "--field with one of title, meta.body": the fields of the object that could hold the text or the
 * list. */
typedef struct field_names {
    json_kind wanted;
    char text[400];
    size_t n_bytes;
} field_names;

static void add_fields(field_names *names, json_reader *j, const char *folder)
{
    enum {
        DEEPEST = 3
    };
    json_string key;
    char path[160];
    json_begin(j, JSON_OBJECT);
    while (json_next_key(j, &key)) {
        const json_kind kind = json_peek(j);
        snprintf(path, sizeof path, "%s%s%.*s", folder, *folder ? "." : "",
                 (int)MIN(key.n_bytes, 100), key.s);
        if (kind == JSON_OBJECT && j->depth < DEEPEST) {
            add_fields(names, j, path);
            continue;
        }
        const size_t room = sizeof names->text - names->n_bytes;
        if (kind == names->wanted && strlen(path) + strlen(", ") < room)
            names->n_bytes += (size_t)snprintf(names->text + names->n_bytes, room, "%s%s",
                                               names->n_bytes ? ", " : "", path);
        json_skip(j);
    }
}

/* Returns what to do about an object without the field, which begins at `from`; SIZE_MAX: its
 * fields are not known. */
static field_names advise_fields(const text_reader *r, size_t from)
{
    const window *w = &r->base.window;
    const corpus_list list = r->base.options->list;
    const char *option = list == LIST_NONE     ? "--field"
                         : list == LIST_TOKENS ? "--tokens"
                                               : "--parts";
    field_names names = {.wanted = list == LIST_NONE ? JSON_STRING : JSON_ARRAY}, advice = {0};
    if (from < window_size(w) && window_text(w)[from] == '{') {
        json_reader j;
        json_reader_init(&j, window_text(w) + from, window_size(w) - from);
        add_fields(&names, &j, "");
        json_reader_free(&j);
    }
    snprintf(advice.text, sizeof advice.text, "%s %s%.350s", option,
             names.n_bytes ? "with one of " : "to name the field", names.text);
    return advice;
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
    if (!copy || !text_reserve_decoded(r, n + 1, &ignored)) {
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
    first_line line = {.to = text_bom_bytes(r), .status = JSON_LINE_OK};
    size_t from;
    if (!find_nonblank(r, line.to, &from, err))
        return false;
    const size_t first = from;
    const uint8_t *begin = NULL;
    if (first < window_size(w))
        begin = memchr(window_text(w) + first, '{', window_size(w) - first);
    const size_t object = begin ? (size_t)(begin - window_text(w)) : first;
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
    text_set_reason(r, line.status, &line.result);
    fail(err,
         "byte %zu: no object of the array has the expected field (%s): use %s, or --format text "
         "to pack it as it is",
         first, r->reason, advise_fields(r, object).text);
    return fail_kind(err, OTHER_JSON);
}

/* Decides by the first line. An empty input has no format. */
static bool decide_format(text_reader *r, failure *err)
{
    size_t from;
    first_line line;
    bool are_lines;
    const wrong_file_head head = wrong_file_head_of(&r->base.window, r->base.options);
    if (!window_reach(&r->base.window, TEXT_BOM_BYTES, err))
        return false;
    if (window_size(&r->base.window) == 0)
        return true;
    if (!find_nonblank(r, text_bom_bytes(r), &from, err))
        return false;
    const bool is_object = from < LOOK_BYTES && window_text(&r->base.window)[from] == '{';
    if (r->base.options->fields_only) {
        text_set_format(r, CORPUS_JSON_LINES);
        return is_object || wrong_name_may_be_json(head.name) || wrong_name_check(&head, err);
    }
    if (!is_object) {
        text_set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    if (!read_line(r, from, r->base.options->max_document, &line, err))
        return false;
    /* A line that is too long is refused when it is read. */
    if (!line.whole || line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL) {
        text_set_format(r, CORPUS_JSON_LINES);
        return true;
    }
    text_set_reason(r, line.status, &line.result);
    const json_line_result result = line.result; /* the next line is parsed to the same place */
    if (!look_at_next(r, &line, &are_lines, err))
        return false;
    const bool may_be_json = wrong_name_may_be_json(head.name);
    if (line.status == JSON_LINE_MALFORMED && !may_be_json) {
        text_set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    fail(err,
         "byte %" PRIu64 ": the first line begins with { but has no %s in the expected field (%s): "
         "use %s, or --format to name the format",
         from + result.error_offset, r->base.options->list == LIST_NONE ? "text" : "list",
         r->reason, advise_fields(r, line.status == JSON_LINE_NO_FIELD ? from : SIZE_MAX).text);
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
        const wrong_file_head head = wrong_file_head_of(&r->base.window, r->base.options);
        const corpus_format format = r->base.format;
        if (!wrong_file_check(&head, r->base.options, err))
            return false;
        if ((format == CORPUS_AUTO || format == CORPUS_JSON_LINES) && r->begin == 0 &&
            wrong_file_is_array(&head)) {
            text_set_format(r, CORPUS_JSON_LINES);
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

bool text_begin_input(text_reader *r, failure *err)
{
    return check_input(r, err) || wrong_file_strip(r->base.options, err);
}
