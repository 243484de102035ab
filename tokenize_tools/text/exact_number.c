/* SPDX-License-Identifier: Apache-2.0 */
#include "text/exact_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_parts.h"

enum {
    DIGITS_BYTES = 320 /* of any whole double */
};
#define MOST_EXPONENT ((int64_t)100000000000000000)

tokmap_value number_read(const char *text, size_t n_bytes, const char *written)
{
    tokmap_value v = {.type = TOKMAP_VALUE_INT64};
    char *end;
    if (json_whole_number(text, n_bytes, &v.integer))
        return v;
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64,
                          .real = strtod(text, &end),
                          .text = written,
                          .text_bytes = n_bytes};
}

tokmap_value number_of_unsigned(uint64_t n)
{
    if (n <= INT64_MAX)
        return (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = (int64_t)n};
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = (double)n, .integer = (int64_t)n};
}

/* ---- Decimals ---- */

typedef struct decimal {
    bool negative;
    const char *at, *end; /* from the first digit that is not 0; with a point, maybe */
    int64_t power;        /* of ten, of that digit */
} decimal;

static const char *find_exponent(const char *at, const char *end)
{
    while (at < end && *at != 'e' && *at != 'E')
        at++;
    return at;
}

static int64_t read_exponent(const char *at, const char *end)
{
    int64_t n = 0;
    const bool negative = at < end && *at == '-';
    for (at += at < end && (*at == '-' || *at == '+'); at < end && n < MOST_EXPONENT; at++)
        n = n * 10 + (*at - '0');
    n = n < MOST_EXPONENT ? n : MOST_EXPONENT;
    return negative ? -n : n;
}

static decimal read_decimal(const char *text, size_t n_bytes)
{
    const char *const end = text + n_bytes, *const e = find_exponent(text, end);
    const char *point = memchr(text, '.', (size_t)(e - text));
    decimal d = {.negative = n_bytes > 0 && *text == '-', .at = text, .end = e};
    point = point ? point : e;
    while (d.at < e && (*d.at < '1' || *d.at > '9'))
        d.at++;
    d.power = (point - d.at) - (d.at < point) + read_exponent(e + (e < end), end);
    return d;
}

/* The next digit; 0 after the last. */
static char take_digit(decimal *d)
{
    d->at += d->at < d->end && *d->at == '.';
    return d->at < d->end ? *d->at++ : '0';
}

static int compare_decimals(decimal a, decimal b)
{
    const int sign_a = a.at == a.end ? 0 : a.negative ? -1 : 1;
    const int sign_b = b.at == b.end ? 0 : b.negative ? -1 : 1;
    if (sign_a != sign_b || sign_a == 0)
        return (sign_a > sign_b) - (sign_a < sign_b);
    if (a.power != b.power)
        return a.power > b.power ? sign_a : -sign_a;
    while (a.at < a.end || b.at < b.end) {
        const char x = take_digit(&a), y = take_digit(&b);
        if (x != y)
            return x > y ? sign_a : -sign_a;
    }
    return 0;
}

/* ---- Values ---- */

static bool is_double(const tokmap_value *v)
{
    return v->type == TOKMAP_VALUE_FLOAT64 && !v->text && !v->integer;
}

static bool is_whole(const tokmap_value *v)
{
    return !v->text || (!memchr(v->text, '.', v->text_bytes) &&
                        find_exponent(v->text, v->text + v->text_bytes) == v->text + v->text_bytes);
}

/* A double must be whole. */
static decimal decimal_of(const tokmap_value *v, char digits[DIGITS_BYTES])
{
    if (v->type == TOKMAP_VALUE_FLOAT64 && v->text)
        return read_decimal(v->text, v->text_bytes);
    if (is_double(v))
        snprintf(digits, DIGITS_BYTES, "%.0f", v->real);
    else if (v->type == TOKMAP_VALUE_FLOAT64)
        snprintf(digits, DIGITS_BYTES, "%" PRIu64, (uint64_t)v->integer);
    else
        snprintf(digits, DIGITS_BYTES, "%" PRId64, v->integer);
    return read_decimal(digits, strlen(digits));
}

/* Rounding keeps the order, so the nearest doubles decide if they differ. */
int number_compare(const tokmap_value *a, const tokmap_value *b)
{
    const bool int_a = a->type == TOKMAP_VALUE_INT64, int_b = b->type == TOKMAP_VALUE_INT64;
    if (int_a && int_b)
        return (a->integer > b->integer) - (a->integer < b->integer);
    const double x = int_a ? (double)a->integer : a->real, y = int_b ? (double)b->integer : b->real;
    if (x != y || (is_double(a) && is_double(b)))
        return (x > y) - (x < y);
    if (is_double(a) || is_double(b)) {
        if (isinf(x)) /* and the other one is finite */
            return (x > 0) == is_double(a) ? 1 : -1;
        if (!is_whole(is_double(a) ? b : a))
            return 0;
    }
    char digits_a[DIGITS_BYTES], digits_b[DIGITS_BYTES];
    return compare_decimals(decimal_of(a, digits_a), decimal_of(b, digits_b));
}

bool number_is_storable(const tokmap_value *v, char shown[NUMBER_SHOWN_BYTES])
{
    const tokmap_value nearest = {.type = TOKMAP_VALUE_FLOAT64, .real = v->real};
    if (v->type != TOKMAP_VALUE_FLOAT64 || is_double(v))
        return true;
    if (!isinf(v->real) && (!is_whole(v) || number_compare(v, &nearest) == 0))
        return true;
    if (v->text)
        snprintf(shown, NUMBER_SHOWN_BYTES, "%.*s%s",
                 (int)(v->text_bytes < 40 ? v->text_bytes : 40), v->text,
                 v->text_bytes > 40 ? "..." : "");
    else
        snprintf(shown, NUMBER_SHOWN_BYTES, "%" PRIu64, (uint64_t)v->integer);
    return false;
}
