/* SPDX-License-Identifier: Apache-2.0 */
/* line_text.h - writes any text on one line of a file, and reads it back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Prints the text; bytes below 0x20, 0x7f, the backslash, and a blank at the end become \xHH, with
 * two lower-case digits. */
void line_text_print(FILE *out, const char *s, size_t n_bytes);
/* Replaces a line with the text that it stands for. False if line_text_print does not write such a
 * line, or the text has a zero byte. */
bool line_text_parse(char *line);
