/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/word_pieces.h"

#include <stdlib.h>

#include "tokenizer/model/double_array.h"

struct word_pieces {
    double_array trie;
    uint32_t inside; /* state: pieces that continue a word begin here ... */
    bool continues;  /* ... if there are any */
    uint64_t max_characters;
    uint32_t unknown_id;
};

/* ---- New and free ---- */

static bool fill(word_pieces *p, const model *m, failure *err)
{
    if (m->unknown_id == MODEL_NO_ID)
        return model_fail(err, 0, "%s without an unk_token in the vocabulary is not supported",
                          m->family);
    p->trie.has_nul = true; /* tokens are UTF-8 */
    if (!double_array_of_tokens(&p->trie, m, 1u << TOKEN_NORMAL, err))
        return false;
    if (p->trie.n_units == 0 && !double_array_build(&p->trie, NULL, 0))
        return fail_memory(err);
    /* Pieces that continue a word are below the prefix in the same trie. */
    bool has_value;
    p->inside = double_array_root(&p->trie);
    p->continues = m->kind == MODEL_WORDPIECE;
    for (size_t i = 0; p->continues && i < m->subword_prefix.n_bytes; i++)
        p->continues =
            double_array_walk(&p->trie, &p->inside, (uint8_t)m->subword_prefix.s[i], &has_value);
    p->unknown_id = m->unknown_id;
    p->max_characters = m->kind == MODEL_WORDPIECE ? m->max_word_characters : UINT64_MAX;
    return true;
}

word_pieces *word_pieces_new(const model *m, failure *err)
{
    word_pieces *p = calloc(1, sizeof *p);
    if (!p)
        fail_memory(err);
    else if (fill(p, m, err))
        return p;
    word_pieces_free(p);
    return NULL;
}

void word_pieces_free(word_pieces *p)
{
    if (!p)
        return;
    double_array_free(&p->trie);
    free(p);
}

/* ---- Words ---- */

static bool is_too_long(const word_pieces *p, const uint8_t *word, size_t n_bytes)
{
    uint64_t n = 0;
    if (n_bytes <= p->max_characters)
        return false;
    for (size_t i = 0; i < n_bytes && n <= p->max_characters; i++)
        n += (word[i] & 0xC0) != 0x80;
    return n > p->max_characters;
}

bool word_pieces_encode(const word_pieces *p, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    const size_t first = out->n;
    uint32_t state = double_array_root(&p->trie), id = 0;
    size_t at = 0;
    const bool too_long = is_too_long(p, word, n_bytes);
    while (at < n_bytes && !too_long) {
        const size_t n = double_array_longest(&p->trie, state, word + at, n_bytes - at, &id);
        if (n == 0 || (n < n_bytes - at && !p->continues))
            break;
        if (!id_buffer_append(out, id))
            return false;
        at += n;
        state = p->inside;
    }
    if (at == n_bytes)
        return true;
    out->n = first;
    return id_buffer_append(out, p->unknown_id);
}
