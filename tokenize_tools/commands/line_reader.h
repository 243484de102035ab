/* SPDX-License-Identifier: Apache-2.0 */
/* line_reader.h - the JSON lines of a file or of stdin, plain or compressed, one at a time. As in
 * tokmap pack, blank lines and a byte order mark before the first line are skipped. */
#ifndef TOKMAP_LINE_READER_H
#define TOKMAP_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/input.h"

/* Readable bytes after a line. */
#define LINE_PADDING 64

typedef struct line_reader {
    input *in;
    const char *name; /* for messages */
    uint8_t *data;    /* what is read and not yet handed out is data[at .. n_bytes) */
    size_t at, n_bytes, capacity;
    bool at_end;
    uint64_t number; /* of the current line, from 1; blank ones count */
} line_reader;

typedef struct text_line {
    uint8_t *text; /* without the newline; LINE_PADDING readable bytes after it */
    size_t n_bytes;
} text_line;

/* "-" is stdin. Returns an exit code, with a message when it is not CLI_OK. */
int line_reader_open(line_reader *r, const char *name);
/* Sets *more to whether there was a line; it is valid until the next call. Returns an exit code. */
int line_reader_next(line_reader *r, text_line *line, bool *more);
void line_reader_close(line_reader *r);

#endif /* TOKMAP_LINE_READER_H */
