/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdbool.h>

uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Decodes four characters, the last n_padding of which are padding. Bits that belong to no byte
 * must be 0: otherwise two texts would decode to the same bytes. */
static bool decode_group(const char *text, size_t n_padding, uint8_t *out)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        const uint32_t value = i < 4 - n_padding ? base64_value(text[i]) : 0;
        if (value > 63)
            return false;
        bits = bits << 6 | value;
    }
    for (size_t i = 0; i < 3 - n_padding; i++)
        out[i] = (uint8_t)(bits >> (16 - 8 * i));
    return (bits & ((1u << 8 * n_padding) - 1)) == 0;
}

size_t base64_decode(const char *text, size_t n_bytes, uint8_t *out)
{
    size_t n = 0;
    if (n_bytes % 4 != 0)
        return BASE64_BAD;
    for (size_t i = 0; i < n_bytes; i += 4) {
        size_t n_padding = 0;
        if (i + 4 == n_bytes && text[i + 3] == '=')
            n_padding = text[i + 2] == '=' ? 2 : 1;
        if (!decode_group(text + i, n_padding, out + n))
            return BASE64_BAD;
        n += 3 - n_padding;
    }
    return n;
}
