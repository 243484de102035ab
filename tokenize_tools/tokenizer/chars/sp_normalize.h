/* sp_normalize.h - what happens to a text before it is cut into pieces: sentencepiece's normalizer,
 * or the normalizer of a tokenizer.json. Pure. */
#ifndef TOKMAP_SP_NORMALIZE_H
#define TOKMAP_SP_NORMALIZE_H

#include "tokenizer/chars/char_pairs.h"
#include "tokenizer/model/model.h"
#include "tokenizer/chars/sp_text.h"
#include "tokenizer/unicode/unicode.h"

enum {
    NORMALIZE_FIRST = 1,    /* the text begins a document */
    NORMALIZE_CONTINUES = 2 /* it goes on where the one before was cut */
};

typedef struct sp_normalizer sp_normalizer;

/* How to read what comes out. */
typedef struct sp_form {
    bool spaces_are_marks; /* a blank stands for U+2581 */
    bool blank_prefix;     /* what follows puts a blank before the text, else U+2581 */
    /* Put it before the text, if that is not empty: */
    bool prefix_all;   /* any text that does not continue one */
    bool prefix_first; /* one that begins a document */
    bool not_twice;    /* but not where the text begins with U+2581 already */
} sp_form;

/* With all_steps none is left to the reader of the text. NULL: err says what is not supported. */
sp_normalizer *sp_normalizer_new(const model *m, bool all_steps, model_error *err);
void sp_normalizer_free(sp_normalizer *n);
sp_form sp_normalizer_form(const sp_normalizer *n);

/* Adds the pairs that it looks at together, wherever they stand. */
void sp_normalizer_add_pairs(const sp_normalizer *n, char_pairs *pairs);
/* Whether a text with these characters in a row may be cut between around[1] and around[2], so that
 * the part after the cut is normalized with NORMALIZE_CONTINUES; pairs: those that it added. The
 * pair must not be in a user-defined piece, nor may beside[0] be a blank. beside: the characters
 * of the normalized text that the cut is between. */
#define SP_CUT_CHARACTERS 5
bool sp_normalizer_cuts(const sp_normalizer *n, const char_pairs *pairs, const uint32_t *around,
                        uint32_t beside[2]);

typedef struct sp_scratch { /* starts as {0}; one for each thread */
    sp_text texts[2];
    nfc_scratch nfc;
} sp_scratch;
void sp_scratch_free(sp_scratch *s);

/* Normalizes *span: afterwards it is the text itself, or in the scratch. false: out of memory. */
bool sp_normalize(const sp_normalizer *n, sp_scratch *s, unsigned flags, sp_span *span);

#endif /* TOKMAP_SP_NORMALIZE_H */
