/* SPDX-License-Identifier: Apache-2.0 */
/* text_cut.h - finds places where a text may be cut without changing its words.
 *
 * Whatever the text before and after, a pattern starts a word at the places that split_cuts gives,
 * and the words on both sides are the same if each side is split alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUT_AT_SPACE = 1,   /* before the blank of "a b": letter or digit, blank, letter, all ASCII */
    CUT_AT_NEWLINE = 2, /* after the newline of "a\nb": letter or digit, newline, letter */
    CUT_AT_WIDE = 8,    /* the first two for letters of all scripts */
    CUT_AT_STOP = 4,    /* before an ideographic stop or comma between two CJK characters */
    CUT_AT_DIGIT = 16,  /* before the digit of "a1", ASCII; base64 has such places */
    CUT_AT_SIGN = 32,   /* before + or / between letters or digits, ASCII; base64 again */
    CUT_ANYWHERE = 63
};

/* Of ASCII. */
static inline bool cut_is_letter(uint8_t c)
{
    return (uint8_t)((c | 0x20) - 'a') < 26;
}
static inline bool cut_is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}
static inline bool cut_is_word(uint8_t c)
{
    return cut_is_letter(c) || cut_is_digit(c);
}
static inline bool cut_is_sign(uint8_t c)
{
    return c == '+' || c == '/';
}

/* The largest such place in a text, of the allowed kinds; 0: none, as in its first n_searched
 * bytes. */
size_t text_cut(const uint8_t *text, size_t n_searched, size_t n_bytes, unsigned allowed);
/* A place is found when at most this many bytes after it are known. */
#define CUT_BYTES_AFTER 16
