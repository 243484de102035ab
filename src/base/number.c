/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/real.h"

#define DIGITS_BYTES 320 /* for any whole double */
#define MOST_EXPONENT ((int64_t)100000000000000000)

tokmap_value number_read(const char *text, size_t n_bytes)
{
    const bool negative = *text == '-';
    uint64_t n;
    if (number_read_digits(text + negative, n_bytes - negative, &n) &&
        n <= (uint64_t)INT64_MAX + negative)
        return (tokmap_value){.type = TOKMAP_VALUE_INT64,
                              .integer = (int64_t)(negative ? 0 - n : n)};
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64,
                          .real = real_read(text, NULL),
                          .text = text,
                          .text_bytes = n_bytes};
}

bool number_read_digits(const char *digits, size_t n_digits, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < n_digits; i++) {
        if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(digits[i] - '0'), value))
            return false;
    }
    return n_digits > 0;
}

tokmap_value number_of_unsigned(uint64_t n)
{
    if (n <= INT64_MAX)
        return (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = (int64_t)n};
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = (double)n, .integer = (int64_t)n};
}

/* Writes the digits of n before `end`, and sets n to 0. */
static char *write_digits(uint32_t *n, size_t n_limbs, char *end)
{
    uint32_t any;
    do {
        uint64_t rest = 0;
        any = 0;
        for (size_t i = n_limbs; i-- > 0;) {
            rest = rest << 32 | n[i];
            n[i] = (uint32_t)(rest / 10);
            rest %= 10;
            any |= n[i];
        }
        *--end = (char)('0' + rest);
    } while (any);
    return end;
}

tokmap_value number_of_decimal(const uint8_t *bytes, size_t n_bytes, int32_t scale,
                               char text[NUMBER_DECIMAL_TEXT_BYTES])
{
    const bool is_negative = bytes[n_bytes - 1] >> 7;
    uint8_t extended[NUMBER_MAX_DECIMAL_BYTES];
    uint32_t limbs[NUMBER_MAX_DECIMAL_BYTES / 4];
    char digits[NUMBER_DECIMAL_TEXT_BYTES] = "";
    uint64_t carry = is_negative;
    memset(extended, is_negative ? 0xff : 0, sizeof extended);
    memcpy(extended, bytes, n_bytes);
    for (size_t i = 0; i < sizeof extended / 4; i++) {
        const uint32_t limb = le_get32(extended + 4 * i);
        carry += is_negative ? ~limb : limb;
        limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    const char *first =
        write_digits(limbs, sizeof extended / 4, digits + NUMBER_DECIMAL_TEXT_BYTES - 1);
    int n = snprintf(text, NUMBER_DECIMAL_TEXT_BYTES, "%s%s", is_negative ? "-" : "", first);
    if (scale != 0)
        n +=
            snprintf(text + n, NUMBER_DECIMAL_TEXT_BYTES - (size_t)n, "e%" PRId64, -(int64_t)scale);
    return number_read(text, (size_t)n);
}

/* ---- Decimals ---- */

typedef struct decimal {
    int sign;
    const char *at, *end; /* from the first digit that is not 0; may contain a point */
    int64_t power;        /* the power of ten of that digit */
} decimal;

static const char *find_any(const char *at, const char *end, const char *bytes)
{
    while (at < end && !strchr(bytes, *at))
        at++;
    return at;
}

/* Reads a decimal. No digit may follow the text. */
static decimal read_decimal(const char *text, size_t n_bytes)
{
    const char *const end = text + n_bytes, *const e = find_any(text, end, "eE");
    const char *const point = find_any(text, e, ".");
    decimal d = {.at = find_any(text, e, "123456789"), .end = e};
    const int64_t exponent = e < end ? strtoll(e + 1, NULL, 10) : 0;
    d.sign = d.at == e ? 0 : *text == '-' ? -1 : 1;
    d.power = (point - d.at) - (d.at < point);
    d.power += exponent > MOST_EXPONENT    ? MOST_EXPONENT
               : exponent < -MOST_EXPONENT ? -MOST_EXPONENT
                                           : exponent;
    return d;
}

/* Returns the next digit; 0 after the last. */
static char take_digit(decimal *d)
{
    d->at += d->at < d->end && *d->at == '.';
    return d->at < d->end ? *d->at++ : '0';
}

static int compare_decimals(decimal a, decimal b)
{
    if (a.sign != b.sign || a.sign == 0)
        return a.sign - b.sign;
    int c = (a.power > b.power) - (a.power < b.power);
    while (c == 0 && (a.at < a.end || b.at < b.end))
        c = take_digit(&a) - take_digit(&b);
    return c * a.sign;
}

/* ---- Values ---- */

static bool is_double(const tokmap_value *v)
{
    return v->type == TOKMAP_VALUE_FLOAT64 && !v->text && !v->integer;
}

static bool is_whole(const tokmap_value *v)
{
    if (!v->text)
        return true;
    const char *const end = v->text + v->text_bytes;
    return find_any(v->text, end, ".eE") == end;
}

/* Converts a number to digits. A double must be whole. */
static decimal decimal_of(const tokmap_value *v, char digits[DIGITS_BYTES])
{
    if (v->text)
        return read_decimal(v->text, v->text_bytes);
    if (v->type == TOKMAP_VALUE_INT64)
        snprintf(digits, DIGITS_BYTES, "%" PRId64, v->integer);
    else if (v->integer)
        snprintf(digits, DIGITS_BYTES, "%" PRIu64, (uint64_t)v->integer);
    else
        real_print(digits, DIGITS_BYTES, "%.0f", v->real);
    return read_decimal(digits, strlen(digits));
}

/* Rounding keeps the order, so if the nearest doubles differ, they decide. */
int number_compare(const tokmap_value *a, const tokmap_value *b)
{
    const bool int_a = a->type == TOKMAP_VALUE_INT64, int_b = b->type == TOKMAP_VALUE_INT64;
    const bool double_a = is_double(a), double_b = is_double(b);
    const double x = int_a ? (double)a->integer : a->real, y = int_b ? (double)b->integer : b->real;
    char digits_a[DIGITS_BYTES], digits_b[DIGITS_BYTES];
    if (int_a && int_b)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (x != y || (double_a && double_b))
        return (x > y) - (x < y);
    if (isinf(x) && double_a != double_b) /* the other one is finite */
        return (x > 0) == double_a ? 1 : -1;
    if ((double_a && !is_whole(b)) || (double_b && !is_whole(a)))
        return 0;
    return compare_decimals(decimal_of(a, digits_a), decimal_of(b, digits_b));
}

bool number_is_storable(const tokmap_value *v)
{
    const tokmap_value nearest = {.type = TOKMAP_VALUE_FLOAT64, .real = v->real};
    if (v->type != TOKMAP_VALUE_FLOAT64 || is_double(v))
        return true;
    return !isinf(v->real) && (!is_whole(v) || number_compare(v, &nearest) == 0);
}
