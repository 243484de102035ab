/* SPDX-License-Identifier: Apache-2.0 */
/* json_out.h - prints JSON: value by value, with the commas, or a JSON text as a whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_text.h"

/* Begin with {.out = FILE}, or with json_out_begin_result. */
typedef struct json_out {
    FILE *out;
    bool follows; /* the next value follows another one */
} json_out;
/* Begins the object that is the result of a command. */
json_out json_out_begin_result(FILE *out);

/* All calls take the key of the value; NULL in an array, and for the outermost value. */

/* Prints the key alone: the caller prints the value. */
void json_out_key(json_out *o, const char *key);
/* Begins an object or an array, as the bracket says; the calls until json_out_end print its
 * values. */
void json_out_begin(json_out *o, const char *key, char bracket);
void json_out_end(json_out *o, char bracket);
/* Prints null if s is NULL. */
void json_out_string(json_out *o, const char *key, const char *s);
void json_out_text(json_out *o, const char *key, const char *s, size_t n_bytes);
void json_out_number(json_out *o, const char *key, uint64_t value);
/* Prints null if the value is not known. */
void json_out_known(json_out *o, const char *key, uint64_t value, bool is_known);
void json_out_bool(json_out *o, const char *key, bool value);
/* Prints a string of 16 digits. */
void json_out_hash(json_out *o, const char *key, uint64_t hash);
/* Prints any other value, which the caller formats as JSON. */
void json_out_print(json_out *o, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints JSON text on one line: without the white space between its parts, and with \u escapes for
 * characters that are not plain (plain_text.h). */
void json_text_print(FILE *out, json_text_span text);

/* Prints a JSON string with its quotes. Each maximal invalid part of UTF-8 becomes one U+FFFD, as
 * in Python and Rust, and characters that are not plain become \u escapes. */
void json_text_print_string(FILE *out, const char *s, size_t n_bytes);
