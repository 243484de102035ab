/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - checks, searches and compares a whole JSON text, without building a tree.
 *
 * As strict as json_reader.h, which it uses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct json_text_span {
    const char *text;
    size_t n_bytes;
} json_text_span;

/* Whether the text is one JSON object. err may be NULL; its place is a byte. */
bool json_text_check_object(json_text_span text, failure *err);

/* Finds the value of `key` in an object that passed json_text_check_object, the first one if there
 * are several. Returns false and leaves *value unchanged if there is none. A value of that object
 * may be searched in the same way; what is not an object has no keys. */
bool json_text_find(json_text_span object, const char *key, json_text_span *value);

enum {
    JSON_ESCAPED_BYTES = 8
};
/* Makes what stands for the first character of n_bytes > 0 in JSON outside and inside of strings:
 * itself if it is plain (plain_text.h), else an escape (characters that are not plain are below
 * U+10000). Each maximal invalid part of UTF-8 becomes one U+FFFD, as in Python and Rust. Returns
 * the length of that character, or part. */
size_t json_text_character(const char *s, size_t n_bytes, char out[JSON_ESCAPED_BYTES],
                           size_t *n_out);
/* The same as json_text_character, but with the other escapes of a JSON string too. */
size_t json_text_escape(const char *s, size_t n_bytes, char out[JSON_ESCAPED_BYTES], size_t *n_out);

/* Whether the value is the string `s`. */
bool json_text_is_string(json_text_span value, const char *s);
