/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_text.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

tokenizer_file bench_text_tokenizer(const bench_options *options)
{
    const tokenizer_choice choice = {options->tokenizer, options->pattern, NULL};
    tokenizer_file file;
    if (!options->tokenizer || !options->text)
        bench_fail("tokenize and pack need --tokenizer and --text");
    if (tokenizer_choice_open(&file, &choice) != CLI_OK)
        _exit(1); /* it was printed */
    return file;
}

static size_t cut_text(void *context, const uint8_t *text, size_t n_searched, size_t n_bytes)
{
    return tokenizer_safe_cut(context, text, n_searched, n_bytes);
}

bench_text bench_text_load(const char *path, const tokenizer *t)
{
    const corpus_options options = {.batch_bytes = 128 << 10,
                                    .max_piece_bytes = SIZE_MAX, /* one word may be the text */
                                    .safe_cut = cut_text,
                                    .context = (void *)(uintptr_t)t};
    failure err;
    bench_text text = {0};
    corpus *c = corpus_open(&path, 1, &options, NULL, &err);
    int got = c ? 1 : -1;
    while (got > 0) {
        text.batches = realloc(text.batches, (text.n_batches + 1) * sizeof *text.batches);
        if (!text.batches)
            bench_fail("out of memory");
        corpus_batch *b = &text.batches[text.n_batches++];
        *b = (corpus_batch){0};
        got = corpus_read(c, b, &err);
        text.n_bytes += b->n_bytes;
        text.n_ends += b->n_ends;
    }
    if (got < 0)
        bench_fail("%s", err.text);
    corpus_close(c);
    return text;
}

void bench_text_free(bench_text *text)
{
    for (size_t i = 0; i < text->n_batches; i++)
        corpus_batch_free(&text->batches[i]);
    free(text->batches);
}

void bench_text_encode(encoder *e, const corpus_batch *b, id_buffer *ids, size_t *ends,
                       size_t *n_ends)
{
    bool first = !b->continues;
    size_t at = 0;
    for (size_t i = 0; i <= b->n_ends; i++) {
        const size_t end = i < b->n_ends ? b->ends[i].at : b->n_bytes;
        if (end > at && encoder_encode(e, b->text + at, end - at, first ? TEXT_FIRST : 0, ids))
            bench_fail("out of memory");
        if (ends && i < b->n_ends && !b->ends[i].input)
            ends[(*n_ends)++] = ids->n;
        first = first || i < b->n_ends;
        at = end;
    }
}
