/* SPDX-License-Identifier: Apache-2.0 */
#include "oracles/json_oracle.h"

#include <stdlib.h>
#include <string.h>

#define PADDING 64
#define ORACLE_BYTE 0x80000000u

typedef struct oracle_string {
    uint32_t *units;
    size_t n;
} oracle_string;

typedef enum oracle_kind {
    ORACLE_OTHER,
    ORACLE_NULL,
    ORACLE_STRING,
    ORACLE_OBJECT
} oracle_kind;

typedef struct oracle_value {
    oracle_kind kind;
    oracle_string string; /* of a string; of an object, what the path leads to */
    bool found, is_null;  /* in the object */
} oracle_value;

typedef struct oracle {
    const uint8_t *line;
    size_t at, n_bytes;
    const char *const *parts; /* of the path */
    size_t n_parts;
    bool malformed; /* `at` is the place */
    uint64_t n_strings;
} oracle;

static int oracle_peek(const oracle *o)
{
    return o->at < o->n_bytes && !o->malformed ? o->line[o->at] : -1;
}

static bool oracle_take(oracle *o, int c)
{
    if (oracle_peek(o) != c)
        return false;
    o->at++;
    return true;
}

static void oracle_need(oracle *o, int c)
{
    if (!oracle_take(o, c))
        o->malformed = true;
}

static void oracle_space(oracle *o)
{
    while (oracle_peek(o) == ' ' || oracle_peek(o) == '\t' || oracle_peek(o) == '\n' ||
           oracle_peek(o) == '\r')
        o->at++;
}

static void oracle_add(oracle_string *s, uint32_t unit)
{
    if (s->n > 0 && s->units[s->n - 1] >= 0xd800 && s->units[s->n - 1] <= 0xdbff &&
        unit >= 0xdc00 && unit <= 0xdfff)
        s->units[s->n - 1] = 0x10000 + ((s->units[s->n - 1] & 0x3ff) << 10) + (unit & 0x3ff);
    else
        s->units[s->n++] = unit;
}

static uint32_t oracle_hex4(oracle *o)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4 && !o->malformed; i++) {
        int c = oracle_peek(o);
        const char *digits = "0123456789abcdefABCDEF";
        const char *digit = c > 0 ? strchr(digits, c) : NULL;
        o->malformed = digit == NULL;
        if (digit) {
            unit = unit * 16 + (uint32_t)(digit - digits) - (digit - digits > 15 ? 6 : 0);
            o->at++;
        }
    }
    return unit;
}

static oracle_string oracle_read_string(oracle *o)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    oracle_string s = {malloc((o->n_bytes + 1) * sizeof *s.units), 0};
    oracle_need(o, '"');
    while (!o->malformed && oracle_peek(o) != '"') {
        int c = oracle_peek(o);
        o->malformed = c < 0x20;
        if (!o->malformed)
            o->at++;
        if (o->malformed || c != '\\') {
            s.units[s.n++] = ORACLE_BYTE | (uint32_t)c;
            continue;
        }
        c = oracle_peek(o);
        const char *escape = c > 0 ? strchr(escapes, c) : NULL;
        if (escape) {
            o->at++;
            s.units[s.n++] = ORACLE_BYTE | (uint32_t)meanings[escape - escapes];
        } else {
            oracle_need(o, 'u');
            oracle_add(&s, oracle_hex4(o));
        }
    }
    oracle_need(o, '"');
    return s;
}

static void oracle_digits(oracle *o)
{
    if (oracle_peek(o) < '0' || oracle_peek(o) > '9')
        o->malformed = true;
    while (!o->malformed && oracle_peek(o) >= '0' && oracle_peek(o) <= '9')
        o->at++;
}

static void oracle_number(oracle *o)
{
    oracle_take(o, '-');
    if (!oracle_take(o, '0'))
        oracle_digits(o);
    if (oracle_take(o, '.'))
        oracle_digits(o);
    if (oracle_take(o, 'e') || oracle_take(o, 'E')) {
        if (!oracle_take(o, '+'))
            oracle_take(o, '-');
        oracle_digits(o);
    }
}

static uint8_t *oracle_encode(const oracle_string *s, size_t *n_bytes, uint64_t *lone)
{
    uint8_t *out = malloc(s->n * 4 + 1);
    size_t n = 0;
    *lone = 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t u = s->units[i];
        if (u & ORACLE_BYTE) {
            out[n++] = (uint8_t)u;
            continue;
        }
        if (u >= 0xd800 && u <= 0xdfff) {
            u = 0xfffd;
            ++*lone;
        }
        int n_more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
        const uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
        out[n++] = (uint8_t)(leads[n_more] | u >> 6 * n_more);
        while (n_more-- > 0)
            out[n++] = (uint8_t)(0x80 | (u >> 6 * n_more & 0x3f));
    }
    *n_bytes = n;
    return out;
}

static bool oracle_is_key(const oracle_string *key, const char *part)
{
    size_t n_bytes;
    uint64_t lone;
    uint8_t *text = oracle_encode(key, &n_bytes, &lone);
    bool same = lone == 0 && n_bytes == strlen(part) && memcmp(text, part, n_bytes) == 0;
    free(text);
    return same;
}

static inline oracle_value oracle_read_value(oracle *o, size_t depth, size_t part);

/* A member whose key is part `part` of the path: what it means for the object that it is in. */
static void oracle_follow(oracle *o, oracle_value *object, oracle_value *member, size_t part)
{
    o->n_strings += part + 1 == o->n_parts && member->kind == ORACLE_STRING;
    free(object->string.units);
    object->string = member->string;
    object->found = part + 1 == o->n_parts ? member->kind == ORACLE_STRING
                                           : member->kind == ORACLE_OBJECT && member->found;
    object->is_null = member->kind == ORACLE_NULL || member->is_null;
    member->string.units = NULL;
}

static void oracle_read_items(oracle *o, oracle_value *value, size_t depth, size_t part)
{
    bool object = value->kind == ORACLE_OBJECT;
    int closing = object ? '}' : ']';
    oracle_space(o);
    if (oracle_take(o, closing))
        return;
    while (!o->malformed) {
        bool on_path = false;
        oracle_space(o);
        if (object) {
            oracle_string key = oracle_read_string(o);
            on_path = !o->malformed && part < o->n_parts && oracle_is_key(&key, o->parts[part]);
            free(key.units);
            oracle_space(o);
            oracle_need(o, ':');
            oracle_space(o);
        }
        oracle_value member = oracle_read_value(o, depth, on_path ? part + 1 : SIZE_MAX);
        if (on_path)
            oracle_follow(o, value, &member, part);
        free(member.string.units);
        oracle_space(o);
        if (oracle_take(o, closing))
            return;
        oracle_need(o, ',');
    }
}

static oracle_value oracle_read_value(oracle *o, size_t depth, size_t part)
{
    oracle_value value = {0};
    int c = oracle_peek(o);
    if (o->malformed)
        return value;
    if (c == '"') {
        value.kind = ORACLE_STRING;
        value.string = oracle_read_string(o);
    } else if (c == '{' || c == '[') {
        o->malformed = depth == JSON_MAX_DEPTH;
        if (!o->malformed) {
            value.kind = c == '{' ? ORACLE_OBJECT : ORACLE_OTHER;
            o->at++;
            oracle_read_items(o, &value, depth + 1, part);
        }
    } else if (c == 't' || c == 'f' || c == 'n') {
        value.kind = c == 'n' ? ORACLE_NULL : ORACLE_OTHER;
        for (const char *w = c == 't' ? "true" : c == 'f' ? "false" : "null"; *w; w++)
            oracle_need(o, *w);
    } else {
        oracle_number(o);
    }
    return value;
}

oracle_result oracle_read(const char *const *parts, size_t n_parts, const uint8_t *line,
                          size_t n_bytes)
{
    oracle o = {.line = line, .n_bytes = n_bytes, .parts = parts, .n_parts = n_parts};
    oracle_result result = {.status = JSON_LINE_OK};
    oracle_space(&o);
    oracle_value value = oracle_read_value(&o, 0, 0);
    if (!o.malformed) {
        oracle_space(&o);
        o.malformed = o.at < n_bytes;
    }
    result.error_offset = o.at;
    result.text = oracle_encode(&value.string, &result.n_bytes, &result.lone_surrogates);
    free(value.string.units);
    if (o.malformed)
        result.status = JSON_LINE_MALFORMED;
    else if (value.kind != ORACLE_OBJECT)
        result.status = JSON_LINE_NO_OBJECT;
    else if (!value.found)
        result.status = value.is_null && o.n_strings == 0 ? JSON_LINE_NULL : JSON_LINE_NO_FIELD;
    return result;
}

/* ---- What json_line.c says ---- */

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Bytes after the line must not matter. */
oracle_result scan_line(json_paths *paths, const uint8_t *line, size_t n_bytes, size_t alignment)
{
    static const char behind[] = "\"}{,\\\n\"text\":\"x\"}]";
    uint8_t *memory = malloc(alignment + n_bytes + PADDING), *copy = memory + alignment;
    uint8_t *out = malloc(n_bytes + 1);
    json_line_result r;
    memcpy(copy, line, n_bytes);
    for (size_t i = 0; i < PADDING; i++)
        copy[n_bytes + i] = (uint8_t)behind[i % (sizeof behind - 1)];
    out[n_bytes] = 0xa5;
    const json_line_status status = json_line_text(paths, copy, n_bytes, out, NULL, &r);
    must(out[n_bytes] == 0xa5);
    must(status != JSON_LINE_OK || (r.text >= out && r.text + r.n_bytes <= out + n_bytes) ||
         (r.text >= copy && r.text + r.n_bytes <= copy + n_bytes));
    must((status == JSON_LINE_OK) == (r.reason == NULL));
    oracle_result result = {.status = status, .text = malloc(n_bytes + 1)};
    if (status == JSON_LINE_MALFORMED)
        result.error_offset = r.error_offset;
    if (status == JSON_LINE_OK) {
        memcpy(result.text, r.text, r.n_bytes);
        result.n_bytes = r.n_bytes;
        result.lone_surrogates = r.lone_surrogates;
    }
    free(memory);
    free(out);
    return result;
}

bool oracle_agrees(const oracle_result *expected, const oracle_result *got)
{
    if (got->status != expected->status)
        return false;
    if (got->status == JSON_LINE_MALFORMED)
        return got->error_offset == expected->error_offset;
    return got->status != JSON_LINE_OK || (got->n_bytes == expected->n_bytes &&
                                           memcmp(got->text, expected->text, got->n_bytes) == 0 &&
                                           got->lone_surrogates == expected->lone_surrogates);
}
