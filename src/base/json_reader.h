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
/* Stores a failure, unless there is one, and returns false. */
bool json_fail(json_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool json_no_memory(json_reader *r);

/* Returns the kind of the next value. */
json_kind json_peek(json_reader *r);
bool json_begin(json_reader *r, json_kind container);
/* Goes to the next key. Returns false at the end of the container, or after a failure. key may be
 * NULL. */
bool json_next_key(json_reader *r, json_string *key);
bool json_next_item(json_reader *r);
bool json_read_string(json_reader *r, json_string *s);
/* Reads a number without sign, fraction or exponent. */
bool json_read_uint(json_reader *r, uint64_t *value);
/* Reads a number as serde_json does without its feature float_roundtrip, which tokenizers uses: not
 * always as the nearest double. */
bool json_read_number(json_reader *r, double *value);
bool json_skip(json_reader *r);
/* Whether nothing but white space is left. */
bool json_end(json_reader *r);

/* ---- Objects with known fields ---- */

typedef struct json_field {
    const char *name;
    size_t at; /* offset of its value; 0: absent */
    /* JSON_NONE: any kind, null, or absent; JSON_TRUE: true or false; else this kind */
    json_kind kind;
    bool optional; /* may be absent */
    /* Where its value is stored, or NULL. A field that is absent or null leaves it unchanged. */
    bool *flag;
    uint64_t *number;
    /* At most one field of an object may have it: reading another string ends its life. */
    json_string *text;
} json_field;

/* Reads an object: finds its fields, and reads their values. Fails at a field that is not in the
 * list, that appears twice, or that is not as its entry says. `what` names the object in the
 * message. */
bool json_read_fields(json_reader *r, const char *what, json_field *fields, size_t n_fields);
/* Return the kind and the value of a field, without moving the reader. */
json_kind json_field_kind(json_reader *r, const json_field *field);
/* Whether the field is neither absent nor null. */
bool json_field_given(json_reader *r, const json_field *field);
/* Leaves *s unchanged if the field is absent or null. */
bool json_field_string(json_reader *r, const json_field *field, json_string *s);
bool json_string_is(json_string s, const char *text);
