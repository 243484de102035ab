/* char_cuts.h - places at which a text of characters may be cut without changing its ids: between
 * two characters that no token has side by side, where the normalizer looks at each of them alone.
 * Most texts of any script have such a place every few words. Pure. */
#ifndef TOKMAP_CHAR_CUTS_H
#define TOKMAP_CHAR_CUTS_H

#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/chars/char_pairs.h"
#include "tokenizer/model/model.h"
#include "tokenizer/chars/sp_normalize.h"
#include "tokenizer/chars/unigram.h"

/* Where the part after a cut may begin. */
typedef enum cut_place {
    CUT_NOWHERE,
    CUT_BEFORE_BLANKS, /* white space of the normalized text */
    CUT_BEFORE_MARKS,  /* U+2581 of the normalized text, or a blank that stands for it */
    CUT_BEFORE_ANY
} cut_place;

typedef struct char_cuts { /* starts as {0}, which finds no cut */
    char_pairs pairs;
    cut_place place;
    bool spaces_are_marks;
    /* Of the two characters beside a cut so many must have tokens: 1 where unknown characters in a
     * row become one id, 2 where they vanish and what is around them merges. */
    unsigned n_known;
    /* Borrowed; bpe or pieces */
    const sp_normalizer *normalizer;
    const char_bpe *bpe;
    const unigram *pieces;
} char_cuts;

/* Adds the pairs of the tokens, the added tokens and the normalizer, which is set. The pairs are to
 * be sorted when all are added. */
void char_cuts_add_model(char_cuts *c, const model *m);
/* Adds an added token: no cut in it, nor at its end. */
void char_cuts_add_token(char_cuts *c, const model_text *content);
/* The largest place at which the text, in UTF-8, may be cut, or 0. */
size_t char_cuts_find(const char_cuts *c, const uint8_t *text, size_t n_bytes);
void char_cuts_free(char_cuts *c);

#endif /* TOKMAP_CHAR_CUTS_H */
