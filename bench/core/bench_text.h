/* SPDX-License-Identifier: Apache-2.0 */
/* bench_text.h - a corpus in memory, for the pages that tokenize. */
#pragma once

#include "core/bench.h"
#include "corpus/corpus.h"
#include "tokenizer/choice/tokenizer_choice.h"

typedef struct bench_text {
    corpus_batch *batches; /* of about 128 KiB, cut where the tokenizer allows it */
    size_t n_batches, n_ends;
    uint64_t n_bytes;
} bench_text;

/* That of --tokenizer and --pattern, for a page that needs --text too. */
tokenizer_file bench_text_tokenizer(const bench_options *options);
/* Reads a file as `tokmap pack` does. */
bench_text bench_text_load(const char *path, const tokenizer *t);
void bench_text_free(bench_text *text);
/* Appends the ids of a batch, and where each document ends in them to ends[*n_ends ...], unless
 * `ends` is NULL. */
void bench_text_encode(encoder *e, const corpus_batch *b, id_buffer *ids, size_t *ends,
                       size_t *n_ends);
