/* SPDX-License-Identifier: Apache-2.0 */
/* unigram_parts.h - what unigram.c and unigram_stream.c share. */
#ifndef TOKMAP_UNIGRAM_PARTS_H
#define TOKMAP_UNIGRAM_PARTS_H

#include "tokenizer/words/double_array.h"
#include "tokenizer/chars/unigram.h"

struct unigram {
    char_words words;
    double_array trie;
    double *scores;                /* by id */
    bool single;                   /* sentencepiece: floats */
    double unknown_score, largest; /* largest: absolute value of all scores */
    uint32_t n_ids, unknown_id;
    bool byte_fallback;
    uint32_t byte_ids[256];
    size_t longest; /* piece, in bytes */
};

/* Adding two floats as doubles and rounding to float gives the same result as adding floats. */
static inline double unigram_sum(bool single, double a, double b)
{
    return single ? (double)(float)(a + b) : a + b;
}

#endif /* TOKMAP_UNIGRAM_PARTS_H */
