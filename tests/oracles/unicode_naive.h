/* SPDX-License-Identifier: Apache-2.0 */
/* unicode_naive.h - slow and simple UTF-8 and NFC to compare with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/exact_copy.h"
#include "tokenizer/unicode/nfc_tables.h"
#include "tokenizer/unicode/unicode.h"

/* Behind text that is not UTF-8: 0x110000 + byte. */
#define NAIVE_BYTE 0x110000u

/* A character is what encodes to these bytes. */
size_t naive_decode(const uint8_t *text, size_t n_bytes, uint32_t *code_point);
size_t naive_valid_prefix(const uint8_t *text, size_t n_bytes);

/* ---- NFC: all decomposed, bubble sort, every pair tried ---- */

nfc_kind naive_kind(uint32_t c);

/* How NFC differs from the naive one, changes its own result, or its stable prefix cannot be cut
 * off or depends on the engine; NULL: not at all. */
const char *naive_nfc_compare(const uint8_t *text, size_t n_bytes);
