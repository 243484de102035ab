/* SPDX-License-Identifier: Apache-2.0 */
/* byte_alphabet.h - the printable characters that stand for bytes in GPT-2's vocabulary and every
 * byte-level one since: 21 to 7E, A1 to AC and AE to FF stand for themselves, the others in order
 * for U+0100 and up. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes the characters for the bytes, at most two bytes each. Returns the number of bytes. */
size_t byte_alphabet_encode(const uint8_t *bytes, size_t n_bytes, uint8_t *out);

/* Decodes text, which is UTF-8, to at most n_bytes bytes; SIZE_MAX: a character is not in the
 * alphabet. */
size_t byte_alphabet_decode(const char *text, size_t n_bytes, uint8_t *out);
