/* SPDX-License-Identifier: Apache-2.0 */
/* json_line.h - extracts one string or one list from a line of JSON, at memory speed, and the
 * values of fields.
 *
 * The line is checked as strictly as by json_reader.h, with three differences: a lone surrogate
 * escape becomes U+FFFD (counted); NaN, Infinity and -Infinity are numbers, as Python reads and
 * writes them, unless paths->strict; and bytes above 7F are not checked: the caller checks the
 * UTF-8 of the text. Of duplicate keys the last one counts, as in Python. Vectorised; the scalar
 * code is the definition.
 *
 * With paths->lists, the text is a list as it stands in the line; so is the value of the last field
 * with paths->marks, as a string.
 *
 * The value of a field is null if the field is missing, null, an object or a list. true is 1 and
 * false 0. A number that has neither a fraction nor an exponent and fits 64 bits is an integer, and
 * any other number the nearest double and the text of the number, as number.h says. Pure. */
#pragma once

#include "formats/json_paths.h"

typedef enum json_line_status {
    JSON_LINE_OK,
    JSON_LINE_MALFORMED, /* not one JSON value, or trailing data after it */
    JSON_LINE_NO_FIELD,  /* no such key, or its value is not a string or a list */
    JSON_LINE_NULL,      /* its value, or that of a key before it in the path, is null; if the key
                            appeared before with a string, it is JSON_LINE_NO_FIELD */
    JSON_LINE_NO_OBJECT
} json_line_status;

typedef struct json_line_result {
    const uint8_t *text; /* of the field: points into the line if it has no escapes, else into
                            `out` */
    size_t n_bytes;
    uint64_t lone_surrogates;
    uint64_t error_offset; /* in the line */
    const char *reason;    /* static; NULL: no error */
} json_line_result;

/* line must have 64 readable bytes after n_bytes, and out must have room for n_bytes. values[i], if
 * values is not NULL, becomes that of paths->fields->names[i], @row null; they mean nothing if the
 * line is malformed or no object. Strings point into the line or into `out`, numbers into the
 * line. */
json_line_status json_line_text(json_paths *paths, const uint8_t *line, size_t n_bytes,
                                uint8_t *out, tokmap_value *values, json_line_result *result);
