/* SPDX-License-Identifier: Apache-2.0 */
/* bench_text.h - a text in memory, as documents or pieces of one, for the pages that tokenize. */
#ifndef TOKMAP_BENCH_TEXT_H
#define TOKMAP_BENCH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/tokenizer.h"

typedef struct bench_piece {
    size_t start, n_bytes;
    bool first; /* begins a document */
} bench_piece;

typedef struct bench_text {
    uint8_t *bytes; /* TEXT_PADDING more are readable */
    size_t n_bytes;
    bench_piece *pieces;
    size_t n_pieces;
} bench_text;

/* Reads JSON lines with the field "text", or one plain document, which is cut into pieces of about
 * a megabyte where the tokenizer allows it. Returns 0, or prints the error. */
int bench_text_load(bench_text *text, const char *path, const tokenizer *t);
void bench_text_free(bench_text *text);

#endif /* TOKMAP_BENCH_TEXT_H */
