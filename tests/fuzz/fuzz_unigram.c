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

static void compare(const model *m, const char *text, size_t n)
{
    static naive_ids want;
    static char padded[2 * NAIVE_MAX_BYTES];
    failure err;
    id_buffer out = {0};
    tokenizer *t = tokenizer_new(m, &err);
    require(t != NULL);
    encoder *e = encoder_new(t, &(encoder_options){.cache_bytes = 1 << 14});
    require(e != NULL);
    memcpy(padded, text, n);
    define(m, text, n, &want);
    for (int again = 0; again < 2; again++) {
        out.n = 0;
        require(encoder_encode(e, (const uint8_t *)padded, n, TEXT_FIRST, &out) == TOKENIZE_OK);
        require(out.n == want.n && (want.n == 0 || memcmp(out.ids, want.ids, 4 * want.n) == 0));
    }
    id_buffer_free(&out);
    encoder_free(e);
    tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[NAIVE_MAX_BYTES];
    input in = {data, data + size};
    model m;
    make(&in, &m);
    const size_t n = take_text(&in, text, 300);
    compare(&m, text, n);
    model_free(&m);
    return 0;
}
