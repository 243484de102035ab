/* SPDX-License-Identifier: Apache-2.0 */
/* exact_number.h - numbers as a tokmap_value that are not rounded.
 *
 * An INT64 is its integer. A FLOAT64 is its double, unless it has a longer form; then `real` is the
 * nearest double to it, and the number is
 *     what `text` says, if that is not NULL: a number of JSON, of any length;
 *     else, if `integer` is not 0, those 64 bits without a sign.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

/* A number of JSON; the byte after it must be none of a number. Unless it is an INT64, the value
 * points to the text. */
tokmap_value number_read(const char *text, size_t n_bytes);
tokmap_value number_of_unsigned(uint64_t n);

enum {
    NUMBER_MAX_DECIMAL_BYTES = 32,
    NUMBER_DECIMAL_TEXT_BYTES = 96
};

/* A decimal: these bytes are a signed integer, the lowest byte first, which is divided by 10^scale.
 * With scale 0 an INT64 if it fits. Unless it is an INT64, the value points to `text`. */
tokmap_value number_of_decimal(const uint8_t *bytes, size_t n_bytes, int32_t scale,
                               char text[NUMBER_DECIMAL_TEXT_BYTES]);
/* All of the digits, of which there must be some. False: anything else, or more than 64 bits. */
bool number_read_digits(const char *digits, size_t n_digits, uint64_t *value);

/* Below 0, 0 or above: how a compares with b. Neither is NaN. A fraction or an exponent that was
 * written is equal to the double, without a longer form, that is nearest to it; all else is exact.
 * An exponent beyond 10^17 counts as 10^17. */
int number_compare(const tokmap_value *a, const tokmap_value *b);
/* Whether 8 bytes can hold it: an INT64, or a FLOAT64 that is finite if the number is, and equal to
 * it if it was written without fraction and exponent. */
bool number_is_storable(const tokmap_value *v);
