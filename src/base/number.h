/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - numbers as a tokmap_value that are not rounded.
 *
 * An INT64 is its integer. A FLOAT64 is its double, unless it has a longer form; then `real` is the
 * nearest double to it, and the number is
 *     the number in `text`, if that is not NULL: a number of JSON, of any length;
 *     else, if `integer` is not 0, its 64 bits as an unsigned number.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

/* Reads a number of JSON. The byte after it must not belong to a number. Unless it is an INT64, the
 * value points to the text. */
tokmap_value number_read(const char *text, size_t n_bytes);
tokmap_value number_of_unsigned(uint64_t n);

enum {
    NUMBER_MAX_DECIMAL_BYTES = 32,
    NUMBER_DECIMAL_TEXT_BYTES = 96
};

/* Converts a decimal: a signed integer of these bytes, the lowest byte first, divided by 10^scale.
 * Gives an INT64 if scale is 0 and it fits; otherwise the value points to `text`. */
tokmap_value number_of_decimal(const uint8_t *bytes, size_t n_bytes, int32_t scale,
                               char text[NUMBER_DECIMAL_TEXT_BYTES]);
/* Reads a number that consists of digits, at least one. Returns false for anything else, and for
 * more than 64 bits. */
bool number_read_digits(const char *digits, size_t n_digits, uint64_t *value);

/* Compares a with b, neither of which is NaN: returns a number below, equal to or above 0. A number
 * that was written with a fraction or an exponent equals the nearest double; everything else is
 * compared exactly. An exponent beyond 10^17 counts as 10^17. */
int number_compare(const tokmap_value *a, const tokmap_value *b);
/* Whether 8 bytes can hold the number: an INT64, or a FLOAT64 that is finite if the number is, and
 * equal to it if it was written without fraction and exponent. */
bool number_is_storable(const tokmap_value *v);
