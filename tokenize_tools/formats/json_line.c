/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over the parts of a line: brackets, commas, strings, numbers, words. Only the
 * inside of strings, which is nearly all of a line, is read by vectors (json_span.h). A string
 * without escapes is not copied. */
#include "formats/json_line.h"

#include <math.h>
#include <string.h>

#include "formats/json_span.h"
#include "base/number.h"
#include "base/json_parts.h"

typedef enum state {
    EXPECT_VALUE,
    EXPECT_ELEMENT_OR_END,
    EXPECT_KEY,
    EXPECT_KEY_OR_END,
    EXPECT_COLON,
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING
} state;

typedef enum use { /* what the current string is needed for */
    USE_NONE,
    USE_KEY,  /* a key of an object on a path */
    USE_TEXT, /* it is the text */
    USE_VALUE /* it is the value of a field that is not the text */
} use;

typedef struct line_reader {
    json_paths *paths;
    const json_span_calls *calls;
    tokmap_value *values; /* NULL: not wanted */

    const uint8_t *line, *at, *end;
    const char *reason; /* set if the line is malformed; `at` is the place */

    state state;
    unsigned depth;                        /* open containers */
    uint64_t objects[JSON_MAX_DEPTH / 64]; /* which of them are objects */
    bool in_object;                        /* the innermost one is */

    /* The first `level` open containers are objects on a path, the last one at the key `object`.
     * value: the key of the next value, if it is on a path too. */
    unsigned level;
    json_key *object, *value;
    bool no_object;       /* the value of the line is not an object */
    const json_key *list; /* whose value, a list that is wanted, is open; or NULL */
    const uint8_t *list_at;
    unsigned list_depth;

    /* For the last value at the path of the text: a duplicate replaces the one before. */
    bool found, is_null;
    const char *not_found;
    const uint8_t *not_found_at;
    bool had_string; /* one of them was a string */

    use use;             /* of the current string */
    bool has_lone;       /* a lone surrogate is in the current string */
    size_t key_bytes;    /* of the current key, if it has an escape */
    const uint8_t *name; /* the last key of the line itself that can be the name of a field */
    size_t name_bytes;

    uint8_t *out; /* where the next decoded string goes */
    const uint8_t *text;
    size_t text_bytes;
    uint64_t lone_surrogates;
} line_reader;

/* ---- The paths ---- */

static void set_not_found(line_reader *r, const char *why)
{
    r->found = r->is_null = false;
    r->not_found = why;
    r->not_found_at = r->at;
}

static bool takes_bare_string(const line_reader *r)
{
    const json_key *key = json_key_find(r->paths->keys, "text", 4);
    return r->paths->bare_string && key && key->is_text;
}

/* A string that is not a key begins: whether it is the text. */
static bool begins_text(const line_reader *r)
{
    return r->depth == 0 ? takes_bare_string(r) : r->value && r->value->is_text && !r->paths->lists;
}

static bool is_marks(const line_reader *r, const json_key *key)
{
    return r->paths->marks && key->field == r->paths->fields->n_fields - 1;
}

/* The value of a field, or of none. That of marks is only a list. */
static tokmap_value *value_of(const line_reader *r)
{
    const bool wanted =
        r->values && r->value && r->value->field != JSON_NO_FIELD && !is_marks(r, r->value);
    return wanted ? &r->values[r->value->field] : NULL;
}

/* ---- Lists ---- */

/* At the bracket that closes it. */
static void end_list(line_reader *r)
{
    const size_t n_bytes = (size_t)(r->at + 1 - r->list_at);
    if (r->list->is_text) {
        r->found = true;
        r->text = r->list_at;
        r->text_bytes = n_bytes;
    }
    if (r->values && is_marks(r, r->list)) {
        r->values[r->list->field] = (tokmap_value){
            .type = TOKMAP_VALUE_STRING, .text = (const char *)r->list_at, .text_bytes = n_bytes};
    }
    r->list = NULL;
}

/* The bracket at the end of a list of nothing but whole numbers; NULL: it is another list, or has
 * an error. */
static const uint8_t *end_of_numbers(const uint8_t *at, const uint8_t *end)
{
    do {
        at++; /* the bracket or comma before */
        while (at < end && json_is_space(*at))
            at++;
        at += at < end && *at == '-';
        const uint8_t *const digits = at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        if (at == digits || (*digits == '0' && at > digits + 1))
            return NULL;
        while (at < end && json_is_space(*at))
            at++;
    } while (at < end && *at == ',');
    return at < end && *at == ']' ? at : NULL;
}

/* ---- Strings ---- */

static void add_to_key(line_reader *r, const uint8_t *bytes, size_t n_bytes)
{
    const json_paths *p = r->paths;
    if (r->key_bytes <= p->buffer_bytes && n_bytes <= p->buffer_bytes - r->key_bytes)
        memcpy(p->buffer + r->key_bytes, bytes, n_bytes);
    r->key_bytes += n_bytes;
}

static void emit(line_reader *r, const uint8_t *bytes, size_t n_bytes)
{
    if (r->use == USE_KEY)
        add_to_key(r, bytes, n_bytes);
    if (r->use >= USE_TEXT) {
        memcpy(r->out, bytes, n_bytes);
        r->out += n_bytes;
    }
}

static void read_lone_surrogate(line_reader *r)
{
    emit(r, (const uint8_t *)"\xef\xbf\xbd", 3);
    r->has_lone = true; /* a key of a path has none, not even a key with U+FFFD in it */
    r->lone_surrogates += r->use == USE_TEXT;
    r->at += sizeof "uXXXX" - 1;
}

/* At the backslash. */
static void read_escape(line_reader *r)
{
    if (++r->at == r->end)
        return;
    const json_escape e = json_read_escape(r->at, (size_t)(r->end - r->at));
    if (e.is_lone) {
        read_lone_surrogate(r);
        return;
    }
    r->at += e.n_read;
    if (!e.why)
        emit(r, e.text, e.n_bytes);
    else if (r->at < r->end)
        r->reason = e.why;
}

static void read_plain(line_reader *r)
{
    const size_t n_left = (size_t)(r->end - r->at);
    if (r->use >= USE_TEXT) {
        const json_span_moved moved = r->calls->decode(r->at, n_left, r->out);
        r->at += moved.read;
        r->out += moved.written;
        return;
    }
    const size_t n_plain = r->calls->find(r->at, n_left);
    if (r->use == USE_KEY)
        add_to_key(r, r->at, n_plain);
    r->at += n_plain;
}

/* Reads to the quote at the end of a string, from its first byte that is not plain. */
static void read_escaped(line_reader *r)
{
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\')
            read_escape(r);
        else
            r->reason = "a control character in a string";
        if (r->reason)
            return;
        read_plain(r);
    }
}

/* Reads a string, from quote to quote. One without escapes is not copied. NULL: the line is
 * malformed. */
static const uint8_t *read_string(line_reader *r, size_t *n_bytes)
{
    const uint8_t *const from = ++r->at, *const out = r->out;
    const size_t n_plain = r->calls->find(from, (size_t)(r->end - from));
    const bool copied = from + n_plain < r->end && from[n_plain] != '"';
    r->at += n_plain;
    if (copied)
        emit(r, from, n_plain);
    read_escaped(r);
    if (r->reason || r->at == r->end)
        return NULL;
    r->at++;
    *n_bytes = copied ? (size_t)(r->out - out) : n_plain;
    return copied ? out : from;
}

static void end_value(line_reader *r)
{
    r->value = NULL;
    r->state = r->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static void read_key(line_reader *r)
{
    size_t n_bytes;
    r->use = r->depth == r->level ? USE_KEY : USE_NONE;
    r->has_lone = false;
    r->key_bytes = 0;
    r->name = NULL;
    const uint8_t *key = read_string(r, &n_bytes);
    if (!key)
        return;
    if (r->key_bytes > 0) { /* it has escapes */
        key = r->paths->buffer;
        n_bytes = r->key_bytes;
    }
    r->state = EXPECT_COLON;
    if (r->use != USE_KEY || r->has_lone)
        return;
    r->name = r->key_bytes <= r->paths->buffer_bytes ? key : NULL;
    r->name_bytes = n_bytes;
    r->value = json_key_find(r->object, key, n_bytes);
    if (r->value && r->value->leads_to_text)
        set_not_found(r, "the field is missing");
    if (r->values)
        json_paths_see(r->paths, r->object, r->value, key, n_bytes, r->values);
}

static void read_string_value(line_reader *r)
{
    const bool is_text = begins_text(r);
    size_t n_bytes;
    r->use = is_text ? USE_TEXT : value_of(r) ? USE_VALUE : USE_NONE;
    if (is_text) {
        r->found = r->had_string = true;
        r->lone_surrogates = 0;
    }
    const uint8_t *const string = read_string(r, &n_bytes);
    if (!string)
        return;
    tokmap_value *value = value_of(r);
    if (value)
        *value = (tokmap_value){
            .type = TOKMAP_VALUE_STRING, .text = (const char *)string, .text_bytes = n_bytes};
    if (is_text) {
        r->text = string;
        r->text_bytes = n_bytes;
    }
    end_value(r);
}

/* ---- Numbers and words ---- */

static void read_word(line_reader *r, const char *word, tokmap_value stands_for)
{
    tokmap_value *value = value_of(r);
    for (; r->at < r->end && *word; r->at++, word++) {
        if (*r->at != (uint8_t)*word) {
            r->reason = "expected a value";
            return;
        }
    }
    if (*word)
        return;
    if (value)
        *value = stands_for;
    end_value(r);
}

static void read_real(line_reader *r, const char *word, double real)
{
    read_word(r, word, (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = real});
}

static void read_number(line_reader *r)
{
    const uint8_t *const from = r->at;
    json_number number = NUMBER_BEGINS;
    while (r->at < r->end && json_number_step(&number, *r->at))
        r->at++;
    if (number == AFTER_MINUS && r->at < r->end && *r->at == 'I' && !r->paths->strict) {
        read_real(r, "Infinity", -INFINITY);
        return;
    }
    if (!json_number_may_end(number)) {
        if (r->at < r->end)
            r->reason = "expected a digit";
        return;
    }
    tokmap_value *value = value_of(r);
    if (value)
        *value = number_read((const char *)from, (size_t)(r->at - from));
    end_value(r);
}

/* ---- Structure ---- */

/* At the bracket that opens a list, which may be wanted. Whether it was read to its end. */
static bool take_list(line_reader *r)
{
    if (!r->paths->lists || !r->value || !(r->value->is_text || is_marks(r, r->value)))
        return false;
    r->list = r->value;
    r->list_at = r->at;
    r->list_depth = r->depth;
    const uint8_t *end = end_of_numbers(r->at, r->end);
    if (!end)
        return false;
    r->at = end;
    end_list(r);
    r->at++;
    end_value(r);
    return true;
}

static void open_container(line_reader *r, bool object)
{
    unsigned i = r->depth;
    if (i == JSON_MAX_DEPTH) {
        r->reason = "nested more than 128 levels deep, which tokmap does not read";
        return;
    }
    if (r->value) /* marks are a list, and are read */
        r->value->is_container = object || !r->paths->lists || !is_marks(r, r->value);
    if (!object && take_list(r))
        return;
    if (object && (i == 0 || (r->value && r->value->first_child))) {
        r->level++;
        r->object = i == 0 ? r->paths->keys : r->value;
    }
    r->value = NULL;
    r->objects[i / 64] &= ~((uint64_t)1 << i % 64);
    r->objects[i / 64] |= (uint64_t)object << i % 64;
    r->in_object = object;
    r->depth++;
    r->at++;
    r->state = object ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
}

static void close_container(line_reader *r)
{
    if (r->depth == r->level) {
        r->level--;
        r->object = r->object->parent;
    }
    r->depth--;
    if (r->list && r->depth == r->list_depth)
        end_list(r);
    if (r->depth > 0)
        r->in_object = r->objects[(r->depth - 1) / 64] >> (r->depth - 1) % 64 & 1;
    r->at++;
    end_value(r);
}

static void read_value(line_reader *r, uint8_t c)
{
    if (r->depth == 0) {
        r->no_object = c != '{' && !(c == '"' && begins_text(r));
    } else if (r->value && r->value->leads_to_text && c == 'n') {
        set_not_found(r, "the field is null");
        r->is_null = true;
    } else if (r->value && r->value->is_text && c != (r->paths->lists ? '[' : '"')) {
        set_not_found(r, r->paths->lists ? "the field is not a list" : "the field is not a string");
    }
    if (r->paths->listed && r->depth == 1 && r->name && c != '{' && c != '[' &&
        !field_list_add_key(r->paths->listed, (const char *)r->name, r->name_bytes,
                            r->paths->why_not_listed))
        r->reason = "too many fields";
    if (c == '"') {
        read_string_value(r);
    } else if (c == '{' || c == '[') {
        open_container(r, c == '{');
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        read_number(r);
    } else if (c == 't' || c == 'f' || c == 'n') {
        const tokmap_value truth = {.type = TOKMAP_VALUE_INT64, .integer = c == 't'}, null = {0};
        read_word(r, c == 't' ? "true" : c == 'f' ? "false" : "null", c == 'n' ? null : truth);
    } else if ((c == 'N' || c == 'I') && !r->paths->strict) {
        read_real(r, c == 'N' ? "NaN" : "Infinity", c == 'N' ? (double)NAN : (double)INFINITY);
    } else if (c == 'N' || c == 'I') {
        r->reason = "expected a value; NaN and Infinity are not JSON";
    } else {
        r->reason = "expected a value";
    }
}

/* Reads a bracket, a comma, a colon, a key or a value. */
static void read_part(line_reader *r)
{
    const uint8_t c = *r->at;
    const bool in_object = r->in_object;
    const bool may_end = r->state == EXPECT_KEY_OR_END || r->state == EXPECT_ELEMENT_OR_END ||
                         r->state == EXPECT_COMMA_OR_END;
    if (may_end && c == (in_object ? '}' : ']')) {
        close_container(r);
    } else if (r->state == EXPECT_KEY || r->state == EXPECT_KEY_OR_END) {
        if (c == '"')
            read_key(r);
        else
            r->reason = "expected a key in quotes";
    } else if (r->state == EXPECT_COLON && c == ':') {
        r->at++;
        r->state = EXPECT_VALUE;
    } else if (r->state == EXPECT_COLON) {
        r->reason = "expected ':'";
    } else if (r->state == EXPECT_COMMA_OR_END && c == ',') {
        r->at++;
        r->state = in_object ? EXPECT_KEY : EXPECT_VALUE;
    } else if (r->state == EXPECT_COMMA_OR_END) {
        r->reason = in_object ? "expected ',' or '}'" : "expected ',' or ']'";
    } else if (r->state == EXPECT_NOTHING) {
        r->reason = "trailing data after the value";
    } else {
        read_value(r, c);
    }
}

/* ---- Lines ---- */

static void read_parts(line_reader *r)
{
    while (!r->reason) {
        while (r->at < r->end && json_is_space(*r->at))
            r->at++;
        if (r->at == r->end)
            break;
        read_part(r);
    }
    if (!r->reason && r->state != EXPECT_NOTHING)
        r->reason = "the line ends too early";
}

/* Whether the text was found, or why not. */
static json_line_status judge(const line_reader *r, json_line_result *result)
{
    *result = (json_line_result){.lone_surrogates = r->lone_surrogates, .reason = r->reason};
    if (r->reason) {
        result->error_offset = (uint64_t)(r->at - r->line);
        return JSON_LINE_MALFORMED;
    }
    if (r->no_object) {
        result->reason = takes_bare_string(r) ? "not a string or an object" : "not an object";
        return JSON_LINE_NO_OBJECT;
    }
    if (r->found) {
        result->text = r->text;
        result->n_bytes = r->text_bytes;
        return JSON_LINE_OK;
    }
    result->reason = r->not_found ? r->not_found : "the field is missing";
    result->error_offset = r->not_found ? (uint64_t)(r->not_found_at - r->line) : 0;
    return r->is_null && !r->had_string ? JSON_LINE_NULL : JSON_LINE_NO_FIELD;
}

json_line_status json_line_text(json_paths *paths, const uint8_t *line, size_t n_bytes,
                                uint8_t *out, tokmap_value *values, json_line_result *result)
{
    line_reader r = {.paths = paths,
                     .calls = json_span_engine(paths->level),
                     .values = values,
                     .line = line,
                     .at = line,
                     .end = line + n_bytes,
                     .out = out};
    if (values)
        json_paths_begin(paths, values);
    read_parts(&r);
    const json_line_status status = judge(&r, result);
    if (values && status != JSON_LINE_MALFORMED && status != JSON_LINE_NO_OBJECT)
        json_paths_end(paths, values);
    return status;
}
