/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/byte_alphabet.h"

#include "base/utf8.h"
#include "tokenizer/split/text_cursor.h"

size_t byte_alphabet_encode(const uint8_t *bytes, size_t n_bytes, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += utf8_encode(byte_char(bytes[i]).code_point, out + n);
    return n;
}

/* Returns 256 or more if there is none. */
static uint32_t byte_of(uint32_t code_point)
{
    if ((code_point > 0x20 && code_point < 0x7F) || (code_point > 0xA0 && code_point < 0x100))
        return code_point == 0xAD ? 256 : code_point;
    if (code_point < 0x100 || code_point > 0x143)
        return 256;
    const uint32_t rank = code_point - 0x100;
    return rank <= 0x20 ? rank : rank == 0x43 ? 0xAD : rank - 0x21 + 0x7F;
}

size_t byte_alphabet_decode(const char *text, size_t n_bytes, uint8_t *out)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t n = 0;
    for (size_t i = 0; i < n_bytes;) {
        uint32_t code_point;
        const size_t length = utf8_decode(s + i, n_bytes - i, &code_point);
        const uint32_t byte = length > 0 ? byte_of(code_point) : 256;
        if (byte > 255)
            return SIZE_MAX;
        out[n++] = (uint8_t)byte;
        i += length;
    }
    return n;
}
