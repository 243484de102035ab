/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "corpus/wrong_file.h"
#include "system/protected.h"

#define FIRST_BYTES ((size_t)256 * 1024)
#define MAX_LINE_BYTES ((size_t)2 << 30)

/* ---- Reading ---- */

int line_reader_open(line_reader *r, const char *name)
{
    failure err;
    *r = (line_reader){.name = strcmp(name, "-") == 0 ? "stdin" : name};
    r->in = input_open(name, &err);
    if (!r->in)
        return cli_print_failure(&err);
    r->data = malloc(FIRST_BYTES);
    r->capacity = FIRST_BYTES;
    return r->data ? path_protect_name(name, "the input") : cli_no_memory();
}

/* Makes room after the data: moves the current line to the front, or grows the buffer. */
static int make_room(line_reader *r)
{
    if (r->at) {
        memmove(r->data, r->data + r->at, r->n_bytes - r->at);
        r->n_bytes -= r->at;
        r->at = 0;
    }
    if (r->n_bytes < r->capacity / 2)
        return CLI_OK;
    if (r->n_bytes > MAX_LINE_BYTES)
        return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": longer than 2 GiB", r->name,
                         r->number + 1);
    size_t capacity = 2 * r->capacity;
    uint8_t *data = realloc(r->data, capacity);
    if (!data)
        return cli_no_memory();
    r->data = data;
    r->capacity = capacity;
    return CLI_OK;
}

static int read_more(line_reader *r)
{
    failure err;
    int code = make_room(r);
    if (code != CLI_OK)
        return code;
    ssize_t n =
        input_read(r->in, r->data + r->n_bytes, r->capacity - LINE_PADDING - r->n_bytes, &err);
    if (n < 0)
        return cli_print_failure(&err);
    bool first = r->number == 0 && r->n_bytes == 0;
    r->at_end = n == 0;
    r->n_bytes += (size_t)n;
    const char *other = first ? wrong_file_name(r->data, r->n_bytes) : NULL;
    if (other)
        return cli_error(CLI_INPUT, "%s: is %s, not JSON lines", r->name, other);
    memset(r->data + r->n_bytes, 0, LINE_PADDING);
    return CLI_OK;
}

/* The next line, whatever is in it. */
static int read_line(line_reader *r, text_line *line, bool *more)
{
    size_t n_searched = 0; /* of the current line */
    const uint8_t *newline = NULL;
    for (;;) {
        const uint8_t *from = r->data + r->at + n_searched;
        newline = memchr(from, '\n', (size_t)(r->data + r->n_bytes - from));
        n_searched = r->n_bytes - r->at;
        if (newline || r->at_end)
            break;
        int code = read_more(r);
        if (code != CLI_OK)
            return code;
    }
    *more = newline || r->at < r->n_bytes;
    line->text = r->data + r->at;
    line->n_bytes = newline ? (size_t)(newline - line->text) : r->n_bytes - r->at;
    r->at += line->n_bytes + (newline != NULL);
    r->number += *more;
    return CLI_OK;
}

static bool is_blank(const text_line *line)
{
    const uint8_t *c = line->text, *end = c + line->n_bytes;
    while (c < end && (*c == ' ' || *c == '\t' || *c == '\r'))
        c++;
    return c == end;
}

int line_reader_next(line_reader *r, text_line *line, bool *more)
{
    static const uint8_t byte_order_mark[] = {0xef, 0xbb, 0xbf};
    int code;
    do {
        code = read_line(r, line, more);
        if (code == CLI_OK && *more && r->number == 1 && line->n_bytes >= sizeof byte_order_mark &&
            memcmp(line->text, byte_order_mark, sizeof byte_order_mark) == 0) {
            line->text += sizeof byte_order_mark;
            line->n_bytes -= sizeof byte_order_mark;
        }
    } while (code == CLI_OK && *more && is_blank(line));
    return code;
}

int line_reader_refuse(const line_reader *r, uint64_t byte, const char *why)
{
    return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": byte %" PRIu64 ": %s", r->name, r->number,
                     byte, why);
}

void line_reader_close(line_reader *r)
{
    input_close(r->in);
    free(r->data);
    *r = (line_reader){0};
}

/* ---- Writing ---- */

void line_writer_flush(line_writer *w)
{
    fwrite(w->text, 1, w->n_bytes, stdout);
    w->n_bytes = 0;
}

/* Makes room for n_bytes, and returns where they go. */
static char *reserve(line_writer *w, size_t n_bytes)
{
    if (w->n_bytes + n_bytes > sizeof w->text)
        line_writer_flush(w);
    return w->text + w->n_bytes;
}

void line_writer_put(line_writer *w, const void *bytes, size_t n_bytes)
{
    memcpy(reserve(w, n_bytes), bytes, n_bytes);
    w->n_bytes += n_bytes;
}

void line_writer_put_ids(line_writer *w, const uint32_t *ids, size_t n_ids, char separator,
                         bool before_first)
{
    for (size_t i = 0; i < n_ids; i++) {
        char digits[10], *to = reserve(w, 1 + sizeof digits);
        size_t n_digits = 0;
        if (i > 0 || before_first)
            *to++ = separator;
        for (uint32_t n = ids[i]; n || n_digits == 0; n /= 10)
            digits[n_digits++] = (char)('0' + n % 10);
        while (n_digits)
            *to++ = digits[--n_digits];
        w->n_bytes = (size_t)(to - w->text);
    }
}
