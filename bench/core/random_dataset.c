/* SPDX-License-Identifier: Apache-2.0 */
/* random_dataset.c - makes a dataset to be read; the values of its tokens do not matter. */
#include "core/bench.h"
#include "cli/cli.h"

enum {
    DOCUMENT_TOKENS = 1000,
    VOCABULARY = 50257
};

int bench_finish(tokmap_writer *w, tokmap_status status, tokmap_error *err)
{
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    if (status)
        cli_warn("%s", err->text);
    return status != 0;
}

int bench_make_random(const char *prefix, uint64_t n_tokens)
{
    static uint32_t ids[DOCUMENT_TOKENS];
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = VOCABULARY,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = 1};
    tokmap_writer *w = NULL;
    tokmap_error err;
    uint64_t seed = 1;
    tokmap_status status = tokmap_writer_open(&w, prefix, &options, &err);
    for (uint64_t n = 0; n < n_tokens && !status; n += DOCUMENT_TOKENS) {
        for (int i = 0; i < DOCUMENT_TOKENS; i++)
            ids[i] = (uint32_t)(bench_random(&seed) % VOCABULARY);
        status = tokmap_writer_append(w, ids, DOCUMENT_TOKENS, &err);
        if (!status)
            status = tokmap_writer_end_document(w, &err);
    }
    return bench_finish(w, status, &err);
}
