/* SPDX-License-Identifier: Apache-2.0 */
/* json_fields.h - the values of some fields of a line of JSON.
 *
 * The line is one that json_line.h has accepted: nothing is checked again, and the values of other
 * lines mean nothing. A value is null if the field is missing, null, an object or a list. true is 1
 * and false 0. A number that has neither a fraction nor an exponent and fits 64 bits is an integer,
 * and any other number the nearest double and the text of the number, as exact_number.h says.
 * Strings are as in json_line.h: a lone surrogate escape becomes U+FFFD, and bytes above 7F are not
 * checked. Of duplicate keys the last one counts.
 * Pure. */
#ifndef TOKMAP_JSON_FIELDS_H
#define TOKMAP_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tokmap.h>

#include "fields/field_list.h"

typedef struct json_fields json_fields;

/* The list must stay valid, and must not change, until json_fields_free. NULL: out of memory. */
json_fields *json_fields_new(const field_list *fields);
void json_fields_free(json_fields *f);

/* Fills values[i] for the field fields->names[i]; @row is null. line must have 64 readable bytes
 * after n_bytes. Strings point into the line, or into memory that is valid until the next call.
 * false: out of memory. */
bool json_fields_read(json_fields *f, const uint8_t *line, size_t n_bytes, tokmap_value *values);

/* ---- Of all lines so far ---- */

/* Whether no line had the field, or it never was anything but an object or a list. Then the text
 * says so, and which one is similar. */
bool json_fields_missing(const json_fields *f, size_t field, char *text, size_t text_bytes);
/* STRING or INT64 if all its values that are not null are strings or numbers, else NULL. */
tokmap_value_type json_fields_type(const json_fields *f, size_t field);

#endif /* TOKMAP_JSON_FIELDS_H */
