/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/text_cut.h"

#include <string.h>

#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"

/* U+5000 to U+8FFF: all are letters. */
static bool is_ideograph(const uint8_t *p)
{
    return p[0] > 0xE4 && p[0] < 0xE9 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80;
}

static bool is_stop(const uint8_t *p)
{
    return memcmp(p, "\xE3\x80\x82", 3) == 0 || memcmp(p, "\xEF\xBC\x8C", 3) == 0;
}

/* A letter that begins with a letter also when it is decomposed: a normalizer may run before the
 * pattern. */
static bool is_wide_letter(const uint8_t *p, size_t n_bytes)
{
    uint32_t c, parts[NFKD_LONGEST];
    const size_t n = utf8_decode(p, n_bytes, &c);
    const unicode_class class = n > 0 ? unicode_class_of(c) : CLASS_OTHER;
    if (class != CLASS_UPPER && class != CLASS_LOWER && class != CLASS_LETTER)
        return false;
    unicode_nfkd(c, parts);
    const unicode_class first = unicode_class_of(parts[0]);
    return first == CLASS_UPPER || first == CLASS_LOWER || first == CLASS_LETTER;
}

static bool ends_with_letter(const uint8_t *text, size_t end)
{
    size_t n = 1;
    while (n < 4 && n < end && (text[end - n] & 0xC0) == 0x80)
        n++;
    uint32_t c;
    return utf8_decode(text + end - n, n, &c) == n && is_wide_letter(text + end - n, n);
}

static bool is_between_letters(const uint8_t *text, size_t n_bytes, size_t at, unsigned allowed)
{
    if (cut_is_word(text[at - 1]) && cut_is_letter(text[at + 1]))
        return true;
    return (allowed & CUT_AT_WIDE) != 0 && ends_with_letter(text, at) &&
           is_wide_letter(text + at + 1, n_bytes - at - 1);
}

/* at >= 1, and text[at + 1] exists. */
static size_t cut_here(const uint8_t *text, size_t n_bytes, size_t at, unsigned allowed)
{
    if (text[at] == ' ' && (allowed & CUT_AT_SPACE) != 0)
        return is_between_letters(text, n_bytes, at, allowed) ? at : 0;
    if (text[at] == '\n' && (allowed & CUT_AT_NEWLINE) != 0)
        return is_between_letters(text, n_bytes, at, allowed) ? at + 1 : 0;
    if (cut_is_digit(text[at]) && (allowed & CUT_AT_DIGIT) != 0)
        return cut_is_letter(text[at - 1]) ? at : 0;
    if (cut_is_sign(text[at]) && (allowed & CUT_AT_SIGN) != 0)
        return cut_is_word(text[at - 1]) && cut_is_word(text[at + 1]) ? at : 0;
    if (text[at] >= 0xE3 && (allowed & CUT_AT_STOP) != 0 && at >= 3 && n_bytes - at >= 6)
        return is_stop(text + at) && is_ideograph(text + at - 3) && is_ideograph(text + at + 3) ? at
                                                                                                : 0;
    return 0;
}

size_t text_cut(const uint8_t *text, size_t n_searched, size_t n_bytes, unsigned allowed)
{
    const size_t last = n_searched < CUT_BYTES_AFTER ? 0 : n_searched - CUT_BYTES_AFTER;
    for (size_t at = n_bytes < 2 ? 0 : n_bytes - 2; at > last; at--) {
        const size_t cut = cut_here(text, n_bytes, at, allowed);
        if (cut > 0)
            return cut;
    }
    return 0;
}
