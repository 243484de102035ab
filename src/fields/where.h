/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - the expression of --where: which documents to keep, by the values of their fields.
 *
 *     expression = and-part { "or" and-part }
 *     and-part   = not-part { "and" not-part }
 *     not-part   = "not" not-part | "(" expression ")" | comparison
 *     comparison = operand ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
 *                | field "is" [ "not" ] "null"
 *                | field "in" "(" value { "," value } ")"
 *     operand    = field | value
 *     value      = number | string | "true" | "false"
 *     field      = [ "@" ] word { "." word } | "`" any name "`"
 *     word       = a letter, "_" or a character that is not ASCII; then these and digits
 *     number     = as in JSON
 *     string     = '"' characters '"' | "'" characters "'", with the escapes of JSON, and \'
 *
 * White space may stand between all of these. At least one operand of a comparison is a field.
 * `x in (1, 2)` is x == 1 or x == 2. A field named "in" needs no quotes where a field is expected.
 * `true` is 1 and `false` 0, as in the values. Strings are compared by their bytes, and numbers
 * exactly, as they are written, of any length (exact_number.h); only a literal with a fraction or
 * an exponent is the nearest double where it meets a double of a column. A date or a timestamp is
 * an INT64 whose text_bytes is its time_unit: it is compared with others, and with strings that
 * moment.h reads, as a point in time; with a number, its integer is. A comparison is false, with !=
 * too, if a value is null or not a number (NaN), or if it compares a number with a string; `not`
 * makes it true. Pure. */
#pragma once

#include <tokmap.h>

#include "fields/field_list.h"

enum {
    WHERE_MAX_BYTES = 16384, /* of an expression */
    WHERE_MAX_DEPTH = 64     /* of parentheses and `not` */
};

typedef struct where where;

/* Adds the fields of the expression to the list, behind those that it has. NULL: *err says why, and
 * the list may have more fields than before. */
where *where_compile(const char *text, field_list *fields, failure *err);
void where_free(where *w);

/* Whether to keep a document: values[i] belongs to fields->names[i]. */
bool where_holds(const where *w, const tokmap_value *values);

/* Beside the types of values, the type of fields with dates or points in time. */
#define WHERE_TIME ((tokmap_value_type)16)

/* For inputs that know the types of their fields: types[i] is that of fields->names[i], or
 * TOKMAP_VALUE_NULL if it is not known. false: the expression compares a number with a string, or a
 * time with a literal that is none. */
bool where_check_types(const where *w, const tokmap_value_type *types, failure *err);
