/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - standard base64 (RFC 4648): padded, no white space, no other alphabet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BASE64_BAD SIZE_MAX

/* The most bytes that n_bytes characters decode to. */
#define BASE64_ROOM(n_bytes) ((n_bytes) / 4 * 3)

/* Returns the value of a character, 0 to 63; 64 if it is not in the alphabet. */
uint32_t base64_value(char c);
/* Returns the number of bytes written, or BASE64_BAD. */
size_t base64_decode(const char *text, size_t n_bytes, uint8_t *out);
