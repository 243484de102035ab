/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain_text.h"

#include "base/utf8.h"

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
