#include "text_cut.h"

#include <stdbool.h>
#include <string.h>

static bool is_letter(uint8_t c)
{
    return (uint8_t)((c | 0x20) - 'a') < 26;
}

static bool is_letter_or_digit(uint8_t c)
{
    return is_letter(c) || (uint8_t)(c - '0') < 10;
}

/* U+5000 to U+8FFF: letters all. */
static bool is_ideograph(const uint8_t *p)
{
    return p[0] > 0xE4 && p[0] < 0xE9 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80;
}

static bool is_stop(const uint8_t *p)
{
    return memcmp(p, "\xE3\x80\x82", 3) == 0 || memcmp(p, "\xEF\xBC\x8C", 3) == 0;
}

/* at >= 1, and text[at + 1] is there. */
static size_t cut_here(const uint8_t *text, size_t n_bytes, size_t at, unsigned allowed)
{
    if (text[at] == ' ' && (allowed & CUT_AT_SPACE) != 0)
        return is_letter_or_digit(text[at - 1]) && is_letter(text[at + 1]) ? at : 0;
    if (text[at] == '\n' && (allowed & CUT_AT_NEWLINE) != 0)
        return is_letter_or_digit(text[at - 1]) && is_letter(text[at + 1]) ? at + 1 : 0;
    if (text[at] >= 0xE3 && (allowed & CUT_AT_STOP) != 0 && at >= 3 && n_bytes - at >= 6)
        return is_stop(text + at) && is_ideograph(text + at - 3) && is_ideograph(text + at + 3) ? at
                                                                                                : 0;
    return 0;
}

size_t text_cut(const uint8_t *text, size_t n_bytes, unsigned allowed)
{
    for (size_t at = n_bytes < 2 ? 0 : n_bytes - 2; at > 0; at--) {
        const size_t cut = cut_here(text, n_bytes, at, allowed);
        if (cut > 0)
            return cut;
    }
    return 0;
}
