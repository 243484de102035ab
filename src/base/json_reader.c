/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/real.h"
#include "base/utf8.h"

#define LEVEL_BEGUN 0x80

void json_reader_init(json_reader *r, const void *text, size_t n_bytes)
{
    *r = (json_reader){.text = text, .n_bytes = n_bytes};
    const size_t n_valid = utf8_valid_prefix(text, n_bytes);
    if (n_valid < n_bytes) {
        r->at = n_valid;
        json_fail(r, "not UTF-8");
    }
}

void json_reader_free(json_reader *r)
{
    free(r->buffer);
    *r = (json_reader){0};
}

bool json_fail(json_reader *r, const char *format, ...)
{
    va_list args;
    if (r->failure[0])
        return false;
    va_start(args, format);
    real_print_list(r->failure, sizeof r->failure, format, args);
    va_end(args);
    r->failure_at = r->at < r->n_bytes ? r->at : r->n_bytes;
    return false;
}

bool json_no_memory(json_reader *r)
{
    r->no_memory = !r->failure[0] || r->no_memory;
    return json_fail(r, "out of memory");
}

static int byte_at(const json_reader *r)
{
    return r->at < r->n_bytes ? r->text[r->at] : -1;
}

/* Returns the next byte that is not white space, without consuming it; -1 at the end or after a
 * failure. */
static int next_byte(json_reader *r)
{
    if (r->failure[0])
        return -1;
    while (json_is_space(byte_at(r)))
        r->at++;
    return byte_at(r);
}

/* Fails at an unexpected byte. */
static bool refuse(json_reader *r, const char *reason)
{
    return json_fail(r, "%s", r->at < r->n_bytes ? reason : "the text ends too early");
}

/* ---- Containers ---- */

json_kind json_peek(json_reader *r)
{
    static const uint8_t kinds[256] = {
        ['{'] = JSON_OBJECT, ['['] = JSON_ARRAY, ['"'] = JSON_STRING, ['t'] = JSON_TRUE,
        ['f'] = JSON_FALSE,  ['n'] = JSON_NULL,  ['-'] = JSON_NUMBER};
    const int c = next_byte(r);
    return c >= '0' && c <= '9' ? JSON_NUMBER : c < 0 ? JSON_NONE : (json_kind)kinds[c];
}

bool json_begin(json_reader *r, json_kind container)
{
    if (json_peek(r) != container)
        return json_fail(r, "expected %s", container == JSON_OBJECT ? "an object" : "a list");
    if (r->depth == JSON_MAX_DEPTH)
        return json_fail(r, "nested more than %d levels deep", JSON_MAX_DEPTH);
    r->levels[++r->depth] = (uint8_t)container;
    r->at++;
    return true;
}

/* Skips the comma. Whether the container has another value. */
static bool next_value(json_reader *r, json_kind container)
{
    const int c = next_byte(r);
    if (c < 0)
        return json_fail(r, "the text ends too early");
    if (c == (container == JSON_OBJECT ? '}' : ']')) {
        r->at++;
        r->depth--;
        return false;
    }
    if ((r->levels[r->depth] & LEVEL_BEGUN) != 0) {
        if (c != ',')
            return refuse(r,
                          container == JSON_OBJECT ? "expected ',' or '}'" : "expected ',' or ']'");
        r->at++;
    }
    r->levels[r->depth] |= LEVEL_BEGUN;
    return true;
}

bool json_next_item(json_reader *r)
{
    return next_value(r, JSON_ARRAY);
}

/* ---- Strings ---- */

/* Skips bytes that are neither a quote, a backslash nor a control character. */
static void skip_plain(json_reader *r)
{
    while (r->at < r->n_bytes && r->text[r->at] >= ' ' && r->text[r->at] != '"' &&
           r->text[r->at] != '\\')
        r->at++;
}

/* Scans a string: plain text and escapes in turn. It is copied only from its first escape on. s may
 * be NULL: then nothing is copied. */
static bool scan_string(json_reader *r, json_string *s)
{
    size_t n = 0, plain = ++r->at;
    bool copied = false;
    for (;;) {
        skip_plain(r);
        const int c = byte_at(r);
        const size_t n_plain = r->at - plain;
        copied |= s && c == '\\';
        if (copied) {
            if (!array_reserve(&r->buffer, &r->capacity, n + n_plain + 4, 1))
                return json_no_memory(r);
            memcpy(r->buffer + n, r->text + plain, n_plain);
        }
        n += n_plain;
        if (c != '\\')
            break;
        const json_escape e = json_read_escape(r->text + r->at + 1, r->n_bytes - r->at - 1);
        r->at += 1 + e.n_read;
        if (e.why)
            return refuse(r, e.why);
        if (copied)
            memcpy(r->buffer + n, e.text, sizeof e.text);
        n += e.n_bytes;
        plain = r->at;
    }
    if (byte_at(r) != '"')
        return refuse(r, "a control character in a string");
    if (s)
        *s = (json_string){copied ? r->buffer : (const char *)r->text + plain, n};
    r->at++;
    return true;
}

bool json_read_string(json_reader *r, json_string *s)
{
    if (json_peek(r) != JSON_STRING)
        return json_fail(r, "expected a string");
    return scan_string(r, s);
}

bool json_next_key(json_reader *r, json_string *key)
{
    if (!next_value(r, JSON_OBJECT))
        return false;
    if (next_byte(r) != '"')
        return refuse(r, "expected a key in quotes");
    if (!scan_string(r, key))
        return false;
    if (next_byte(r) != ':')
        return refuse(r, "expected ':'");
    r->at++;
    return true;
}

/* ---- Numbers ---- */

#define TENS(d)                                                                                    \
    1e##d##0, 1e##d##1, 1e##d##2, 1e##d##3, 1e##d##4, 1e##d##5, 1e##d##6, 1e##d##7, 1e##d##8,      \
        1e##d##9
static const double powers_of_ten[] = {
    TENS(0),  TENS(1),  TENS(2),  TENS(3),  TENS(4),  TENS(5),  TENS(6),  TENS(7),
    TENS(8),  TENS(9),  TENS(10), TENS(11), TENS(12), TENS(13), TENS(14), TENS(15),
    TENS(16), TENS(17), TENS(18), TENS(19), TENS(20), TENS(21), TENS(22), TENS(23),
    TENS(24), TENS(25), TENS(26), TENS(27), TENS(28), TENS(29), 1e300,    1e301,
    1e302,    1e303,    1e304,    1e305,    1e306,    1e307,    1e308};

typedef struct decimal {
    bool negative;
    bool full; /* the next digit does not fit; digits after it are dropped */
    uint64_t digits;
    int64_t exponent;
    json_number end; /* what the number ends with */
} decimal;

static bool add_digit(decimal *d, int c)
{
    const uint64_t digit = (uint64_t)(c - '0');
    if (d->digits >= UINT64_MAX / 10)
        d->full |= d->digits > (UINT64_MAX - digit) / 10;
    if (!d->full)
        d->digits = d->digits * 10 + digit;
    return !d->full;
}

static bool scan_number(json_reader *r, decimal *d)
{
    int64_t exponent = 0;
    bool negative_exponent = false;
    *d = (decimal){.end = NUMBER_BEGINS};
    if (json_peek(r) != JSON_NUMBER)
        return json_fail(r, "expected a number");
    d->negative = r->text[r->at] == '-';
    for (; r->at < r->n_bytes && json_number_step(&d->end, r->text[r->at]); r->at++) {
        const int c = r->text[r->at];
        switch (d->end) {
        case AFTER_ZERO:
        case AFTER_DIGITS:
            if (!add_digit(d, c))
                d->exponent++;
            break;
        case AFTER_POINT:
            /* The whole part did not fit, but digits after the point may: they still do not fit,
             * unless the digits before them were small. */
            d->full = false;
            break;
        case AFTER_DECIMALS:
            if (add_digit(d, c))
                d->exponent--;
            break;
        case AFTER_E_SIGN:
            negative_exponent = c == '-';
            break;
        case AFTER_E_DIGITS:
            if (exponent < INT32_MAX)
                exponent = exponent * 10 + (c - '0');
            break;
        default:
            break;
        }
    }
    d->exponent += negative_exponent ? -exponent : exponent;
    return json_number_may_end(d->end) || refuse(r, "expected a digit");
}

bool json_read_uint(json_reader *r, uint64_t *value)
{
    decimal d;
    json_peek(r);
    const size_t at = r->at;
    if (!scan_number(r, &d))
        return false;
    *value = d.digits;
    if (!d.negative && d.exponent == 0 && (d.end == AFTER_ZERO || d.end == AFTER_DIGITS))
        return true;
    r->at = at;
    return json_fail(r, "expected a whole number that is not negative");
}

bool json_read_number(json_reader *r, double *value)
{
    decimal d;
    if (!scan_number(r, &d))
        return false;
    double x = (double)d.digits;
    int64_t exponent = d.exponent;
    for (; exponent < -308 && x != 0; exponent += 308)
        x /= 1e308;
    if (x != 0)
        x = exponent < 0     ? x / powers_of_ten[-exponent]
            : exponent > 308 ? HUGE_VAL
                             : x * powers_of_ten[exponent];
    if (!isfinite(x))
        return json_fail(r, "a number that is too large");
    *value = d.negative ? -x : x;
    return true;
}

/* ---- Words ---- */

static bool read_word(json_reader *r, json_kind kind)
{
    const char *word = kind == JSON_TRUE ? "true" : kind == JSON_FALSE ? "false" : "null";
    const size_t n = strlen(word);
    if (r->n_bytes - r->at < n || memcmp(r->text + r->at, word, n) != 0)
        return refuse(r, "expected a value");
    r->at += n;
    return true;
}

static bool read_bool(json_reader *r, bool *value)
{
    const json_kind kind = json_peek(r);
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return json_fail(r, "expected true or false");
    *value = kind == JSON_TRUE;
    return read_word(r, kind);
}

/* ---- Skipping ---- */

static bool skip_scalar(json_reader *r, json_kind kind)
{
    decimal d;
    switch (kind) {
    case JSON_STRING:
        return scan_string(r, NULL);
    case JSON_NUMBER:
        return scan_number(r, &d);
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return read_word(r, kind);
    default:
        return refuse(r, "expected a value");
    }
}

bool json_skip(json_reader *r)
{
    const unsigned depth = r->depth;
    do {
        const json_kind kind = json_peek(r);
        const bool container = kind == JSON_OBJECT || kind == JSON_ARRAY;
        if (!(container ? json_begin(r, kind) : skip_scalar(r, kind)))
            return false;
        while (r->depth > depth) {
            const bool object = (r->levels[r->depth] & ~LEVEL_BEGUN) == JSON_OBJECT;
            if (object ? json_next_key(r, NULL) : json_next_item(r))
                break;
            if (r->failure[0])
                return false;
        }
    } while (r->depth > depth);
    return true;
}

bool json_end(json_reader *r)
{
    if (next_byte(r) >= 0)
        return json_fail(r, "trailing data after the value");
    return r->failure[0] == '\0';
}

/* ---- Objects with known fields ---- */

bool json_string_is(json_string s, const char *text)
{
    return strlen(text) == s.n_bytes && memcmp(s.s, text, s.n_bytes) == 0;
}

json_kind json_field_kind(json_reader *r, const json_field *field)
{
    const size_t at = r->at;
    if (!field->at)
        return JSON_NONE;
    r->at = field->at;
    const json_kind kind = json_peek(r);
    r->at = at;
    return kind;
}

bool json_field_given(json_reader *r, const json_field *field)
{
    const json_kind kind = json_field_kind(r, field);
    return kind != JSON_NONE && kind != JSON_NULL;
}

static void read_value(json_reader *r, const json_field *field)
{
    const size_t at = r->at;
    if (!json_field_given(r, field))
        return;
    r->at = field->at;
    if (field->flag)
        read_bool(r, field->flag);
    if (field->number)
        json_read_uint(r, field->number);
    if (field->text)
        json_read_string(r, field->text);
    r->at = at;
}

bool json_field_string(json_reader *r, const json_field *field, json_string *s)
{
    read_value(r, &(json_field){.at = field->at, .text = s});
    return r->failure[0] == '\0';
}

bool json_read_fields(json_reader *r, const char *what, json_field *fields, size_t n_fields)
{
    json_string key = {"", 0};
    if (!json_begin(r, JSON_OBJECT))
        return false;
    while (json_next_key(r, &key)) {
        json_field *field = fields;
        while (field < fields + n_fields && !json_string_is(key, field->name))
            field++;
        const int n_shown = key.n_bytes < 60 ? (int)key.n_bytes : 60;
        if (field == fields + n_fields)
            return json_fail(r, "%s: the field \"%.*s\" is not supported", what, n_shown, key.s);
        if (field->at)
            return json_fail(r, "%s: the field \"%.*s\" appears twice", what, n_shown, key.s);
        field->at = r->at;
        const json_kind kind = json_peek(r);
        if (field->kind != JSON_NONE && kind != field->kind &&
            !(field->kind == JSON_TRUE && kind == JSON_FALSE))
            return json_fail(r, "%s: the field \"%s\" has a wrong type", what, field->name);
        if (!json_skip(r))
            return false;
    }
    for (size_t i = 0; i < n_fields && r->failure[0] == '\0'; i++) {
        if (!fields[i].at && fields[i].kind != JSON_NONE && !fields[i].optional)
            return json_fail(r, "%s without %s", what, fields[i].name);
        read_value(r, &fields[i]);
    }
    return r->failure[0] == '\0';
}
