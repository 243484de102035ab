/* SPDX-License-Identifier: Apache-2.0 */
/* json_parts.h - white space, escapes and numbers of JSON, for all code that reads JSON
 * (json_reader.c, formats/json_line.c, fields/where.c). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_MAX_DEPTH 128

static inline bool json_is_space(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- Escapes ---- */

/* The byte that the escape \c stands for; 0 for \u and for anything that is not an escape. */
extern const uint8_t json_simple_escapes[256];
/* The value of a hexadecimal digit + 1; 0 for other bytes. */
extern const uint8_t json_hex_digits[256];

typedef struct json_escape {
    size_t n_read; /* bytes after the backslash; if the escape is malformed, up to the wrong byte */
    const char *why; /* what is wrong; NULL: nothing */
    bool is_lone;    /* the fault is that the first unit is a surrogate without its pair */
    uint8_t text[4];
    size_t n_bytes; /* of the text */
} json_escape;

/* Decodes the escape whose backslash is before these bytes. Surrogates must be in pairs. */
json_escape json_read_escape(const uint8_t *bytes, size_t n_bytes);

/* Joins the surrogate pair that \uXXXX\uXXXX spells. */
static inline uint32_t json_join_surrogates(uint32_t high, uint32_t low)
{
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* ---- Numbers ---- */

typedef enum json_number { /* what the number so far ends with */
    NUMBER_BEGINS,
    AFTER_MINUS,
    AFTER_ZERO,
    AFTER_DIGITS,
    AFTER_POINT,
    AFTER_DECIMALS,
    AFTER_E,
    AFTER_E_SIGN,
    AFTER_E_DIGITS
} json_number;

/* The column of each byte in json_number_next, which gives the state after that byte; 0: the number
 * ends before it. */
extern const uint8_t json_number_bytes[256];
extern const uint8_t json_number_next[][7];

/* Whether c continues the number. */
static inline bool json_number_step(json_number *n, uint8_t c)
{
    const uint8_t to = json_number_next[*n][json_number_bytes[c]];
    if (to != NUMBER_BEGINS)
        *n = (json_number)to;
    return to != NUMBER_BEGINS;
}

static inline bool json_number_may_end(json_number n)
{
    return n == AFTER_ZERO || n == AFTER_DIGITS || n == AFTER_DECIMALS || n == AFTER_E_DIGITS;
}
