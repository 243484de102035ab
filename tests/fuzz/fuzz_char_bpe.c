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
    const uint32_t n_tokens = (uint32_t)m->n_tokens;
    for (uint8_t n = next(in); n > 0; n--) {
        const uint32_t left = next(in) % n_tokens, right = next(in) % n_tokens;
        naive_add_merge(m, ~0u, left, right);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[NAIVE_MAX_BYTES], marked[4 * NAIVE_MAX_BYTES];
    static naive_ids want;
    input in = {data, data + size};
    model m;
    require(make(&in, &m));
    const size_t n = take_text(&in, text, 150);
    const size_t n_marked = naive_marked(text, n, marked);
    want.n = 0;
    if (m.rule == MERGE_SCORED)
        naive_scored_bpe(&m, (const uint8_t *)marked, n_marked, &want);
    else if (n > 0)
        naive_listed_bpe(&m, (const uint8_t *)marked, n_marked, &want);
    require_ids(&m, text, n, &want);
    model_free(&m);
    return 0;
}
