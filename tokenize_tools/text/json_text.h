/* json_text.h - JSON text as a whole: checked, searched, compared and printed, without a tree.
 *
 * As strict as json_reader.h, by which it is read. */
#ifndef TOKMAP_JSON_TEXT_H
#define TOKMAP_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct json_text_error {
    size_t offset; /* byte where the text stops being JSON */
    char reason[200];
} json_text_error;

typedef struct json_text_span {
    const char *text;
    size_t n_bytes;
} json_text_span;

/* Whether the text is one JSON object. err may be NULL. */
bool json_text_check_object(json_text_span text, json_text_error *err);

/* The value of `key` in an object that passed json_text_check_object: false, and *value as it
 * was, when there is none. The first of several. Works on the value itself too, when that is an
 * object; any other value has no keys. */
bool json_text_find(json_text_span object, const char *key, json_text_span *value);

/* Whether the value is the string `s`. */
bool json_text_is_string(json_text_span value, const char *s);

/* Prints a text that is JSON on one line: without the white space between its parts, and with \u
 * escapes for characters that are not plain (plain_text.h). */
void json_text_print(FILE *out, json_text_span text);
/* Whether two texts that are JSON are the same but for white space. */
bool json_text_same(json_text_span a, json_text_span b);

/* A JSON string with its quotes; each maximal part that is not UTF-8 becomes one U+FFFD, as Python
 * and Rust replace it, and characters that are not plain become \u escapes. */
void json_text_print_string(FILE *out, const char *s, size_t n_bytes);

#endif /* TOKMAP_JSON_TEXT_H */
