/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/word_encoder.h"

#include "base/array.h"
#include "tokenizer/merge/word_cache.h"

bool word_encoder_load(word_encoder *e, const model *m, const vocabulary *words,
                       bool spaces_are_marks, failure *err)
{
    if (m->n_tokens > WORD_CACHE_MAX_ID)
        return model_fail(err, 0, "more than %u tokens", WORD_CACHE_MAX_ID);
    switch (m->kind) {
    case MODEL_BYTE_BPE:
        return (e->bytes = byte_bpe_new(m, words, err)) != NULL;
    case MODEL_CHAR_BPE:
        return (e->chars = char_bpe_new(m, spaces_are_marks, err)) != NULL;
    case MODEL_UNIGRAM:
        return (e->unigram = unigram_new(m, spaces_are_marks, err)) != NULL;
    case MODEL_WORDPIECE:
    case MODEL_WORDLEVEL:
        break;
    }
    return (e->pieces = word_pieces_new(m, err)) != NULL;
}

void word_encoder_free(word_encoder *e)
{
    byte_bpe_free(e->bytes);
    char_bpe_free(e->chars);
    unigram_free(e->unigram);
    word_pieces_free(e->pieces);
}

bool word_workspace_load(word_workspace *w, const word_encoder *e, size_t unigram_cache_bytes)
{
    return !e->unigram ||
           (w->search = unigram_workspace_new(e->unigram, unigram_cache_bytes)) != NULL;
}

void word_workspace_free(word_workspace *w)
{
    merge_workspace_free(&w->merging);
    unigram_workspace_free(w->search);
}

void word_workspace_free_large(word_workspace *w)
{
    array_free_large(&w->merging.memory, &w->merging.n_bytes, 1);
    if (w->search)
        unigram_workspace_free_large(w->search);
}

/* Not inlined, because the other models need no registers of their own. */
__attribute__((noinline)) static bool encode_sentence(unigram_workspace *s, const uint8_t *word,
                                                      size_t n_bytes, id_buffer *out)
{
    unigram_begin(s);
    return unigram_word(s, word, n_bytes, out) && unigram_end(s, word + n_bytes, out);
}

bool word_encoder_encode(const word_encoder *e, word_workspace *w, const uint8_t *word,
                         size_t n_bytes, id_buffer *out)
{
    if (e->bytes)
        return byte_bpe_encode(e->bytes, &w->merging, word, n_bytes, out);
    if (e->chars)
        return char_bpe_encode(e->chars, &w->merging, word, n_bytes, out);
    return e->pieces ? word_pieces_encode(e->pieces, word, n_bytes, out)
                     : encode_sentence(w->search, word, n_bytes, out);
}
