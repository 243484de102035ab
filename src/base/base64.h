/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - standard base64 (RFC 4648): padded, no white space, no other alphabet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BASE64_BAD SIZE_MAX

/* Room for the decoded bytes of n_bytes characters. */
#define BASE64_ROOM(n_bytes) ((n_bytes) / 4 * 3)

/* Of a character, 0 to 63; 64: it is none of the alphabet. */
uint32_t base64_value(char c);
/* The number of bytes written, or BASE64_BAD. */
size_t base64_decode(const char *text, size_t n_bytes, uint8_t *out);
