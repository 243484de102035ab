/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe_build.h - what char_bpe_build.c and char_bpe_scored.c (sentencepiece's part) share. */
#ifndef TOKMAP_CHAR_BPE_BUILD_H
#define TOKMAP_CHAR_BPE_BUILD_H

#include "tokenizer/chars/char_bpe_parts.h"

typedef struct pair_list {
    merge_pair *pairs;
    size_t n, capacity;
} pair_list;

typedef struct char_bpe_builder {
    char_bpe *b;
    const model *m;
    model_error *err;
    double_array pieces; /* sentencepiece: possible results of merges */
    uint32_t *scores;    /* their different scores, the best first, as given by score_order */
    size_t n_scores;
    pair_list list;
    uint64_t work; /* steps taken so far */
} char_bpe_builder;

/* Sets w->err and returns false. */
bool char_bpe_no_memory(char_bpe_builder *w);
bool char_bpe_set_symbol(char_bpe_builder *w, uint32_t c, uint32_t symbol);
bool char_bpe_add_pair(char_bpe_builder *w, merge_pair pair);
/* Records that these neighbours may merge. */
void char_bpe_add_join(char_bpe_builder *w, uint32_t left, uint32_t right);
/* The character of a token that has only one; false: it has more, or none. */
bool char_bpe_only_character(const model *m, uint32_t id, uint32_t *c);
/* Whether merging can produce the token. */
bool char_bpe_merges_lead_to(const model *m, uint32_t id);

/* For sentencepiece: the pieces by their text; the pairs that make up a piece; and, after b->merges
 * was made, the ids of symbols that are not their own id. */
bool char_bpe_load_pieces(char_bpe_builder *w);
bool char_bpe_add_scored_pairs(char_bpe_builder *w);
bool char_bpe_load_odd_symbols(char_bpe_builder *w);

#endif /* TOKMAP_CHAR_BPE_BUILD_H */
