/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_text.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "corpus/json_line.h"
#include "system/files.h"

#define PIECE_BYTES ((size_t)1 << 20)

_Static_assert(FILE_PADDING >= TEXT_PADDING, "a file that was read is a text");

static bool add_piece(bench_text *text, bench_piece piece)
{
    if ((text->n_pieces & (text->n_pieces + 1)) == 0) { /* doubles the array */
        const size_t room = 2 * (text->n_pieces + 1);
        bench_piece *pieces = realloc(text->pieces, room * sizeof *pieces);
        if (!pieces)
            return false;
        text->pieces = pieces;
    }
    text->pieces[text->n_pieces++] = piece;
    return true;
}

/* The texts of all lines, one after another. */
static int take_lines(bench_text *text, const uint8_t *data, size_t n_bytes, const char *path)
{
    json_line_path *field = json_line_path_new("text");
    const json_line_options options = {.path = field};
    bool fine = field != NULL;
    text->bytes = malloc(n_bytes + TEXT_PADDING);
    for (size_t at = 0; fine && text->bytes && at < n_bytes;) {
        const uint8_t *newline = memchr(data + at, '\n', n_bytes - at);
        const size_t n_line = newline ? (size_t)(newline - data) - at : n_bytes - at;
        json_line_result line;
        uint8_t *out = text->bytes + text->n_bytes;
        fine = json_line_text(&options, data + at, n_line, out, &line) == JSON_LINE_OK &&
               add_piece(text, (bench_piece){text->n_bytes, line.n_bytes, true});
        if (fine && line.text != out)
            memcpy(out, line.text, line.n_bytes);
        text->n_bytes += fine ? line.n_bytes : 0;
        at += n_line + 1;
    }
    json_line_path_free(field);
    if (!fine || !text->bytes) {
        cli_warn("%s: not JSON lines with the field \"text\"", path);
        return 1;
    }
    memset(text->bytes + text->n_bytes, 0, TEXT_PADDING);
    return 0;
}

static int cut_up(bench_text *text, const tokenizer *t)
{
    for (size_t at = 0, n; at < text->n_bytes; at += n) {
        const size_t left = text->n_bytes - at;
        n = left;
        for (size_t size = PIECE_BYTES; size < left; size *= 2) {
            const size_t cut = tokenizer_safe_cut(t, text->bytes + at, 0, size);
            n = cut > 0 ? cut : left;
            if (cut > 0)
                break;
        }
        if (!add_piece(text, (bench_piece){at, n, at == 0})) {
            cli_warn("out of memory");
            return 1;
        }
    }
    return 0;
}

int bench_text_load(bench_text *text, const char *path, const tokenizer *t)
{
    whole_file file;
    const int error = file_read_whole(path, SIZE_MAX / 2, &file);
    *text = (bench_text){0};
    if (error) {
        cli_warn("%s: %s", path, strerror(error));
        return 1;
    }
    if (file.n_bytes > 0 && file.data[0] == '{') {
        const int code = take_lines(text, file.data, file.n_bytes, path);
        free(file.data);
        return code;
    }
    text->bytes = file.data;
    text->n_bytes = file.n_bytes;
    return cut_up(text, t);
}

void bench_text_free(bench_text *text)
{
    free(text->bytes);
    free(text->pieces);
    *text = (bench_text){0};
}
