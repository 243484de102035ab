/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line_text.h"

#include <stdint.h>

#include "base/json_parts.h"

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

/* Returns -1 if c is not a lower-case hexadecimal digit. */
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
