/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over bytes, so that a line can be fed in pieces of any size. Only the inside of
 * strings, which is nearly all of a line, is done by vectors (json_span.h). A line in one piece
 * goes through the same machine with one shortcut: a string without escapes is not copied. */
#include "corpus/json_line.h"

#include <stdlib.h>
#include <string.h>

#include "corpus/json_span.h"
#include "text/json_parts.h"
#include "text/utf8.h"

struct json_line_path {
    size_t n_parts;
    struct {
        const char *text;
        size_t n_bytes;
    } parts[JSON_MAX_DEPTH];
    char text[];
};

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
    USE_COMPARE, /* a key: to be compared with a part of the path */
    USE_TEXT     /* it is the field */
} use;

struct json_line_scanner {
    const json_line_path *path;
    const json_span_calls *calls;
    bool bare_string;

    uint64_t n_fed;      /* bytes of the line before `data` */
    const uint8_t *data; /* the bytes being fed */
    const uint8_t *at, *end;
    const char *reason; /* set if the line is malformed; `at` is the place */

    state state;
    unsigned depth;                        /* open containers */
    uint64_t objects[JSON_MAX_DEPTH / 64]; /* which of them are objects */

    /* The first `level` open containers are objects on the path. on_path: the next value is on it
     * too, because the key before it is the next part. */
    unsigned level;
    bool on_path;
    bool no_object; /* the value of the line is not an object */

    /* For the last value at the path: a duplicate replaces the one before. */
    bool found, is_null;
    const char *not_found;
    uint64_t not_found_at;
    uint64_t n_begun;

    use use;
    bool is_key, key_same; /* key_same: so far, in key_bytes */
    size_t key_bytes;
    uint32_t unit, high; /* of a \uXXXX; the first half of a surrogate pair, or 0 */
    unsigned n_hex;
    json_number number;
    const char *word; /* the rest of it */

    bool whole;          /* the line is in one piece */
    bool fresh;          /* whole, and no byte of the text was read yet */
    bool begins;         /* a string of the field begins: feed returns */
    const uint8_t *text; /* where the text begins */
    uint8_t *out_begin, *out;
    size_t text_bytes;
    uint64_t lone_surrogates;
};

/* ---- Paths ---- */

json_line_path *json_line_path_new(const char *dotted)
{
    size_t n_bytes = strlen(dotted) + 1;
    json_line_path *p = json_line_path_fits(dotted) ? calloc(1, sizeof *p + n_bytes) : NULL;
    if (!p)
        return NULL;
    memcpy(p->text, dotted, n_bytes);
    for (const char *part = p->text;;) {
        size_t part_bytes = strcspn(part, ".");
        p->parts[p->n_parts].text = part;
        p->parts[p->n_parts++].n_bytes = part_bytes;
        if (!part[part_bytes])
            return p;
        part += part_bytes + 1;
    }
}

void json_line_path_free(json_line_path *p)
{
    free(p);
}

/* ---- The path ---- */

static void refuse(json_line_scanner *s, const char *reason)
{
    s->reason = reason;
}

static void set_not_found(json_line_scanner *s, const char *why)
{
    s->found = s->is_null = false;
    s->not_found = why;
    s->not_found_at = s->n_fed + (uint64_t)(s->at - s->data);
}

/* A key of an object on the path has ended. */
static void match_key(json_line_scanner *s)
{
    s->on_path = s->key_same && s->key_bytes == s->path->parts[s->level - 1].n_bytes;
    if (s->on_path)
        set_not_found(s, "the field is missing");
}

static bool takes_bare_string(const json_line_scanner *s)
{
    const json_line_path *path = s->path;
    return s->bare_string && path->n_parts == 1 && path->parts[0].n_bytes == 4 &&
           memcmp(path->parts[0].text, "text", 4) == 0;
}

/* A string that is not a key begins: whether it is the field. */
static bool is_field(const json_line_scanner *s)
{
    if (s->depth == 0)
        return takes_bare_string(s);
    return s->on_path && s->level == s->path->n_parts;
}

/* ---- Strings ---- */

static void compare_key(json_line_scanner *s, const uint8_t *bytes, size_t n_bytes)
{
    size_t part_bytes = s->path->parts[s->level - 1].n_bytes;
    const char *part = s->path->parts[s->level - 1].text;
    s->key_same = s->key_same && n_bytes <= part_bytes - s->key_bytes &&
                  memcmp(part + s->key_bytes, bytes, n_bytes) == 0;
    if (s->key_same)
        s->key_bytes += n_bytes;
}

static void emit_code_point(json_line_scanner *s, uint32_t code_point)
{
    uint8_t bytes[4];
    size_t n_bytes = utf8_encode(code_point, bytes);
    if (s->use == USE_COMPARE)
        compare_key(s, bytes, n_bytes);
    if (s->use == USE_TEXT) {
        memcpy(s->out, bytes, n_bytes);
        s->out += n_bytes;
    }
}

static void emit_lone_surrogate(json_line_scanner *s)
{
    emit_code_point(s, 0xfffd);
    s->key_same = false; /* a key of the path cannot contain one, not even a key with U+FFFD in
                            it */
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
    if (s->is_key) {
        s->use = s->depth == s->level ? USE_COMPARE : USE_NONE;
        s->key_same = true;
        s->key_bytes = 0;
    } else if (is_field(s)) {
        s->use = USE_TEXT;
        s->found = true;
        s->n_begun++;
        s->lone_surrogates = 0;
        s->fresh = s->whole;
        s->begins = !s->whole;
        s->out = s->out_begin;
    } else {
        s->use = USE_NONE;
    }
}

static void end_value(json_line_scanner *s)
{
    s->on_path = false;
    s->state = s->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static void end_string(json_line_scanner *s)
{
    s->at++;
    end_pair(s);
    if (s->use == USE_COMPARE)
        match_key(s);
    if (s->use == USE_TEXT && s->text == s->out_begin)
        s->text_bytes = (size_t)(s->out - s->out_begin);
    if (s->is_key)
        s->state = EXPECT_COLON;
    else
        end_value(s);
}

/* The first bytes of a text in a whole line. A text without escapes is not copied. */
static void begin_text(json_line_scanner *s)
{
    size_t n_plain = s->calls->find(s->at, (size_t)(s->end - s->at));
    s->fresh = false;
    if (s->at + n_plain < s->end && s->at[n_plain] == '"') {
        s->text = s->at;
        s->text_bytes = n_plain;
    } else {
        memcpy(s->out, s->at, n_plain);
        s->text = s->out;
        s->out += n_plain;
    }
    s->at += n_plain;
}

static void scan_plain(json_line_scanner *s)
{
    size_t n_left = (size_t)(s->end - s->at);
    if (s->fresh) {
        begin_text(s);
    } else if (s->use == USE_TEXT) {
        json_span_moved moved = s->calls->decode(s->at, n_left, s->out);
        s->at += moved.read;
        s->out += moved.written;
    } else {
        size_t n_plain = s->calls->find(s->at, n_left);
        if (s->use == USE_COMPARE)
            compare_key(s, s->at, n_plain);
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
        refuse(s, "a control character in a string");
    }
}

/* After the backslash. */
static void scan_escape(json_line_scanner *s)
{
    uint8_t c = *s->at;
    uint8_t stands_for = json_simple_escapes[c];
    if (c != 'u' && !stands_for) {
        refuse(s, "unknown escape");
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
        refuse(s, "\\u needs four hexadecimal digits");
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

static void scan_number(json_line_scanner *s)
{
    while (s->at < s->end && json_number_step(&s->number, *s->at))
        s->at++;
    if (s->at == s->end)
        return;
    if (json_number_may_end(s->number))
        end_value(s);
    else
        refuse(s, "expected a digit");
}

static void scan_word(json_line_scanner *s)
{
    for (; s->at < s->end && *s->word; s->at++, s->word++) {
        if (*s->at != (uint8_t)*s->word) {
            refuse(s, "expected a value");
            return;
        }
    }
    if (!*s->word)
        end_value(s);
}

/* ---- Structure ---- */

static bool in_object(const json_line_scanner *s)
{
    unsigned i = s->depth - 1;
    return s->objects[i / 64] >> i % 64 & 1;
}

static void open_container(json_line_scanner *s, bool object)
{
    unsigned i = s->depth;
    if (i == JSON_MAX_DEPTH) {
        refuse(s, "nested more than 128 levels deep, which tokmap does not read");
        return;
    }
    if (object && (i == 0 || (s->on_path && s->level < s->path->n_parts)))
        s->level++;
    s->on_path = false;
    s->objects[i / 64] &= ~((uint64_t)1 << i % 64);
    s->objects[i / 64] |= (uint64_t)object << i % 64;
    s->depth++;
    s->at++;
    s->state = object ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
}

static void close_container(json_line_scanner *s)
{
    if (s->depth == s->level)
        s->level--;
    s->depth--;
    s->at++;
    end_value(s);
}

static void begin_word(json_line_scanner *s, const char *word)
{
    s->word = word + 1;
    s->at++;
    s->state = IN_WORD;
}

static void begin_value(json_line_scanner *s, uint8_t c)
{
    if (s->depth == 0) {
        s->no_object = c != '{' && !(c == '"' && is_field(s));
    } else if (s->on_path && c == 'n') {
        set_not_found(s, "the field is null");
        s->is_null = true;
    } else if (s->on_path && s->level == s->path->n_parts && c != '"') {
        set_not_found(s, "the field is not a string");
    }
    if (c == '"') {
        s->is_key = false;
        begin_string(s);
    } else if (c == '{' || c == '[') {
        open_container(s, c == '{');
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        s->number = NUMBER_BEGINS;
        s->state = IN_NUMBER;
    } else if (c == 't' || c == 'f' || c == 'n') {
        begin_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
    } else if (c == 'N' || c == 'I') {
        refuse(s, "expected a value; NaN and Infinity are not JSON");
    } else {
        refuse(s, "expected a value");
    }
}

static void begin_key(json_line_scanner *s, uint8_t c)
{
    if (c != '"') {
        refuse(s, "expected a key in quotes");
        return;
    }
    s->is_key = true;
    begin_string(s);
}

static void scan_comma_or_end(json_line_scanner *s, uint8_t c)
{
    bool object = in_object(s);
    if (c == (object ? '}' : ']')) {
        close_container(s);
    } else if (c == ',') {
        s->at++;
        s->state = object ? EXPECT_KEY : EXPECT_VALUE;
    } else {
        refuse(s, object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
}

static void scan_colon(json_line_scanner *s, uint8_t c)
{
    if (c != ':') {
        refuse(s, "expected ':'");
        return;
    }
    s->at++;
    s->state = EXPECT_VALUE;
}

static void scan_structure(json_line_scanner *s)
{
    while (s->at < s->end && json_is_space(*s->at))
        s->at++;
    if (s->at == s->end)
        return;
    uint8_t c = *s->at;
    if ((c == '}' && s->state == EXPECT_KEY_OR_END) ||
        (c == ']' && s->state == EXPECT_ELEMENT_OR_END))
        close_container(s);
    else if (s->state == EXPECT_KEY || s->state == EXPECT_KEY_OR_END)
        begin_key(s, c);
    else if (s->state == EXPECT_COLON)
        scan_colon(s, c);
    else if (s->state == EXPECT_COMMA_OR_END)
        scan_comma_or_end(s, c);
    else if (s->state == EXPECT_NOTHING)
        refuse(s, "trailing data after the value");
    else
        begin_value(s, c);
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

static void set_options(json_line_scanner *s, const json_line_options *options)
{
    s->path = options->path;
    s->calls = json_span_engine(options->engine);
    s->bare_string = options->bare_string;
}

json_line_scanner *json_line_scanner_new(const json_line_options *options)
{
    json_line_scanner *s = calloc(1, sizeof *s);
    if (s)
        set_options(s, options);
    return s;
}

void json_line_scanner_free(json_line_scanner *s)
{
    free(s);
}

void json_line_begin(json_line_scanner *s)
{
    *s = (json_line_scanner){
        .path = s->path, .calls = s->calls, .bare_string = s->bare_string, .state = EXPECT_VALUE};
}

json_line_fed json_line_feed(json_line_scanner *s, const uint8_t *data, size_t n_bytes,
                             uint8_t *out)
{
    s->data = s->at = data;
    s->end = data + n_bytes;
    s->out_begin = s->out = out;
    s->begins = false;
    scan_bytes(s);
    json_line_fed fed = {.n_bytes = (size_t)(s->at - data),
                         .begins = s->begins,
                         .malformed = s->reason != NULL,
                         .text_bytes = (size_t)(s->out - out)};
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
        refuse(s, "the line ends too early");
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

json_line_status json_line_text(const json_line_options *options, const uint8_t *line,
                                size_t n_bytes, uint8_t *out, json_line_result *result)
{
    json_line_scanner s = {.state = EXPECT_VALUE,
                           .data = line,
                           .at = line,
                           .end = line + n_bytes,
                           .whole = true,
                           .out_begin = out,
                           .out = out};
    set_options(&s, options);
    scan_bytes(&s);
    json_line_status status = json_line_end(&s, result);
    if (status == JSON_LINE_OK) {
        result->text = s.text;
        result->n_bytes = s.text_bytes;
    }
    return status;
}
