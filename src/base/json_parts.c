/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_parts.h"

#include "base/utf8.h"

const uint8_t json_simple_escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

const uint8_t json_hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Reads the digits of a \uXXXX, from *at on. */
static bool read_unit(const uint8_t *bytes, size_t n_bytes, size_t *at, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, ++*at) {
        const uint8_t value = *at < n_bytes ? json_hex_digits[bytes[*at]] : 0;
        if (value == 0)
            return false;
        *unit = *unit << 4 | (value - 1u);
    }
    return true;
}

json_escape json_read_escape(const uint8_t *bytes, size_t n_bytes)
{
    const uint8_t c = n_bytes > 0 ? bytes[0] : 0;
    uint32_t unit, low = 0;
    if (json_simple_escapes[c])
        return (json_escape){.n_read = 1, .text = {json_simple_escapes[c]}, .n_bytes = 1};
    if (c != 'u')
        return (json_escape){.why = "unknown escape"};
    json_escape e = {.n_read = 1};
    bool digits = read_unit(bytes, n_bytes, &e.n_read, &unit);
    const bool is_high = digits && unit >= 0xd800 && unit <= 0xdbff;
    if (is_high && n_bytes - e.n_read >= 2 && bytes[e.n_read] == '\\' &&
        bytes[e.n_read + 1] == 'u') {
        e.n_read += 2;
        digits = read_unit(bytes, n_bytes, &e.n_read, &low);
    }
    if (is_high && low >= 0xdc00 && low <= 0xdfff)
        unit = json_join_surrogates(unit, low);
    e.is_lone = digits && unit >= 0xd800 && unit <= 0xdfff;
    if (!digits)
        e.why = "\\u needs four hexadecimal digits";
    else if (e.is_lone)
        e.why = "a lone surrogate";
    else
        e.n_bytes = utf8_encode(unit, e.text);
    return e;
}

/* The columns of json_number_next. */
enum {
    OTHER, /* not part of a number */
    DIGIT, /* 1 to 9 */
    ZERO,
    POINT,
    E,
    PLUS,
    MINUS
};

const uint8_t json_number_bytes[256] = {
    ['0'] = ZERO,  ['1'] = DIGIT, ['2'] = DIGIT, ['3'] = DIGIT, ['4'] = DIGIT,
    ['5'] = DIGIT, ['6'] = DIGIT, ['7'] = DIGIT, ['8'] = DIGIT, ['9'] = DIGIT,
    ['.'] = POINT, ['e'] = E,     ['E'] = E,     ['+'] = PLUS,  ['-'] = MINUS,
};

const uint8_t json_number_next[][7] = {
    [NUMBER_BEGINS] = {0, AFTER_DIGITS, AFTER_ZERO, 0, 0, 0, AFTER_MINUS},
    [AFTER_MINUS] = {0, AFTER_DIGITS, AFTER_ZERO, 0, 0, 0, 0},
    [AFTER_ZERO] = {0, 0, 0, AFTER_POINT, AFTER_E, 0, 0},
    [AFTER_DIGITS] = {0, AFTER_DIGITS, AFTER_DIGITS, AFTER_POINT, AFTER_E, 0, 0},
    [AFTER_POINT] = {0, AFTER_DECIMALS, AFTER_DECIMALS, 0, 0, 0, 0},
    [AFTER_DECIMALS] = {0, AFTER_DECIMALS, AFTER_DECIMALS, 0, AFTER_E, 0, 0},
    [AFTER_E] = {0, AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, AFTER_E_SIGN, AFTER_E_SIGN},
    [AFTER_E_SIGN] = {0, AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, 0, 0},
    [AFTER_E_DIGITS] = {0, AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, 0, 0},
};
