/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "formats/wrong_file.h"
#include "system/protected.h"

#define MAX_LINE_BYTES ((size_t)2 << 30)

/* ---- Reading ---- */

int line_reader_open(line_reader *r, const char *name)
{
    static const window_options options = {0};
    const input_source source = {.path = name};
    failure err;
    *r = (line_reader){.name = strcmp(name, "-") == 0 ? "stdin" : name};
    if (!window_open(&r->window, &source, input_open(&source, -1, &err), &options, &err))
        return cli_print_failure(&err);
    return path_protect_name(name, "the input");
}

static int read_more(line_reader *r)
{
    window *w = &r->window;
    failure err;
    const bool first = r->number == 0 && window_size(w) == 0;
    if (window_size(w) > MAX_LINE_BYTES)
        return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": longer than 2 GiB", r->name,
                         r->number + 1);
    if (!window_fill(w, &err))
        return cli_print_failure(&err);
    const char *other = first ? wrong_file_name(window_text(w), window_size(w)) : NULL;
    return other ? cli_error(CLI_INPUT, "%s: is %s, not JSON lines", r->name, other) : CLI_OK;
}

/* Reads the next line, blank or not. */
static int read_line(line_reader *r, text_line *line, bool *more)
{
    window *w = &r->window;
    size_t n_bytes;
    bool found;
    while (!(found = window_find(w, "\n", 1, &n_bytes)) && !w->at_end) {
        const int code = read_more(r);
        if (code != CLI_OK)
            return code;
    }
    *line = (text_line){window_text(w), n_bytes};
    *more = found || n_bytes > 0;
    window_consume(w, n_bytes + found);
    r->number += *more;
    return CLI_OK;
}

const uint8_t *text_line_skip_blanks(const text_line *line, const uint8_t *at)
{
    const uint8_t *end = line->text + line->n_bytes;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
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
    } while (code == CLI_OK && *more &&
             text_line_skip_blanks(line, line->text) == line->text + line->n_bytes);
    return code;
}

int line_reader_refuse(const line_reader *r, uint64_t byte, const char *why)
{
    return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": byte %" PRIu64 ": %s", r->name, r->number,
                     byte, why);
}

void line_reader_close(line_reader *r)
{
    window_close(&r->window);
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
