/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - UTF-8: decode, encode, check. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

/* Decodes the character at text[0 .. n_bytes), n_bytes > 0. Returns its length, 1 to 4, or 0 if the
 * bytes are not UTF-8 (overlong forms, surrogates and values above 10FFFF are not) or
 * incomplete; then *code_point stays as it was. */
size_t utf8_decode(const uint8_t *text, size_t n_bytes, uint32_t *code_point);
/* Decodes the character that ends at text[n_bytes]. Returns the same as utf8_decode; may set
 * *code_point even if it fails. */
size_t utf8_decode_last(const uint8_t *text, size_t n_bytes, uint32_t *code_point);
/* Writes 1 to 4 bytes; code_point must be a Unicode scalar value. */
static inline size_t utf8_encode(uint32_t code_point, uint8_t out[4])
{
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (uint8_t)(0xC0 | code_point >> 6);
        out[1] = (uint8_t)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code_point >> 12);
        out[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code_point >> 18);
    out[1] = (uint8_t)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code_point & 0x3F));
    return 4;
}
/* Returns the length of the longest prefix that is UTF-8: n_bytes if the whole text is. */
size_t utf8_valid_prefix(const uint8_t *text, size_t n_bytes);
size_t utf8_valid_prefix_by(simd_level e, const uint8_t *text, size_t n_bytes);
/* Returns, for a text that does not start with a valid character, the length of the "maximal
 * subpart" (1 to 3 bytes) that one U+FFFD replaces, as in Python and the Unicode standard; 0 if
 * text[0 .. n_bytes) may be the beginning of a character, and more bytes are needed to decide. */
size_t utf8_bad_bytes(const uint8_t *text, size_t n_bytes);
