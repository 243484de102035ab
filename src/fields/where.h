/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - the expression of --where: which documents to keep, by the values of their fields.
 *
 *     expression = and-part { "or" and-part }
 *     and-part   = not-part { "and" not-part }
 *     not-part   = "not" not-part | "(" expression ")" | comparison
 *     comparison = operand ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand
 *                | field
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
 * `x in (1, 2)` is x == 1 or x == 2. A field alone is `field != 0`. A field named "in" needs no
 * quotes where a field is expected. `true` is 1 and `false` 0, as in the values. Strings are
 * compared by their bytes. Numbers of any length are compared exactly, as they are written
 * (number.h), except that a literal with a fraction or an exponent stands for the nearest double
 * when it is compared with a double of a column. A date or a timestamp is an INT64 whose
 * text_bytes is its time_unit: it is compared as a point in time with others, and with strings
 * that moment.h reads; its integer is compared with a number. A comparison, including !=, is false
 * if a value is null or not a number (NaN), or if it compares a number with a string; `not` makes
 * it true. Pure. */
#pragma once

#include <tokmap.h>

#include "base/hash.h"
#include "fields/field_list.h"

enum {
    WHERE_MAX_BYTES = 16384, /* of an expression */
    WHERE_MAX_DEPTH = 64     /* of parentheses and `not` */
};

typedef struct where where;

/* Compiles an expression, and adds its fields to the list. Returns NULL if it fails: *err says why,
 * and the list may have more fields than before. */
where *where_compile(const char *text, field_list *fields, failure *err);
void where_free(where *w);

/* Adds to a hash all that decides which documents are kept, except the names of the fields. */
void where_hash(const where *w, tokmap_i_hasher *hasher);
/* Whether to keep a document: values[i] belongs to fields->names[i]. */
bool where_holds(const where *w, const tokmap_value *values);
/* Whether one field, the only one that is known, makes the expression false: the tests are followed
 * up to the first one that reads another field. */
bool where_fails_by(const where *w, size_t field, const tokmap_value *values);

/* The type of fields with dates or points in time, in addition to tokmap_value_type. */
#define WHERE_TIME ((tokmap_value_type)16)

/* Checks the types of the fields, for inputs that know them: types[i] is the type of
 * fields->names[i], TOKMAP_VALUE_NULL if it is not known. Returns false if the expression compares
 * a number with a string, or a time with a literal that is not a time. */
bool where_check_types(const where *w, const tokmap_value_type *types, failure *err);

/* ---- The tests of an expression, for select.c, which evaluates many documents at once ---- */

#define WHERE_NO_FIELD SIZE_MAX /* the operand is a literal */
/* Where evaluation ends; any other exit is the number of a later test. */
#define WHERE_TRUE SIZE_MAX
#define WHERE_FALSE (SIZE_MAX - 1)

/* What a test accepts: some orders of its operands, or some fields. */
enum {
    WHERE_LESS = 1,
    WHERE_EQUAL = 2,
    WHERE_GREATER = 4,
    WHERE_NULL = 8,
    WHERE_NOT_NULL = 16
};

typedef struct where_test {
    size_t left, right; /* fields, or WHERE_NO_FIELD */
    unsigned accepts;   /* bits of the enum */
    size_t if_true, if_false;
} where_test;

/* Evaluation begins with test 0. */
size_t where_n_tests(const where *w);
where_test where_get_test(const where *w, size_t test);
/* Returns the order of the operands: WHERE_LESS if the left one is less, and so on; 0 if they
 * cannot be compared. */
unsigned where_test_order(const where *w, size_t test, const tokmap_value *values);
bool where_test_holds(const where *w, size_t test, const tokmap_value *values);
