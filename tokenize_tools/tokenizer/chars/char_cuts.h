/* SPDX-License-Identifier: Apache-2.0 */
/* char_cuts.h - finds places where a text of characters may be cut without changing its ids:
 * between two characters that are neighbours in no token, where the normalizer handles each of them
 * alone. Most texts in any script have such a place every few words. Pure. */
#ifndef TOKMAP_CHAR_CUTS_H
#define TOKMAP_CHAR_CUTS_H

#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/normalize/char_pairs.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/chars/unigram.h"

/* Where the part after a cut may begin. */
typedef enum cut_place {
    CUT_NOWHERE,
    CUT_BEFORE_BLANKS, /* white space of the normalized text */
    CUT_BEFORE_MARKS,  /* U+2581 in the normalized text, or a blank for it */
    CUT_BEFORE_ANY
} cut_place;

typedef struct char_cuts { /* starts as {0}, which finds no cut */
    char_pairs pairs;
    cut_place place;
    bool spaces_are_marks;
    /* How many of the two characters beside a cut must have tokens: 1 if a run of unknown
     * characters becomes one id, 2 if it vanishes and the text around it merges. */
    unsigned n_known;
    /* Borrowed; one of bpe and pieces is set. */
    const normalizer *normalizer;
    const char_bpe *bpe;
    const unigram *pieces;
    /* Bits by the characters before and after: where ASCII may be cut at all. Most text is ASCII
     * that may not, and checking a place takes a hundred times as long as skipping it. */
    uint64_t ascii[128][2];
} char_cuts;

/* Adds the pairs of the tokens, the added tokens, and the normalizer, which must be set. */
void char_cuts_add_model(char_cuts *c, const model *m);
/* Forbids cuts inside an added token and at its end. */
void char_cuts_add_token(char_cuts *c, const added_token *token);
/* Call after the last pair was added, and when everything else is set. */
void char_cuts_finish(char_cuts *c);
/* The largest offset at which the text, in UTF-8, may be cut, or 0, as in its first n_searched
 * bytes. */
size_t char_cuts_find(const char_cuts *c, const uint8_t *text, size_t n_searched, size_t n_bytes);
void char_cuts_free(char_cuts *c);

#endif /* TOKMAP_CHAR_CUTS_H */
