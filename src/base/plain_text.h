/* SPDX-License-Identifier: Apache-2.0 */
/* plain_text.h - which characters are safe to print on a terminal.
 *
 * Not plain are control characters (U+0000 to U+001F, U+007F to U+009F), characters that change the
 * direction of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), line separators
 * (U+2028, U+2029), and bytes that are not UTF-8: some terminals take 0x9B for ESC [. Pure. */
#pragma once

#include <stddef.h>

/* Returns the length of the UTF-8 character at the start of n_bytes > 0; 0 if it is malformed or
 * not plain. */
size_t plain_text_length(const char *s, size_t n_bytes);
/* Returns how many bytes at the end, 0 to 3, begin an incomplete character. */
size_t plain_text_unfinished(const char *s, size_t n_bytes);

/* The format that prints a byte that is not plain, or not part of a valid character: \x1b. */
#define PLAIN_TEXT_ESCAPE "\\x%02x"
#define PLAIN_TEXT_ESCAPE_BYTES 4
