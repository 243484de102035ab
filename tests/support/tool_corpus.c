/* SPDX-License-Identifier: Apache-2.0 */
/* tool_corpus - the results of the readers of corpus/ for given bytes, for tests in Python.
 *
 * `json PATH ENGINE PIECE_BYTES`: stdin is lines, each after its length in 4 bytes; stdout is, for
 * each, its status, the number of lone surrogates and the text after its length, 1, 4 and 4 bytes.
 * ENGINE is scalar, avx2 or avx512; PIECE_BYTES 0 is the whole line at once. Status 77: no such
 * engine here.
 * `documents FORMAT FILE...`: stdout is the documents, each after its length in 4 bytes. FORMAT is
 * auto, text, lines or json. All numbers are little-endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/corpus.h"
#include "corpus/json_line.h"
#include "support/pipes.h"

#define PADDING 64

/* ---- json ---- */

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

static int json(char **args)
{
    static const char *const engines[] = {"scalar", "avx2", "avx512"};
    json_paths *paths = json_paths_new(args[0], NULL);
    json_line_options options = {.paths = paths};
    for (int i = 0; i < 3; i++) {
        if (strcmp(args[1], engines[i]) == 0)
            options.level = (simd_level)(SIMD_SCALAR + i);
    }
    int status = simd_works(options.level) ? read_json(&options, strtoul(args[2], NULL, 10)) : 77;
    json_paths_free(paths);
    return status;
}

/* ---- documents ---- */

typedef struct document {
    uint8_t *text;
    size_t n_bytes;
} document;

static void add_text(document *d, const uint8_t *text, size_t n_bytes)
{
    d->text = realloc(d->text, d->n_bytes + n_bytes + 1);
    memcpy(d->text + d->n_bytes, text, n_bytes);
    d->n_bytes += n_bytes;
}

static void put_batch(document *d, const corpus_batch *b)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        if (b->ends[i].input)
            continue;
        add_text(d, b->text + at, b->ends[i].at - at);
        at = b->ends[i].at;
        put_bytes(d->text, d->n_bytes);
        d->n_bytes = 0;
    }
    add_text(d, b->text + at, b->n_bytes - at);
}

static int documents(char **args, int n_args)
{
    static const char *const formats[] = {"auto", "text", "lines", "json"};
    corpus_options options = {.read_ahead = true, .batch_bytes = 65536};
    document d = {0};
    corpus_batch batch = {0};
    failure err;
    for (int i = 0; i < 4; i++) {
        if (strcmp(args[0], formats[i]) == 0)
            options.format = (corpus_format)i;
    }
    corpus *c =
        corpus_open((const char *const *)args + 1, (size_t)n_args - 1, &options, NULL, &err);
    int status = c ? 1 : -1;
    while (status > 0) {
        status = corpus_read(c, &batch, &err);
        if (status > 0)
            put_batch(&d, &batch);
    }
    if (status < 0)
        fprintf(stderr, "tool_corpus: %s\n", err.text);
    corpus_close(c);
    corpus_batch_free(&batch);
    free(d.text);
    return status < 0;
}

int main(int argc, char **argv)
{
    int status = 2;
    if (argc == 5 && strcmp(argv[1], "json") == 0)
        status = json(argv + 2);
    else if (argc > 3 && strcmp(argv[1], "documents") == 0)
        status = documents(argv + 2, argc - 2);
    else
        fprintf(stderr,
                "usage: tool_corpus json PATH ENGINE PIECE_BYTES | documents FORMAT FILE...\n");
    return fflush(stdout) == 0 ? status : 1;
}
