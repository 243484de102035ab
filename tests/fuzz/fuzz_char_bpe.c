/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_char_bpe.c - BPE over characters: a model and a text from the input, against the
 * definition.
 *
 * Byte 0: flags; byte 1: the number of pieces. A piece is a byte for its kind and score, then
 * letters up to one that says so. Then merges, and the rest is the text. */
#include "char_input.h"

static void add_merges(input *in, model *m)
{
    failure err;
    uint8_t both[128];
    const uint32_t n_tokens = (uint32_t)m->n_tokens;
    for (uint8_t n = next(in); n > 0; n--) {
        const uint32_t left = next(in) % n_tokens, right = next(in) % n_tokens;
        const size_t n_left = m->tokens[left].n_bytes, n_right = m->tokens[right].n_bytes;
        memcpy(both, model_token_bytes(m, left), n_left);
        memcpy(both + n_left, model_token_bytes(m, right), n_right);
        const uint32_t result = naive_find(m, ~0u, both, n_left + n_right);
        if (result != MODEL_NO_ID)
            model_add_merge(m, (model_merge){left, right, result}, &err);
    }
    model_keep_last_merges(m, &err);
}

static bool make(input *in, model *m)
{
    const uint8_t flags = next(in);
    const bool scored = flags & 1;
    model_init(m);
    m->kind = MODEL_CHAR_BPE;
    m->rule = scored ? MERGE_SCORED : MERGE_LISTED;
    m->unknown_id = 0;
    m->fuse_unknown = flags & 2;
    naive_add(m, "<unk>", scored ? TOKEN_UNKNOWN : TOKEN_NORMAL, 0);
    add_pieces(in, m, scored, 1);
    if (!scored)
        add_merges(in, m);
    if (flags & 4)
        naive_add_bytes(m);
    m->n_steps = 1;
    m->steps[0].kind = scored ? NORMALIZE_SENTENCEPIECE : NORMALIZE_REPLACE;
    m->escape_spaces = true;
    return scored || (model_text_set(&m->steps[0].from, " ", 1) &&
                      model_text_set(&m->steps[0].to, NAIVE_MARK, 3));
}

static void compare(const model *m, const char *text, size_t n)
{
    static naive_ids want;
    static char marked[4 * NAIVE_MAX_BYTES], padded[2 * NAIVE_MAX_BYTES];
    failure err;
    id_buffer out = {0};
    tokenizer *t = tokenizer_new(m, &err);
    require(t != NULL);
    encoder *e = encoder_new(t, &(encoder_options){.cache_bytes = 1 << 14});
    require(e != NULL);
    memcpy(padded, text, n);
    for (int again = 0; again < 2; again++) { /* from the merges, then from the cache */
        out.n = want.n = 0;
        require(encoder_encode(e, (const uint8_t *)padded, n, TEXT_FIRST, &out) == TOKENIZE_OK);
        const size_t n_marked = naive_marked(text, n, marked);
        if (m->rule == MERGE_SCORED)
            naive_scored_bpe(m, (const uint8_t *)marked, n_marked, &want);
        else if (n > 0)
            naive_listed_bpe(m, (const uint8_t *)marked, n_marked, &want);
        require(out.n == want.n && (want.n == 0 || memcmp(out.ids, want.ids, 4 * want.n) == 0));
    }
    model_text back = {0};
    size_t bad;
    require(tokenizer_decode(t, out.ids, out.n, &back, &bad));
    free(back.s);
    id_buffer_free(&out);
    encoder_free(e);
    tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[NAIVE_MAX_BYTES];
    input in = {data, data + size};
    model m;
    require(make(&in, &m));
    const size_t n = take_text(&in, text, 150);
    compare(&m, text, n);
    model_free(&m);
    return 0;
}
