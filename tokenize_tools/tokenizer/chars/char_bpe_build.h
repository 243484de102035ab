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
    piece_trie pieces; /* sentencepiece: what merges may lead to */
    uint32_t *scores; /* the different scores of these, the best first, as score_order gives them */
    size_t n_scores;
    pair_list list;
    uint64_t work; /* steps taken for one piece after the other */
} char_bpe_builder;

/* Sets w->err; false. */
bool char_bpe_no_memory(char_bpe_builder *w);
bool char_bpe_set_symbol(char_bpe_builder *w, uint32_t c, uint32_t symbol);
bool char_bpe_add_pair(char_bpe_builder *w, merge_pair pair);
/* A merge of these neighbours is possible. */
void char_bpe_add_join(char_bpe_builder *w, uint32_t left, uint32_t right);
/* The only character of a token; false: it has more or none. */
bool char_bpe_only_character(const model *m, uint32_t id, uint32_t *c);
/* Whether merging may give the token. */
bool char_bpe_merges_lead_to(const model *m, uint32_t id);

/* sentencepiece: the pieces by their text, the pairs that make up a piece, and, when b->merges is
 * there, what comes out of symbols that are not given out as they are. */
bool char_bpe_load_pieces(char_bpe_builder *w);
bool char_bpe_add_scored_pairs(char_bpe_builder *w);
bool char_bpe_load_odd_symbols(char_bpe_builder *w);

#endif /* TOKMAP_CHAR_BPE_BUILD_H */
