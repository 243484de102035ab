/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over bytes, so that a line can be fed in pieces of any size. Only the inside of
 * strings, which is nearly all of a line, is done by vectors (json_span.h). A line in one piece
 * goes through the same machine with one shortcut: a string without escapes is not copied. */
#include "formats/json_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_span.h"
#include "base/number.h"
#include "base/json_parts.h"
#include "base/utf8.h"

typedef enum state {
    EXPECT_VALUE,
    EXPECT_ELEMENT_OR_END,
    EXPECT_KEY,
    EXPECT_KEY_OR_END,
    EXPECT_COLON,
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING,
    IN_STRING,
    IN_ESCAPE,
    IN_HEX,
    IN_NUMBER,
    IN_WORD
} state;

typedef enum use { /* what the current string is needed for */
    USE_NONE,
    USE_KEY,  /* a key of an object on a path */
    USE_TEXT, /* it is the text */
    USE_VALUE /* of a field that is not the text */
} use;

struct json_line_scanner {
    json_paths *paths;
    const json_span_calls *calls;
    tokmap_value *values; /* NULL: not wanted */

    uint64_t n_fed;      /* bytes of the line before `data` */
    const uint8_t *data; /* the bytes being fed */
    const uint8_t *at, *end;
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
    uint64_t not_found_at;
    uint64_t n_begun;

    use use;
    bool is_key, has_lone; /* has_lone: a lone surrogate */
    const uint8_t *key;    /* where it is, if it is not longer than paths->buffer */
    size_t key_bytes;
    uint32_t unit, high; /* of a \uXXXX; the first half of a surrogate pair, or 0 */
    unsigned n_hex;
    json_number number;
    const uint8_t *number_at;
    const char *word; /* the rest of it */

    bool whole;            /* the line is in one piece */
    bool fresh;            /* whole, and no byte of the string was read yet */
    bool begins;           /* a string of the field begins: feed returns */
    const uint8_t *string; /* that is needed of a whole line: where it begins */
    bool copied;           /* it is in `out` */
    uint8_t *out;
    const uint8_t *text; /* of the whole line */
    size_t text_bytes;
    uint64_t lone_surrogates;
};

/* ---- The paths ---- */

static void set_not_found(json_line_scanner *s, const char *why)
{
    s->found = s->is_null = false;
    s->not_found = why;
    s->not_found_at = s->n_fed + (uint64_t)(s->at - s->data);
}

static bool takes_bare_string(const json_line_scanner *s)
{
    const json_key *key = json_key_find(s->paths->keys, "text", 4);
    return s->paths->bare_string && key && key->is_text;
}

/* A string that is not a key begins: whether it is the text. */
static bool is_text(const json_line_scanner *s)
{
    return s->depth == 0 ? takes_bare_string(s) : s->value && s->value->is_text && !s->paths->lists;
}

static bool is_marks(const json_line_scanner *s, const json_key *key)
{
    return s->paths->marks && key->field == s->paths->fields->n_fields - 1;
}

/* The value of a field, or of none. That of marks is only a list. */
static tokmap_value *value_of(const json_line_scanner *s)
{
    const bool wanted =
        s->values && s->value && s->value->field != JSON_NO_FIELD && !is_marks(s, s->value);
    return wanted ? &s->values[s->value->field] : NULL;
}

/* ---- Lists ---- */

/* At the bracket that closes it. */
static void end_list(json_line_scanner *s)
{
    const size_t n_bytes = (size_t)(s->at + 1 - s->list_at);
    if (s->list->is_text) {
        s->found = true;
        s->text = s->list_at;
        s->text_bytes = n_bytes;
    }
    if (s->values && is_marks(s, s->list)) {
        s->values[s->list->field] = (tokmap_value){
            .type = TOKMAP_VALUE_STRING, .text = (const char *)s->list_at, .text_bytes = n_bytes};
    }
    s->list = NULL;
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

static void add_to_key(json_line_scanner *s, const uint8_t *bytes, size_t n_bytes)
{
    const json_paths *p = s->paths;
    if (s->key_bytes <= p->buffer_bytes && n_bytes <= p->buffer_bytes - s->key_bytes)
        memcpy(p->buffer + s->key_bytes, bytes, n_bytes);
    s->key_bytes += n_bytes;
}

static void emit_code_point(json_line_scanner *s, uint32_t code_point)
{
    uint8_t bytes[4];
    size_t n_bytes = utf8_encode(code_point, bytes);
    if (s->use == USE_KEY)
        add_to_key(s, bytes, n_bytes);
    if (s->use >= USE_TEXT) {
        memcpy(s->out, bytes, n_bytes);
        s->out += n_bytes;
    }
}

static void emit_lone_surrogate(json_line_scanner *s)
{
    emit_code_point(s, 0xfffd);
    s->has_lone = true; /* a key of a path has none, not even a key with U+FFFD in it */
    s->lone_surrogates += s->use == USE_TEXT;
}

/* Called if no second half of the pair follows. */
static void end_pair(json_line_scanner *s)
{
    if (s->high)
        emit_lone_surrogate(s);
    s->high = 0;
}

static void emit_unit(json_line_scanner *s, uint32_t unit)
{
    bool is_low = unit >= 0xdc00 && unit <= 0xdfff;
    if (s->high && is_low) {
        emit_code_point(s, json_join_surrogates(s->high, unit));
        s->high = 0;
        return;
    }
    end_pair(s);
    if (unit >= 0xd800 && unit <= 0xdbff)
        s->high = unit;
    else if (is_low)
        emit_lone_surrogate(s);
    else
        emit_code_point(s, unit);
}

static void begin_string(json_line_scanner *s)
{
    s->state = IN_STRING;
    s->at++;
    s->high = 0;
    s->use = USE_NONE;
    if (s->is_key) {
        if (s->depth == s->level)
            s->use = USE_KEY;
        s->has_lone = false;
        s->key = s->paths->buffer;
        s->key_bytes = 0;
    } else if (is_text(s)) {
        s->use = USE_TEXT;
        s->found = true;
        s->n_begun++;
        s->lone_surrogates = 0;
        s->begins = !s->whole;
    } else if (value_of(s)) {
        s->use = USE_VALUE;
    }
    s->fresh = s->whole && s->use >= USE_TEXT;
}

static void end_value(json_line_scanner *s)
{
    s->value = NULL;
    s->state = s->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static void end_string(json_line_scanner *s)
{
    s->at++;
    end_pair(s);
    if (s->use == USE_KEY && !s->has_lone) {
        s->value = json_key_find(s->object, s->key, s->key_bytes);
        if (s->value && s->value->leads_to_text)
            set_not_found(s, "the field is missing");
        if (s->values)
            json_paths_see(s->paths, s->object, s->value, s->key, s->key_bytes, s->values);
    }
    if (s->is_key) {
        s->state = EXPECT_COLON;
        return;
    }
    if (s->use >= USE_TEXT && s->whole) {
        const uint8_t *const end = s->copied ? s->out : s->at - 1;
        const size_t n_bytes = (size_t)(end - s->string);
        tokmap_value *value = value_of(s);
        if (value)
            *value = (tokmap_value){.type = TOKMAP_VALUE_STRING,
                                    .text = (const char *)s->string,
                                    .text_bytes = n_bytes};
        if (s->use == USE_TEXT) {
            s->text = s->string;
            s->text_bytes = n_bytes;
        }
    }
    end_value(s);
}

/* The first bytes of a string in a whole line. One without escapes is not copied. */
static void begin_text(json_line_scanner *s)
{
    size_t n_plain = s->calls->find(s->at, (size_t)(s->end - s->at));
    s->fresh = false;
    s->copied = s->at + n_plain == s->end || s->at[n_plain] != '"';
    s->string = s->copied ? s->out : s->at;
    if (s->copied) {
        memcpy(s->out, s->at, n_plain);
        s->out += n_plain;
    }
    s->at += n_plain;
}

static void scan_plain(json_line_scanner *s)
{
    size_t n_left = (size_t)(s->end - s->at);
    if (s->fresh) {
        begin_text(s);
    } else if (s->use >= USE_TEXT) {
        json_span_moved moved = s->calls->decode(s->at, n_left, s->out);
        s->at += moved.read;
        s->out += moved.written;
    } else {
        size_t n_plain = s->calls->find(s->at, n_left);
        if (s->use == USE_KEY && s->key_bytes == 0 && n_plain < n_left && s->at[n_plain] == '"') {
            s->key = s->at; /* all of it */
            s->key_bytes = n_plain;
        } else if (s->use == USE_KEY) {
            add_to_key(s, s->at, n_plain);
        }
        s->at += n_plain;
    }
}

static void scan_string(json_line_scanner *s)
{
    if (!(s->high && *s->at == '\\')) {
        end_pair(s);
        scan_plain(s);
    }
    if (s->at == s->end)
        return;
    if (*s->at == '"') {
        end_string(s);
    } else if (*s->at == '\\') {
        s->at++;
        s->state = IN_ESCAPE;
    } else {
        s->reason = "a control character in a string";
    }
}

/* After the backslash. */
static void scan_escape(json_line_scanner *s)
{
    uint8_t c = *s->at;
    uint8_t stands_for = json_simple_escapes[c];
    if (c != 'u' && !stands_for) {
        s->reason = "unknown escape";
        return;
    }
    s->at++;
    s->unit = 0;
    s->n_hex = 0;
    s->state = c == 'u' ? IN_HEX : IN_STRING;
    if (stands_for) {
        end_pair(s);
        emit_code_point(s, stands_for);
    }
}

static void scan_hex(json_line_scanner *s)
{
    int digit = json_hex_digits[*s->at] - 1;
    if (digit < 0) {
        s->reason = "\\u needs four hexadecimal digits";
        return;
    }
    s->at++;
    s->unit = s->unit << 4 | (uint32_t)digit;
    if (++s->n_hex < 4)
        return;
    emit_unit(s, s->unit);
    s->state = IN_STRING;
}

/* ---- Numbers and words ---- */

/* At its first letter. rest: the other ones. */
static void begin_word(json_line_scanner *s, const char *rest, tokmap_value stands_for)
{
    tokmap_value *value = value_of(s);
    if (value)
        *value = stands_for;
    s->word = rest;
    s->at++;
    s->state = IN_WORD;
}

static void begin_real(json_line_scanner *s, const char *rest, double real)
{
    begin_word(s, rest, (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = real});
}

static void scan_number(json_line_scanner *s)
{
    while (s->at < s->end && json_number_step(&s->number, *s->at))
        s->at++;
    if (s->at == s->end)
        return;
    if (s->number == AFTER_MINUS && *s->at == 'I' && !s->paths->strict) {
        begin_real(s, "nfinity", -INFINITY);
        return;
    }
    if (!json_number_may_end(s->number)) {
        s->reason = "expected a digit";
        return;
    }
    tokmap_value *value = value_of(s);
    const size_t n_bytes = (size_t)(s->at - s->number_at);
    if (value)
        *value = number_read((const char *)s->number_at, n_bytes);
    end_value(s);
}

static void scan_word(json_line_scanner *s)
{
    for (; s->at < s->end && *s->word; s->at++, s->word++) {
        if (*s->at != (uint8_t)*s->word) {
            s->reason = "expected a value";
            return;
        }
    }
    if (!*s->word)
        end_value(s);
}

/* ---- Structure ---- */

/* At the bracket that opens a list, which may be wanted. Whether it was read to its end. */
static bool take_list(json_line_scanner *s)
{
    if (!s->paths->lists || !s->whole || !s->value || !(s->value->is_text || is_marks(s, s->value)))
        return false;
    s->list = s->value;
    s->list_at = s->at;
    s->list_depth = s->depth;
    const uint8_t *end = end_of_numbers(s->at, s->end);
    if (!end)
        return false;
    s->at = end;
    end_list(s);
    s->at++;
    end_value(s);
    return true;
}

static void open_container(json_line_scanner *s, bool object)
{
    unsigned i = s->depth;
    if (i == JSON_MAX_DEPTH) {
        s->reason = "nested more than 128 levels deep, which tokmap does not read";
        return;
    }
    if (s->value)
        s->value->is_container = true;
    if (!object && take_list(s))
        return;
    if (object && (i == 0 || (s->value && s->value->first_child))) {
        s->level++;
        s->object = i == 0 ? s->paths->keys : s->value;
    }
    s->value = NULL;
    s->objects[i / 64] &= ~((uint64_t)1 << i % 64);
    s->objects[i / 64] |= (uint64_t)object << i % 64;
    s->in_object = object;
    s->depth++;
    s->at++;
    s->state = object ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
}

static void close_container(json_line_scanner *s)
{
    if (s->depth == s->level) {
        s->level--;
        s->object = s->object->parent;
    }
    s->depth--;
    if (s->list && s->depth == s->list_depth)
        end_list(s);
    if (s->depth > 0)
        s->in_object = s->objects[(s->depth - 1) / 64] >> (s->depth - 1) % 64 & 1;
    s->at++;
    end_value(s);
}

static void begin_value(json_line_scanner *s, uint8_t c)
{
    if (s->depth == 0) {
        s->no_object = c != '{' && !(c == '"' && is_text(s));
    } else if (s->value && s->value->leads_to_text && c == 'n') {
        set_not_found(s, "the field is null");
        s->is_null = true;
    } else if (s->value && s->value->is_text && c != (s->paths->lists ? '[' : '"')) {
        set_not_found(s, s->paths->lists ? "the field is not a list" : "the field is not a string");
    }
    if (c == '"') {
        s->is_key = false;
        begin_string(s);
    } else if (c == '{' || c == '[') {
        open_container(s, c == '{');
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        s->number = NUMBER_BEGINS;
        s->number_at = s->at;
        s->state = IN_NUMBER;
    } else if (c == 't' || c == 'f' || c == 'n') {
        const tokmap_value truth = {.type = TOKMAP_VALUE_INT64, .integer = c == 't'}, null = {0};
        begin_word(s, c == 't' ? "rue" : c == 'f' ? "alse" : "ull", c == 'n' ? null : truth);
    } else if ((c == 'N' || c == 'I') && !s->paths->strict) {
        begin_real(s, c == 'N' ? "aN" : "nfinity", c == 'N' ? (double)NAN : (double)INFINITY);
    } else if (c == 'N' || c == 'I') {
        s->reason = "expected a value; NaN and Infinity are not JSON";
    } else {
        s->reason = "expected a value";
    }
}

static void scan_structure(json_line_scanner *s)
{
    while (s->at < s->end && json_is_space(*s->at))
        s->at++;
    if (s->at == s->end)
        return;
    const uint8_t c = *s->at;
    const bool in_object = s->in_object;
    const bool may_end = s->state == EXPECT_KEY_OR_END || s->state == EXPECT_ELEMENT_OR_END ||
                         s->state == EXPECT_COMMA_OR_END;
    if (may_end && c == (in_object ? '}' : ']')) {
        close_container(s);
    } else if (s->state == EXPECT_KEY || s->state == EXPECT_KEY_OR_END) {
        s->is_key = true;
        if (c == '"')
            begin_string(s);
        else
            s->reason = "expected a key in quotes";
    } else if (s->state == EXPECT_COLON && c == ':') {
        s->at++;
        s->state = EXPECT_VALUE;
    } else if (s->state == EXPECT_COLON) {
        s->reason = "expected ':'";
    } else if (s->state == EXPECT_COMMA_OR_END && c == ',') {
        s->at++;
        s->state = in_object ? EXPECT_KEY : EXPECT_VALUE;
    } else if (s->state == EXPECT_COMMA_OR_END) {
        s->reason = in_object ? "expected ',' or '}'" : "expected ',' or ']'";
    } else if (s->state == EXPECT_NOTHING) {
        s->reason = "trailing data after the value";
    } else {
        begin_value(s, c);
    }
}

static void scan_bytes(json_line_scanner *s)
{
    while (s->at < s->end && !s->reason && !s->begins) {
        switch (s->state) {
        case IN_STRING:
            scan_string(s);
            break;
        case IN_ESCAPE:
            scan_escape(s);
            break;
        case IN_HEX:
            scan_hex(s);
            break;
        case IN_NUMBER:
            scan_number(s);
            break;
        case IN_WORD:
            scan_word(s);
            break;
        default:
            scan_structure(s);
        }
    }
}

/* ---- Lines ---- */

json_line_scanner *json_line_scanner_new(json_paths *paths)
{
    json_line_scanner *s = calloc(1, sizeof *s);
    if (s)
        s->paths = paths;
    return s;
}

void json_line_begin(json_line_scanner *s)
{
    *s = (json_line_scanner){.paths = s->paths, .calls = json_span_engine(s->paths->level)};
}

json_line_fed json_line_feed(json_line_scanner *s, const uint8_t *data, size_t n_bytes,
                             uint8_t *out)
{
    s->data = s->at = data;
    s->end = data + n_bytes;
    s->out = out;
    s->begins = false;
    scan_bytes(s);
    json_line_fed fed = {.n_bytes = (size_t)(s->at - data),
                         .begins = s->begins,
                         .malformed = s->reason != NULL,
                         .text_bytes = s->begins ? 0 : (size_t)(s->out - out)};
    s->n_fed += fed.n_bytes;
    s->data = s->at;
    return fed;
}

uint64_t json_line_n_begun(const json_line_scanner *s)
{
    return s->n_begun;
}

json_line_status json_line_end(json_line_scanner *s, json_line_result *result)
{
    if (!s->reason && s->state == IN_NUMBER && json_number_may_end(s->number))
        end_value(s);
    if (!s->reason && s->state == IN_WORD && !*s->word)
        end_value(s);
    if (!s->reason && s->state != EXPECT_NOTHING)
        s->reason = "the line ends too early";
    *result = (json_line_result){.lone_surrogates = s->lone_surrogates, .reason = s->reason};
    result->error_offset = s->n_fed + (uint64_t)(s->at - s->data);
    if (s->reason)
        return JSON_LINE_MALFORMED;
    result->error_offset = 0;
    if (s->no_object) {
        result->reason = takes_bare_string(s) ? "not a string or an object" : "not an object";
        return JSON_LINE_NO_OBJECT;
    }
    if (!s->found) {
        result->reason = s->not_found ? s->not_found : "the field is missing";
        result->error_offset = s->not_found_at;
        return s->is_null && s->n_begun == 0 ? JSON_LINE_NULL : JSON_LINE_NO_FIELD;
    }
    return JSON_LINE_OK;
}

json_line_status json_line_text(json_paths *paths, const uint8_t *line, size_t n_bytes,
                                uint8_t *out, tokmap_value *values, json_line_result *result)
{
    json_line_scanner s = {.paths = paths,
                           .calls = json_span_engine(paths->level),
                           .values = values,
                           .data = line,
                           .at = line,
                           .end = line + n_bytes,
                           .whole = true,
                           .out = out};
    if (values)
        json_paths_begin(paths, values);
    scan_bytes(&s);
    json_line_status status = json_line_end(&s, result);
    if (values && status != JSON_LINE_MALFORMED && status != JSON_LINE_NO_OBJECT)
        json_paths_end(paths, values);
    if (status == JSON_LINE_OK) {
        result->text = s.text;
        result->n_bytes = s.text_bytes;
    }
    return status;
}
