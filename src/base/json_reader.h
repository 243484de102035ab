/* SPDX-License-Identifier: Apache-2.0 */
/* json_reader.h - reads a JSON text in memory value by value, in the order of the text.
 *
 * Strict: RFC 8259, UTF-8, escaped surrogates only in pairs, nesting at most JSON_MAX_DEPTH.
 *
 *     json_begin(r, JSON_OBJECT);
 *     while (json_next_key(r, &key))
 *         ... read or json_skip the value ...
 *     if (r->failure[0]) ... r->failure_at ...
 *
 * After a failure every call fails, so one check at the end is enough. Time is linear. The only
 * memory allocated is one buffer for strings with escapes that are read, not skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_parts.h"

typedef enum json_kind {
    JSON_NONE, /* no value starts here */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_kind;

typedef struct json_string { /* valid until the next string is read; not NUL-terminated */
    const char *s;
    size_t n_bytes;
} json_string;

typedef struct json_reader {
    const uint8_t *text;
    size_t n_bytes, at;
    unsigned depth;
    uint8_t levels[JSON_MAX_DEPTH + 1]; /* json_kind, and whether a value of it was read */
    char *buffer;
    size_t capacity;
    char failure[200]; /* empty: no failure */
    size_t failure_at;
    bool no_memory; /* the failure is: out of memory */
} json_reader;

void json_reader_init(json_reader *r, const void *text, size_t n_bytes);
void json_reader_free(json_reader *r);
/* Always returns false. Keeps the first failure. */
bool json_fail(json_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool json_no_memory(json_reader *r);

/* The kind of the next value. */
json_kind json_peek(json_reader *r);
bool json_begin(json_reader *r, json_kind container);
/* false: the end of the container, or a failure. key may be NULL. */
bool json_next_key(json_reader *r, json_string *key);
bool json_next_item(json_reader *r);
bool json_read_string(json_reader *r, json_string *s);
/* A number without sign, fraction or exponent. */
bool json_read_uint(json_reader *r, uint64_t *value);
/* The same double as serde_json without its feature float_roundtrip, which tokenizers uses: not
 * always the nearest one. */
bool json_read_number(json_reader *r, double *value);
bool json_skip(json_reader *r);
/* Whether nothing but white space is left. */
bool json_end(json_reader *r);

/* ---- Objects with known fields ---- */

typedef struct json_field {
    const char *name;
    size_t at;      /* offset of its value; 0: absent */
    json_kind kind; /* JSON_NONE: of any kind, null, or absent; else of this one; JSON_TRUE: or
                       JSON_FALSE */
    bool optional;  /* of this kind or absent */
    /* Where its value goes, or NULL. One that is absent or null leaves this unchanged. */
    bool *flag;
    uint64_t *number;
    json_string *text; /* of one field of an object at most: reading another string ends it */
} json_field;

/* Reads an object: where its fields are, and their values. A field that is not in the list, that
 * appears twice, or that is not as its entry says, is a failure. `what` names the object in the
 * message. */
bool json_read_fields(json_reader *r, const char *what, json_field *fields, size_t n_fields);
/* These keep the position of the reader. */
json_kind json_field_kind(json_reader *r, const json_field *field);
/* Whether it is neither absent nor null. */
bool json_field_given(json_reader *r, const json_field *field);
/* Leaves *s unchanged if it is not given. */
bool json_field_string(json_reader *r, const json_field *field, json_string *s);
bool json_string_is(json_string s, const char *text);
