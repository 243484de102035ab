/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_unigram.c - Unigram: a model and a text from the input, against the definition.
 *
 * Byte 0: flags; byte 1: the number of pieces. A piece is a byte for its kind and score, then
 * letters up to one that says so. The rest is the text. */
#include "char_input.h"

static void make(input *in, model *m)
{
    static const double grains[] = {1, 0.1, 1e-4, 70};
    const uint8_t flags = next(in);
    const bool sentencepiece = flags & 1;
    model_init(m);
    m->kind = MODEL_UNIGRAM;
    m->unknown_id = 0;
    naive_add(m, "<unk>", sentencepiece ? TOKEN_UNKNOWN : TOKEN_NORMAL, 0);
    add_pieces(in, m, sentencepiece, grains[flags >> 4 & 3]);
    if (flags & 4)
        naive_add_bytes(m);
    m->n_steps = sentencepiece;
    m->steps[0].kind = NORMALIZE_SENTENCEPIECE;
    m->escape_spaces = true;
    m->metaspace = !sentencepiece;
    m->metaspace_split = flags & 8;
}

static void define(const model *m, const char *text, size_t n, naive_ids *want)
{
    static char marked[4 * NAIVE_MAX_BYTES];
    const uint8_t *at = (const uint8_t *)marked, *end = at + naive_marked(text, n, marked);
    want->n = 0;
    for (const uint8_t *after = at; at < end; at = after) {
        do
            after += naive_char(after);
        while (after < end &&
               !(m->metaspace_split && m->n_steps == 0 && memcmp(after, NAIVE_MARK, 3) == 0));
        naive_unigram(m, m->n_steps == 1, at, (size_t)(after - at), want);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[NAIVE_MAX_BYTES];
    static naive_ids want;
    input in = {data, data + size};
    model m;
    make(&in, &m);
    const size_t n = take_text(&in, text, 300);
    define(&m, text, n, &want);
    require_ids(&m, text, n, &want);
    model_free(&m);
    return 0;
}
