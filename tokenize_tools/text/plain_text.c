/* SPDX-License-Identifier: Apache-2.0 */
#include "text/plain_text.h"

#include "text/json_parts.h"
#include "text/utf8.h"

static bool is_plain(uint32_t c)
{
    bool controls = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    bool turns = c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                 (c >= 0x2066 && c <= 0x2069);
    return !controls && !turns && c != 0x2028 && c != 0x2029;
}

size_t plain_text_length(const char *s, size_t n_bytes)
{
    uint32_t c;
    size_t length = utf8_decode((const uint8_t *)s, n_bytes, &c);
    return length && is_plain(c) ? length : 0;
}

size_t plain_text_unfinished(const char *s, size_t n_bytes)
{
    for (size_t n = 1; n <= 3 && n <= n_bytes; n++) {
        const uint8_t *last = (const uint8_t *)s + n_bytes - n;
        uint32_t c;
        if ((*last & 0xc0) != 0x80)
            return utf8_decode(last, n, &c) || utf8_bad_bytes(last, n) ? 0 : n;
    }
    return 0;
}

/* ---- Lines ---- */

static bool is_escaped(unsigned char c, bool last)
{
    return c < 0x20 || c == '\\' || c == 0x7f || (c == ' ' && last);
}

void line_text_print(FILE *out, const char *s, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)s[i];
        if (is_escaped(c, i + 1 == n_bytes))
            fprintf(out, "\\x%02x", c);
        else
            putc(c, out);
    }
}

/* -1: not a lower-case hexadecimal digit. */
static int digit_value(char c)
{
    return c >= 'A' && c <= 'F' ? -1 : json_hex_digits[(uint8_t)c] - 1;
}

bool line_text_parse(char *line)
{
    char *to = line;
    for (const char *from = line; *from; to++) {
        if (*from != '\\') {
            if (is_escaped((unsigned char)*from, from[1] == '\0'))
                return false;
            *to = *from++;
            continue;
        }
        int high = from[1] == 'x' ? digit_value(from[2]) : -1;
        int low = high >= 0 ? digit_value(from[3]) : -1;
        int c = 16 * high + low;
        if (low < 0 || c == 0 || !is_escaped((unsigned char)c, from[4] == '\0'))
            return false;
        *to = (char)c;
        from += 4;
    }
    *to = '\0';
    return true;
}
