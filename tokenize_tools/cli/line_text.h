/* SPDX-License-Identifier: Apache-2.0 */
/* line_text.h - any text on one line of a file, and back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Written as \xHH, with two lower-case digits, are bytes below 0x20, 0x7f, the backslash, and a
 * blank at the end. */
void line_text_print(FILE *out, const char *s, size_t n_bytes);
/* The text that a line stands for, in place, without a zero byte in it. False: line_text_print does
 * not write such a line. */
bool line_text_parse(char *line);
