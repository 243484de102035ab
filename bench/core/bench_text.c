/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_text.h"

#include <stdlib.h>

#include "cli/cli.h"

static size_t cut_text(void *context, const uint8_t *text, size_t n_searched, size_t n_bytes)
{
    return tokenizer_safe_cut(context, text, n_searched, n_bytes);
}

int bench_text_load(bench_text *text, const char *path, const tokenizer *t)
{
    const corpus_options options = {.batch_bytes = 128 << 10,
                                    .max_piece_bytes = SIZE_MAX, /* one word may be the text */
                                    .safe_cut = cut_text,
                                    .context = (void *)(uintptr_t)t};
    failure err;
    *text = (bench_text){0};
    corpus *c = corpus_open(&path, 1, &options, NULL, &err);
    int got = c ? 1 : -1;
    while (got > 0) {
        corpus_batch *batches =
            realloc(text->batches, (text->n_batches + 1) * sizeof *text->batches);
        if (!batches) {
            corpus_close(c);
            return cli_no_memory();
        }
        text->batches = batches;
        corpus_batch *b = &batches[text->n_batches++];
        *b = (corpus_batch){0};
        got = corpus_read(c, b, &err);
        text->n_bytes += b->n_bytes;
        text->n_ends += b->n_ends;
    }
    corpus_close(c);
    if (got < 0)
        cli_warn("%s", err.text);
    return got < 0;
}

void bench_text_free(bench_text *text)
{
    for (size_t i = 0; i < text->n_batches; i++)
        corpus_batch_free(&text->batches[i]);
    free(text->batches);
    *text = (bench_text){0};
}

bool bench_text_encode(encoder *e, const corpus_batch *b, id_buffer *ids, size_t *ends,
                       size_t *n_ends)
{
    bool first = !b->continues;
    size_t at = 0;
    for (size_t i = 0; i <= b->n_ends; i++) {
        const size_t end = i < b->n_ends ? b->ends[i].at : b->n_bytes;
        if (end > at && encoder_encode(e, b->text + at, end - at, first ? TEXT_FIRST : 0, ids))
            return false;
        if (ends && i < b->n_ends && !b->ends[i].input)
            ends[(*n_ends)++] = ids->n;
        first = first || i < b->n_ends;
        at = end;
    }
    return true;
}
