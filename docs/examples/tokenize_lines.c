/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize_lines.c - encodes the lines of stdin, all at once, and prints the ids of each.
 *
 *     tokenize_lines TOKENIZER [PATTERN] <FILE
 *
 * TOKENIZER is a tokenizer.json, tokenizer.model, ..., or bytes. PATTERN is for files of ranks:
 * "cl100k".
 *
 *     cc tokenize_lines.c $(pkg-config --cflags --libs tokmap_tokenizer)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap_tokenizer.h"

enum {
    MAX_BYTES = 1 << 24
};

static int fail(const char *text)
{
    fprintf(stderr, "tokenize_lines: %s\n", text);
    return 1;
}

/* Points into the buffer: a text needs no end mark and no copy. Returns their number. */
static size_t find_lines(char *buffer, size_t n_bytes, tokmap_text *lines)
{
    size_t n = 0;
    for (size_t at = 0; at < n_bytes; n++) {
        char *newline = (char *)memchr(buffer + at, '\n', n_bytes - at);
        lines[n].bytes = buffer + at;
        lines[n].n_bytes = (newline ? (size_t)(newline - buffer) : n_bytes) - at;
        at += lines[n].n_bytes + 1;
    }
    return n;
}

static int print_ids(const tokmap_tokenizer *t, const tokmap_text *lines, size_t n_lines)
{
    tokmap_error err;
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT;
    options.texts = lines;
    options.n_texts = n_lines;
    if (tokmap_tokenizer_encode(t, &options, &e, &err)) /* with all processors */
        return fail(err.text);
    for (size_t i = 0; i < n_lines; i++) {
        for (int64_t k = e.offsets[i]; k < e.offsets[i + 1]; k++)
            printf("%s%" PRIu32, k > e.offsets[i] ? " " : "", e.ids[k]);
        putchar('\n');
    }
    tokmap_encoding_free(&e);
    return 0;
}

int main(int argc, char **argv)
{
    static char buffer[MAX_BYTES];
    static tokmap_text lines[MAX_BYTES];
    tokmap_tokenizer *t;
    tokmap_error err;
    tokmap_tokenizer_options options = TOKMAP_INIT(tokmap_tokenizer_options);
    if (argc < 2 || argc > 3)
        return fail("usage: tokenize_lines TOKENIZER [PATTERN] <FILE");
    options.pattern = argc > 2 ? argv[2] : NULL;
    if (tokmap_tokenizer_open(&t, argv[1], &options, &err))
        return fail(err.text); /* one line that names the file, and what is not supported */
    const size_t n_bytes = fread(buffer, 1, sizeof buffer, stdin);
    const int status = print_ids(t, lines, find_lines(buffer, n_bytes, lines));
    tokmap_tokenizer_close(t);
    return status;
}
