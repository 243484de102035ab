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

bool text_reader_reserve(text_reader *r, size_t n_bytes, corpus_error *err)
{
    if (n_bytes <= r->decoded_capacity)
        return true;
    uint8_t *decoded = realloc(r->decoded, n_bytes + n_bytes / 4);
    if (!decoded)
        return window_fail(&r->base.window, ENOMEM, err);
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

bool text_reader_fill(text_reader *r, size_t n_bytes, corpus_error *err)
{
    while (window_size(&r->base.window) < n_bytes && !r->base.window.at_end) {
        if (!window_fill(&r->base.window, err))
            return false;
    }
    return true;
}

/* Finds the first byte that is not white space; *at is max_piece_bytes if there is none before
 * that. */
static bool find_black(text_reader *r, size_t *at, corpus_error *err)
{
    window *w = &r->base.window;
    size_t max_bytes = r->base.options->max_piece_bytes;
    if (!text_reader_fill(r, TEXT_BOM_BYTES, err))
        return false;
    for (*at = text_reader_bom_bytes(r); *at < max_bytes; ++*at) {
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
static bool find_line_end(text_reader *r, size_t from, size_t *at, bool *whole, corpus_error *err)
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

static json_line_status parse_line(text_reader *r, size_t from, size_t n_bytes, bool whole,
                                   json_line_result *result)
{
    const uint8_t *line = window_text(&r->base.window) + from;
    if (whole)
        return json_line_text(&r->json, line, n_bytes, r->decoded, result);
    json_line_begin(r->scanner);
    for (size_t at = 0; at < n_bytes;) {
        json_line_fed fed = json_line_feed(r->scanner, line + at, n_bytes - at, r->decoded);
        if (fed.malformed)
            return json_line_end(r->scanner, result);
        at += fed.n_bytes;
    }
    return JSON_LINE_OK; /* no error in the part that was read */
}

/* Refuses an input that is not meant to be packed as text. */
static bool check_head(text_reader *r, corpus_error *err)
{
    const window *w = &r->base.window;
    size_t wanted =
        r->base.options->format == CORPUS_AUTO ? WRONG_FILE_HEAD_BYTES : WRONG_FILE_ARCHIVE_BYTES;
    if (wanted > r->base.options->max_piece_bytes)
        wanted = r->base.options->max_piece_bytes;
    char text[256];
    r->checked = true;
    if (!text_reader_fill(r, wanted, err))
        return false;
    const wrong_file_head head = {
        .bytes = window_text(w),
        .n_bytes = window_size(w) < wanted ? window_size(w) : wanted,
        .whole = window_size(w) <= wanted && w->at_end,
        .decompressed = stream_codec(w->stream) != NULL,
    };
    if (!wrong_file_find(&head, r->base.options, text, sizeof text))
        return true;
    *err = (corpus_error){0};
    snprintf(err->text, sizeof err->text, "%.200s: %s", w->name, text);
    return false;
}

/* Decides by at most max_piece_bytes of the first line. */
static bool decide_format(text_reader *r, corpus_error *err)
{
    size_t from, to;
    bool whole;
    json_line_result result;
    if (!find_black(r, &from, err))
        return false;
    if (from >= r->base.options->max_piece_bytes || window_text(&r->base.window)[from] != '{') {
        text_reader_set_format(r, CORPUS_TEXT);
        return true;
    }
    if (!find_line_end(r, from, &to, &whole, err) ||
        !text_reader_reserve(r, to - from + JSON_LINE_ROOM, err))
        return false;
    json_line_status status = parse_line(r, from, to - from, whole, &result);
    if (status == JSON_LINE_OK || status == JSON_LINE_NULL) {
        text_reader_set_format(r, CORPUS_JSON_LINES);
        return true;
    }
    text_reader_set_reason(r, status, &result);
    *err = (corpus_error){0};
    snprintf(err->text, sizeof err->text,
             "%.200s: byte %" PRIu64
             ": the first line begins with { but has no text in the expected field (%s): "
             "use --field to name the field, or --format to name the format",
             r->base.window.name, from + result.error_offset, r->reason);
    return false;
}

/* Only records of JSON have fields. */
static bool check_fields(const text_reader *r, corpus_error *err)
{
    const field_list *fields = r->base.options->fields;
    if (!fields || r->base.format == CORPUS_JSON_LINES)
        return true;
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->names[i], FIELD_ROW) == 0)
            continue;
        *err = (corpus_error){0};
        snprintf(err->text, sizeof err->text,
                 "%.200s: is text, which has no fields, but --meta or --where needs the field "
                 "%.100s",
                 r->base.window.name, fields->names[i]);
        return false;
    }
    return true;
}

bool text_reader_begin(text_reader *r, corpus_error *err)
{
    return (r->checked || check_head(r, err)) &&
           (r->base.format != CORPUS_AUTO || decide_format(r, err)) && check_fields(r, err);
}
