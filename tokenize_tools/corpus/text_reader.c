/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/json_line.h"
#include "corpus/reader_kind.h"
#include "corpus/wrong_file.h"
#include "base/array.h"

typedef struct text_reader {
    reader base;
    uint64_t begin;         /* where the input begins: a member of an archive not at 0 */
    bool checked;           /* wrong_file_check has passed, or this is a part */
    const char *terminator; /* between documents */
    size_t terminator_bytes;
    uint64_t line; /* of the current document, else of the next one */
    bool in_white; /* only white space so far in a line of JSON lines */

    /* The current document, until the next one is asked for. */
    bool at_hand, in_pieces;
    bool complete; /* its end is in the window, n_bytes further on */
    uint64_t offset;
    size_t n_bytes; /* in the window */

    /* JSON lines: */
    json_paths *paths;
    json_line_scanner *scanner;
    uint8_t *decoded;
    size_t n_decoded, decoded_capacity;
    bool drop;
    char reason[256];
} text_reader;

#define TEXT_BOM_BYTES 3

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

/* Finds the first byte from there on that is not white space; *at is max_piece_bytes if there is
 * none before that. */
static bool find_black(text_reader *r, size_t from, size_t *at, failure *err)
{
    window *w = &r->base.window;
    size_t max_bytes = r->base.options->max_piece_bytes;
    for (*at = from; *at < max_bytes; ++*at) {
        if (!window_reach(&r->base.window, *at + 1, err))
            return false;
        if (*at == window_size(w))
            *at = max_bytes;
        if (*at == max_bytes || !json_is_space(window_text(w)[*at]))
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
        !reserve_decoded(r, line->to - from + JSON_LINE_ROOM, err))
        return false;
    const uint8_t *bytes = window_text(&r->base.window) + from;
    if (whole) {
        line->status =
            json_line_text(r->paths, bytes, line->to - from, r->decoded, NULL, &line->result);
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
        .decompressed = w->codec != NULL,
        .name = w->name,
    };
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
    while (n > 0 && json_is_space(bytes[n - 1]))
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
    first_line line;
    const wrong_file_head head = head_of(r);
    if (!wrong_name_check(&head, err))
        return false;
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
    if (!window_reach(&r->base.window, TEXT_BOM_BYTES, err))
        return false;
    if (window_size(&r->base.window) == 0)
        return true;
    if (!find_black(r, bom_bytes(r), &from, err))
        return false;
    if (from >= r->base.options->max_piece_bytes || window_text(&r->base.window)[from] != '{') {
        set_format(r, CORPUS_TEXT);
        return check_text(r, from, err);
    }
    if (!read_line(r, from, &line, err))
        return false;
    if (line.status == JSON_LINE_OK || line.status == JSON_LINE_NULL) {
        set_format(r, CORPUS_JSON_LINES);
        return true;
    }
    set_reason(r, line.status, &line.result);
    const corpus_list list = r->base.options->list;
    return fail(err,
                "byte %" PRIu64
                ": the first line begins with { but has no %s in the expected field (%s): "
                "use %s to name the field, or --format to name the format",
                from + line.result.error_offset, list == LIST_NONE ? "text" : "list", r->reason,
                list == LIST_NONE     ? "--field"
                : list == LIST_TOKENS ? "--tokens"
                                      : "--parts");
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

static bool begin_input(text_reader *r, failure *err)
{
    if (!r->checked) { /* whether it is meant to be packed as text */
        r->checked = true;
        if (!window_reach(&r->base.window, head_bytes(r), err))
            return false;
        const wrong_file_head head = head_of(r);
        if (!wrong_file_check(&head, r->base.options, err))
            return false;
    }
    return (r->base.format != CORPUS_AUTO || decide_format(r, err)) && check_fields(r, err);
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
        r->scanner = json_line_scanner_new(r->paths);
    }
    return r->scanner || fail_memory(err);
}

static void close_text(reader *base)
{
    text_reader *r = (text_reader *)base;
    free(r->scanner);
    json_paths_free(r->paths);
    free(r->decoded);
}

/* ---- JSON ---- */

/* The end of a line without a text. */
static reader_result json_without_text(text_reader *r, json_line_status status,
                                       const json_line_result *result, reader_text *text)
{
    if (status == JSON_LINE_NULL) {
        text->last = true;
        return READER_NULL;
    }
    set_reason(r, status, result);
    text->reason = r->reason;
    text->bad_offset = r->offset + result->error_offset;
    return READER_BAD;
}

static reader_result read_whole_json(text_reader *r, reader_text *text, failure *err)
{
    json_line_result result;
    if (!reserve_decoded(r, r->n_bytes + 1, err))
        return READER_FAILED;
    json_line_status status = json_line_text(r->paths, window_text(&r->base.window), r->n_bytes,
                                             r->decoded, r->base.values, &result);
    if (status != JSON_LINE_MALFORMED && status != JSON_LINE_NO_OBJECT)
        text->values = r->base.values;
    if (status != JSON_LINE_OK)
        return json_without_text(r, status, &result, text);
    text->bytes = result.text;
    text->n_bytes = result.n_bytes;
    text->lone_surrogates = result.lone_surrogates;
    if (r->paths->marks)
        text->marks = r->base.values[r->paths->fields->n_fields - 1];
    return READER_TEXT;
}

/* ---- Where documents end ---- */

/* The current document and its terminator, which may be missing at the end of the input. */
static size_t finished_bytes(const text_reader *r)
{
    size_t n_behind = window_size(&r->base.window) - r->n_bytes;
    return r->n_bytes + (r->terminator_bytes < n_behind ? r->terminator_bytes : n_behind);
}

static void finish_document(text_reader *r)
{
    if (r->at_hand) {
        window_consume(&r->base.window, finished_bytes(r));
        r->line++;
    }
    r->at_hand = false;
}

static bool all_white(const text_reader *r, size_t n_bytes)
{
    const uint8_t *bytes = window_text(&r->base.window);
    size_t i = 0;
    while (i < n_bytes && json_is_space(bytes[i]))
        i++;
    return i == n_bytes;
}

/* Skips white space up to and including the end of the line. */
static bool skip_white(text_reader *r, failure *err)
{
    window *w = &r->base.window;
    while (r->in_white) {
        const uint8_t *bytes = window_text(w);
        size_t n = 0;
        while (n < window_size(w) && bytes[n] != '\n' && json_is_space(bytes[n]))
            n++;
        bool newline = n < window_size(w) && bytes[n] == '\n';
        r->in_white = n == window_size(w) && !w->at_end;
        r->line += newline;
        window_consume(w, n + newline);
        if (r->in_white && !window_fill(w, err))
            return false;
    }
    return true;
}

/* READER_TEXT: *n_bytes is the length of the document if it is in the window, else SIZE_MAX. */
static reader_result find_document(text_reader *r, size_t *n_bytes, failure *err)
{
    window *w = &r->base.window;
    size_t max_bytes = r->base.options->max_piece_bytes;
    for (;;) {
        if (!skip_white(r, err))
            return READER_FAILED;
        bool ends = window_find(w, r->terminator, r->terminator_bytes, n_bytes) || w->at_end;
        /* An input that is one document is a document even if it is empty. */
        const bool one = r->base.format == CORPUS_TEXT && r->terminator_bytes == 0 && r->line == 0;
        if (w->at_end && window_size(w) == 0 && !one)
            return READER_END;
        bool is_long = *n_bytes > max_bytes;
        if (!ends && !is_long) {
            if (!window_fill(w, err))
                return READER_FAILED;
            continue;
        }
        /* If a line begins with more white space than a document may have bytes, it is skipped. */
        size_t n_seen = is_long ? max_bytes : *n_bytes;
        r->in_white = r->base.format == CORPUS_JSON_LINES && all_white(r, n_seen);
        if (!r->in_white) {
            *n_bytes = is_long ? SIZE_MAX : *n_bytes;
            return READER_TEXT;
        }
        window_consume(w, n_seen);
    }
}

/* ---- Documents in pieces ---- */

static reader_result next_text_piece(text_reader *r, reader_text *text, failure *err)
{
    window *w = &r->base.window;
    window_consume(w, r->n_bytes - r->base.n_kept);
    for (;;) {
        r->complete = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes) || w->at_end;
        if (r->complete || r->n_bytes > r->base.n_kept)
            break;
        if (!window_fill(w, err))
            return READER_FAILED;
    }
    r->base.n_kept = 0;
    text->bytes = window_text(w);
    text->n_bytes = r->n_bytes;
    text->last = r->complete;
    return READER_TEXT;
}

static reader_result end_json_pieces(text_reader *r, reader_text *text)
{
    json_line_result result;
    json_line_status status = json_line_end(r->scanner, &result);
    if (status != JSON_LINE_OK)
        return json_without_text(r, status, &result, text);
    text->last = true;
    text->lone_surrogates = result.lone_surrogates;
    return READER_TEXT;
}

static void give_decoded(text_reader *r, reader_text *text)
{
    text->bytes = r->decoded;
    text->n_bytes = r->n_decoded;
    text->drop = r->drop;
    r->drop = false;
    r->base.n_kept = 0;
}

static reader_result next_json_piece(text_reader *r, reader_text *text, failure *err)
{
    window *w = &r->base.window;
    if (r->base.n_kept)
        memmove(r->decoded, r->decoded + r->n_decoded - r->base.n_kept, r->base.n_kept);
    r->n_decoded = r->base.n_kept;
    while (r->n_decoded == r->base.n_kept && !r->drop) {
        r->complete = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes) || w->at_end;
        if (!reserve_decoded(r, r->n_decoded + r->n_bytes + JSON_LINE_ROOM, err))
            return READER_FAILED;
        if (r->n_bytes > 0) {
            const uint64_t n_begun = json_line_n_begun(r->scanner);
            const json_line_fed fed =
                json_line_feed(r->scanner, window_text(w), r->n_bytes, r->decoded + r->n_decoded);
            window_consume(w, fed.n_bytes);
            r->n_bytes -= fed.n_bytes;
            if (r->base.wanted == 0 || n_begun == r->base.wanted)
                r->n_decoded += fed.text_bytes;
            if (fed.begins && (r->base.wanted == 0 || n_begun + 1 == r->base.wanted)) {
                r->n_decoded = 0;
                r->drop = true;
            }
            if (fed.malformed)
                return end_json_pieces(r, text);
        } else if (r->complete) {
            give_decoded(r, text);
            return end_json_pieces(r, text);
        } else if (!window_fill(w, err)) {
            return READER_FAILED;
        }
    }
    give_decoded(r, text);
    return READER_TEXT;
}

static reader_result next_piece(text_reader *r, reader_text *text, failure *err)
{
    reader_result result = r->base.format == CORPUS_JSON_LINES ? next_json_piece(r, text, err)
                                                               : next_text_piece(r, text, err);
    r->in_pieces = !text->last;
    return result;
}

/* ---- Documents ---- */

static reader_result next_document(text_reader *r, reader_text *text, failure *err)
{
    bool json = r->base.format == CORPUS_JSON_LINES;
    window *w = &r->base.window;
    finish_document(r);
    if (json && r->base.window.offset == r->begin) {
        if (!window_reach(&r->base.window, TEXT_BOM_BYTES, err))
            return READER_FAILED;
        window_consume(&r->base.window, bom_bytes(r));
    }
    size_t n_bytes;
    reader_result result = find_document(r, &n_bytes, err);
    if (result != READER_TEXT)
        return result;
    r->at_hand = true;
    r->base.n_records++;
    r->offset = r->base.window.offset;
    r->base.n_kept = 0;
    r->in_pieces = n_bytes == SIZE_MAX;
    r->complete = !r->in_pieces;
    r->n_bytes = r->in_pieces ? 0 : n_bytes;
    text->first = true;
    if (r->in_pieces && json && (r->base.values || r->paths->lists)) {
        snprintf(r->reason, sizeof r->reason,
                 "longer than %zu bytes, so its fields are not read; raise --memory",
                 r->base.options->max_piece_bytes);
        text->reason = r->reason;
        text->bad_offset = r->offset;
        /* skip_document begins with what is in the window. */
        r->complete = window_find(w, "\n", 1, &r->n_bytes) || w->at_end;
        return READER_BAD;
    }
    if (!json)
        text->values = r->base.values;
    if (r->in_pieces) {
        r->base.wanted = 0;
        r->drop = false;
        r->n_decoded = 0;
        json_line_begin(r->scanner);
        return next_piece(r, text, err);
    }
    text->last = true;
    if (json)
        return read_whole_json(r, text, err);
    text->bytes = window_text(&r->base.window);
    text->n_bytes = r->n_bytes;
    return READER_TEXT;
}

static reader_result next_text(reader *base, reader_text *text, failure *err)
{
    text_reader *r = (text_reader *)base;
    if (!begin_input(r, err))
        return READER_FAILED;
    reader_result result = r->in_pieces ? next_piece(r, text, err) : next_document(r, text, err);
    text->offset = r->offset;
    text->line = r->line;
    text->n_begun = json_line_n_begun(r->scanner);
    return result;
}

static bool skip_document(reader *base, reader_raw *raw, failure *err)
{
    text_reader *r = (text_reader *)base;
    window *w = &r->base.window;
    bool whole = r->complete && w->offset == r->offset;
    *raw = (reader_raw){.bytes = whole ? window_text(w) : NULL, .begin = r->offset};
    while (!r->complete) {
        window_consume(w, r->n_bytes);
        if (!window_fill(w, err))
            return false;
        r->complete = window_find(w, r->terminator, r->terminator_bytes, &r->n_bytes) || w->at_end;
    }
    raw->end = w->offset + r->n_bytes;
    r->in_pieces = false;
    return true;
}

static int seek_place(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    text_reader *r = (text_reader *)base;
    window *w = &r->base.window;
    if (!begin_input(r, err))
        return -1;
    finish_document(r);
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
    const corpus_options *o = base->options;
    tokmap_value_type types[FIELD_LIST_MAX];
    failure why;
    char text[640];
    for (size_t i = 0; o->fields && i < o->fields->n_fields; i++) {
        const size_t n = (size_t)snprintf(text, sizeof text, "%.200s: ", base->window.name);
        types[i] = json_paths_type(p, i);
        if (json_paths_missing(p, i, text + n, sizeof text - n))
            o->note(o->context, text);
    }
    if (!o->fields || !o->where || where_check_types(o->where, types, &why))
        return;
    fail(&why, "%.200s: --where: character %" PRIu64 ": %s in every record, which never holds",
         base->window.name, why.place, why.text);
    o->note(o->context, why.text);
}

const reader_kind text_reader_kind = {
    .reader_bytes = sizeof(text_reader),
    .open = open_text,
    .close = close_text,
    .next = next_text,
    .skip = skip_document,
    .seek = seek_place,
    .where = place_now,
    .describe = describe_place,
    .note_fields = note_fields,
};

void text_reader_restart(reader *base, corpus_format format, bool one_record)
{
    text_reader *r = (text_reader *)base;
    set_format(r, format);
    if (one_record)
        r->terminator_bytes = 0;
    r->begin = r->base.window.offset;
    r->line = 0;
    r->checked = r->in_white = r->at_hand = r->in_pieces = false;
}
