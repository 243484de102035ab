/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - reads the JSON lines of a file or of stdin, plain or compressed, one at a time, and
 * writes lines of ids or text to stdout. As in tokmap pack, blank lines and a byte order mark at
 * the beginning are skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/window.h"

typedef struct line_reader {
    window window;
    const char *name; /* for messages */
    uint64_t number;  /* number of the current line, from 1; blank lines count */
} line_reader;

typedef struct text_line {
    const uint8_t *text; /* without the newline; INPUT_PADDING readable bytes after it */
    size_t n_bytes;
} text_line;
/* Skips white space from `at` on; returns the end of the line if nothing else follows. */
const uint8_t *text_line_skip_blanks(const text_line *line, const uint8_t *at);

/* Opens a file; "-" is stdin. Returns an exit code, and prints the error. */
int line_reader_open(line_reader *r, const char *name);
/* Reads the next line, which is valid until the next call; *more is false at the end. Returns an
 * exit code, and prints the error. */
int line_reader_next(line_reader *r, text_line *line, bool *more);
/* Prints why a byte of the current line is wrong; returns CLI_INPUT. */
int line_reader_refuse(const line_reader *r, uint64_t byte, const char *why);
void line_reader_close(line_reader *r);

/* A buffer for stdout, because printing ids one by one is slow. A failed write sets the error flag
 * of stdout, which the caller checks once a line and cli_finish reports. */
typedef struct line_writer {
    size_t n_bytes;
    char text[256 * 1024];
} line_writer;

/* Writes at most as many bytes as the buffer has. */
void line_writer_put(line_writer *w, const void *bytes, size_t n_bytes);
/* Writes ids in decimal, with a separator before each id, or before each except the first. */
void line_writer_put_ids(line_writer *w, const uint32_t *ids, size_t n_ids, char separator,
                         bool before_first);
void line_writer_flush(line_writer *w);
