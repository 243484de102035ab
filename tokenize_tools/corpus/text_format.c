/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/text_reader_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/wrong_file.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

void text_reader_set_format(text_reader *r, corpus_format format)
{
    bool text = format == CORPUS_TEXT;
    r->base.format = format;
    r->terminator = text ? r->base.options->separator : "\n";
    r->terminator_bytes = text ? r->base.options->separator_bytes : 1;
}

bool text_reader_reserve(text_reader *r, size_t n_bytes, failure *err)
{
    if (n_bytes <= r->decoded_capacity)
        return true;
    uint8_t *decoded = realloc(r->decoded, n_bytes + n_bytes / 4);
    if (!decoded)
        return fail_memory(err);
    r->decoded = decoded;
    r->decoded_capacity = n_bytes + n_bytes / 4;
    return true;
}

void text_reader_set_reason(text_reader *r, json_line_status status, const json_line_result *result)
{
    const char *field = r->base.options->field ? r->base.options->field : "text";
    if (status == JSON_LINE_MALFORMED)
        snprintf(r->reason, sizeof r->reason, "not JSON: %s", result->reason);
    else if (status == JSON_LINE_NO_FIELD)
        snprintf(r->reason, sizeof r->reason, "%s: \"%.100s\"", result->reason, field);
    else
        snprintf(r->reason, sizeof r->reason, "%s", result->reason);
}

size_t text_reader_bom_bytes(const text_reader *r)
{
    const window *w = &r->base.window;
    bool found = w->offset == r->begin && window_size(w) >= TEXT_BOM_BYTES &&
                 memcmp(window_text(w), byte_order_mark, TEXT_BOM_BYTES) == 0;
    return found ? TEXT_BOM_BYTES : 0;
}

bool text_reader_fill(text_reader *r, size_t n_bytes, failure *err)
{
    while (window_size(&r->base.window) < n_bytes && !r->base.window.at_end) {
        if (!window_fill(&r->base.window, err))
            return false;
    }
    return true;
}

/* Finds the first byte from there on that is not white space; *at is max_piece_bytes if there is
 * none before that. */
static bool find_black(text_reader *r, size_t from, size_t *at, failure *err)
{
    window *w = &r->base.window;
    size_t max_bytes = r->base.options->max_piece_bytes;
    for (*at = from; *at < max_bytes; ++*at) {
        if (!text_reader_fill(r, *at + 1, err))
            return false;
        if (*at == window_size(w))
            *at = max_bytes;
        if (*at == max_bytes || !text_is_white(window_text(w)[*at]))
            return true;
    }
    return true;
}

/* Finds the end of the line; max_piece_bytes and not `whole` if it is longer. */
static bool find_line_end(text_reader *r, size_t from, size_t *at, bool *whole, failure *err)
{
    window *w = &r->base.window;
    size_t max_bytes = r->base.options->max_piece_bytes;
    for (*at = from;;) {
        const uint8_t *newline = memchr(window_text(w) + *at, '\n', window_size(w) - *at);
        *at = newline ? (size_t)(newline - window_text(w)) : window_size(w);
        *whole = *at <= max_bytes && (newline || w->at_end);
        if (*whole)
            return true;
        if (*at > max_bytes) {
            *at = max_bytes;
            return true;
        }
        if (!window_fill(w, err))
            return false;
    }
}

/* false: not JSON; json_line_end gives the reason. */
static bool scan_bytes(text_reader *r, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes;) {
        json_line_fed fed = json_line_feed(r->scanner, bytes + at, n_bytes - at, r->decoded);
        if (fed.malformed)
            return false;
        at += fed.n_bytes;
    }
    return true;
}

/* A line, or the part of it that is not longer than max_piece_bytes. */
typedef struct first_line {
    size_t from, to;
    json_line_status status; /* OK for a part without an error */
    json_line_result result;
} first_line;

/* Parses the line that begins at `from`. */
static bool read_line(text_reader *r, size_t from, first_line *line, failure *err)
{
    bool whole;
    *line = (first_line){.from = from};
    if (!find_line_end(r, from, &line->to, &whole, err) ||
        !text_reader_reserve(r, line->to - from + JSON_LINE_ROOM, err))
        return false;
    const uint8_t *bytes = window_text(&r->base.window) + from;
    if (whole) {
        line->status = json_line_text(&r->json, bytes, line->to - from, r->decoded, &line->result);
        return true;
    }
    json_line_begin(r->scanner);
    if (!scan_bytes(r, bytes, line->to - from))
        line->status = json_line_end(r->scanner, &line->result);
    return true;
}

/* ---- Refusals ---- */

static size_t head_bytes(const text_reader *r)
{
    const corpus_options *o = r->base.options;
    const size_t n = o->format == CORPUS_AUTO ? WRONG_FILE_HEAD_BYTES : WRONG_FILE_ARCHIVE_BYTES;
    return n < o->max_piece_bytes ? n : o->max_piece_bytes;
}

static wrong_file_head head_of(const text_reader *r)
{
    const window *w = &r->base.window;
    const size_t n = head_bytes(r);
    return (wrong_file_head){
        .bytes = window_text(w),
        .n_bytes = window_size(w) < n ? window_size(w) : n,
        .whole = window_size(w) <= n && w->at_end,
        .decompressed = stream_codec(w->stream) != NULL,
        .name = w->name,
    };
}

/* Refuses an input that is not meant to be packed as text. */
static bool check_head(text_reader *r, failure *err)
{
    char why[256];
    r->checked = true;
    if (!text_reader_fill(r, head_bytes(r), err))
        return false;
    const wrong_file_head head = head_of(r);
    return !wrong_file_find(&head, r->base.options, why, sizeof why) || fail(err, "%s", why);
}

/* Whether the line is an object whose beginning is missing. */
static bool is_cut_line(text_reader *r, const first_line *line)
{
    /* Where it may have been cut: in a string, in a key, before a key and so on; then one level
     * further down. */
    static const char *const missing[] = {
        "{\"\":\"",       "{\"",       "{",        "{\"\"",       "{\"\":",       "{\"\":1",
        "{\"\":{\"\":\"", "{\"\":{\"", "{\"\":{",  "{\"\":{\"\"", "{\"\":{\"\":", "{\"\":{\"\":1",
        "{\"\":[\"",      "{\"\":[",   "{\"\":[1",
    };
    const uint8_t *bytes = window_text(&r->base.window) + line->from;
    size_t n = line->to - line->from;
    while (n > 0 && text_is_white(bytes[n - 1]))
        n--;
    if (n == 0 || bytes[n - 1] != '}' || !memchr(bytes, '"', n))
        return false;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        uint8_t begin[16 + 64] = {0}; /* readable bytes for the scanner */
        json_line_result result;
        const size_t n_begin = strlen(missing[i]);
        memcpy(begin, missing[i], n_begin);
        json_line_begin(r->scanner);
        if (scan_bytes(r, begin, n_begin) && scan_bytes(r, bytes, n) &&
            json_line_end(r->scanner, &result) != JSON_LINE_MALFORMED)
            return true;
    }
    return false;
}

/* Refuses text that looks like something else of which a part is missing. `from` is its first byte
 * that is not white space. */
static bool check_text(text_reader *r, size_t from, failure *err)
{
    char why[256];
    first_line line;
    const wrong_file_head head = head_of(r);
    if (wrong_name_find(&head, why, sizeof why))
        return fail(err, "%s", why);
    if (from >= r->base.options->max_piece_bytes)
        return true;
    if (!read_line(r, from, &line, err))
        return false;
    bool cut = is_cut_line(r, &line);
    if (!cut && !find_black(r, line.to, &from, err))
        return false;
    if (!cut && from < r->base.options->max_piece_bytes &&
        window_text(&r->base.window)[from] == '{') {
        if (!read_line(r, from, &line, err))
            return false;
        cut = line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL;
    }
    return !cut || fail(err, "looks like JSON lines whose first line is cut or is not an object; "
                             "repair or remove it, or use --format text to pack it as it is");
}

/* ---- The format ---- */

/* Decides by at most max_piece_bytes of the first line. An empty input has no format. */
static bool decide_format(text_reader *r, failure *err)
{
    size_t from;
    first_line line;
    if (!text_reader_fill(r, TEXT_BOM_BYTES, err))
        return false;
    if (window_size(&r->base.window) == 0)
        return true;
    if (!find_black(r, text_reader_bom_bytes(r), &from, err))
        return false;
    if (from >= r->base.options->max_piece_bytes || window_text(&r->base.window)[from] != '{') {
        text_reader_set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    if (!read_line(r, from, &line, err))
        return false;
    if (line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL) {
        text_reader_set_format(r, CORPUS_JSON_LINES);
        return true;
    }
    text_reader_set_reason(r, line.status, &line.result);
    return fail(err,
                "byte %" PRIu64
                ": the first line begins with { but has no text in the expected field (%s): "
                "use --field to name the field, or --format to name the format",
                from + line.result.error_offset, r->reason);
}

/* Only records of JSON have fields. */
static bool check_fields(const text_reader *r, failure *err)
{
    const field_list *fields = r->base.options->fields;
    if (!fields || r->base.format == CORPUS_JSON_LINES || r->base.format == CORPUS_AUTO)
        return true;
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->names[i], FIELD_ROW) != 0)
            return fail(
                err, "is text, which has no fields, but --meta or --where needs the field %.100s",
                fields->names[i]);
    }
    return true;
}

bool text_reader_begin(text_reader *r, failure *err)
{
    return (r->checked || check_head(r, err)) &&
           (r->base.format != CORPUS_AUTO || decide_format(r, err)) && check_fields(r, err);
}
