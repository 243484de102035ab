/* sp_normalize.h - normalizes a text before it is cut into pieces: sentencepiece's normalizer, or
 * the one of a tokenizer.json. Pure. */
#ifndef TOKMAP_SP_NORMALIZE_H
#define TOKMAP_SP_NORMALIZE_H

#include "tokenizer/chars/char_pairs.h"
#include "tokenizer/model/model.h"
#include "tokenizer/chars/sp_text.h"
#include "tokenizer/unicode/unicode.h"

enum {
    NORMALIZE_FIRST = 1,    /* the text begins a document */
    NORMALIZE_CONTINUES = 2 /* it continues the text before a cut */
};

typedef struct sp_normalizer sp_normalizer;

/* How to read the normalized text. */
typedef struct sp_form {
    bool spaces_are_marks; /* a blank stands for U+2581 */
    bool blank_prefix;     /* later code puts a blank before the text, else U+2581 */
    /* When to put it before a text that is not empty: */
    bool prefix_all;   /* any text that does not continue another */
    bool prefix_first; /* one that begins a document */
    bool not_twice;    /* but not if the text already begins with U+2581 */
} sp_form;

/* all_steps: no steps are left to the reader of the text. NULL: err names what is not supported. */
sp_normalizer *sp_normalizer_new(const model *m, bool all_steps, model_error *err);
void sp_normalizer_free(sp_normalizer *n);
sp_form sp_normalizer_form(const sp_normalizer *n);

/* Adds the pairs of characters that it handles together anywhere. */
void sp_normalizer_add_pairs(const sp_normalizer *n, char_pairs *pairs);
/* Whether a text with these characters in a row may be cut between around[1] and around[2], with
 * the part after the cut normalized with NORMALIZE_CONTINUES. pairs: those that it added. The pair
 * must not be in a user-defined piece, and beside[0] must not be a blank. beside: the characters of
 * the normalized text on the two sides of the cut. */
#define SP_CUT_CHARACTERS 5
bool sp_normalizer_cuts(const sp_normalizer *n, const char_pairs *pairs, const uint32_t *around,
                        uint32_t beside[2]);

typedef struct sp_scratch { /* starts as {0}; one for each thread */
    sp_text texts[2];
    nfc_scratch nfc;
} sp_scratch;
void sp_scratch_free(sp_scratch *s);

/* Normalizes *span, which afterwards is the original text or in the scratch. false: out of
 * memory. */
bool sp_normalize(const sp_normalizer *n, sp_scratch *s, unsigned flags, sp_span *span);

#endif /* TOKMAP_SP_NORMALIZE_H */
