/* SPDX-License-Identifier: Apache-2.0 */
/* tool_json_line - the results of json_line.h for given bytes, for tests in Python.
 *
 * `tool_json_line PATH ENGINE PIECE_BYTES`: stdin is lines, each after its length in 4 bytes;
 * stdout is, for each, its status, the number of lone surrogates and the text after its length,
 * 1, 4 and 4 little-endian bytes. ENGINE is scalar, avx2 or avx512; PIECE_BYTES 0 is the whole line
 * at once. Status 77: no such engine here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/json_line.h"
#include "support/pipes.h"

#define PADDING 64

static void put_line(json_line_status status, const json_line_result *r, const uint8_t *text,
                     size_t n_bytes)
{
    bool ok = status == JSON_LINE_OK;
    putchar((int)status);
    put_number(ok ? r->lone_surrogates : 0, 4);
    put_bytes(text, ok ? n_bytes : 0);
}

static void read_pieces(const json_line_options *options, uint8_t *line, size_t n_bytes,
                        size_t piece_bytes)
{
    json_line_scanner *s = json_line_scanner_new(options);
    uint8_t *text = malloc(n_bytes + 2 * JSON_LINE_ROOM);
    size_t n_text = 0;
    json_line_result r;
    json_line_begin(s);
    for (size_t at = 0; at < n_bytes;) {
        size_t n = piece_bytes < n_bytes - at ? piece_bytes : n_bytes - at;
        json_line_fed fed = json_line_feed(s, line + at, n, text + n_text);
        n_text = fed.begins ? 0 : n_text + fed.text_bytes;
        at = fed.malformed ? n_bytes : at + fed.n_bytes;
    }
    json_line_status status = json_line_end(s, &r);
    put_line(status, &r, text, n_text);
    json_line_scanner_free(s);
    free(text);
}

static int read_json(const json_line_options *options, size_t piece_bytes)
{
    for (size_t n_bytes; get_length(&n_bytes);) {
        json_line_result r;
        uint8_t *line = get_bytes(n_bytes, PADDING, '"'), *out = malloc(n_bytes + 1);
        if (piece_bytes) {
            read_pieces(options, line, n_bytes, piece_bytes);
        } else {
            json_line_status status = json_line_text(options, line, n_bytes, out, NULL, &r);
            put_line(status, &r, r.text, r.n_bytes);
        }
        free(line);
        free(out);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"scalar", "avx2", "avx512"};
    if (argc != 4) {
        fprintf(stderr, "usage: tool_json_line PATH ENGINE PIECE_BYTES\n");
        return 2;
    }
    json_paths *paths = json_paths_new(argv[1], NULL);
    json_line_options options = {.paths = paths};
    for (int i = 0; i < 3; i++) {
        if (strcmp(argv[2], engines[i]) == 0)
            options.level = (simd_level)(SIMD_SCALAR + i);
    }
    int status = simd_works(options.level) ? read_json(&options, strtoul(argv[3], NULL, 10)) : 77;
    json_paths_free(paths);
    return fflush(stdout) == 0 ? status : 1;
}
