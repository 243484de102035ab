/* SPDX-License-Identifier: Apache-2.0 */
/* text_rules.h - how a tokenizer handles the text between added tokens: how it is normalized, where
 * its words are, and what happens to a word. Pure. */
#pragma once

#include "tokenizer/encode/added_tokens.h"
#include "tokenizer/merge/word_encoder.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/char_words.h"

/* The parts of a text over characters that are encoded independently. */
typedef enum sentence_kind {
    WHOLE_TEXT,    /* the whole text is one sentence */
    BETWEEN_MARKS, /* a sentence begins at each U+2581 */
    PIECES         /* of splits[0]; one may also begin at each U+2581 */
} sentence_kind;

#define MAX_PIECE_STEPS (MODEL_MAX_PIECE_STEPS + 1)

typedef struct text_rules { /* starts as {0} */
    bool bytes_are_ids;     /* the built-in `bytes`: the rest gives the same ids, but slower */
    normalizer *normalizer; /* or NULL */
    normal_form form;
    bool prefix_space;      /* a blank goes before a text that does not begin with one */
    added_tokens *added[2]; /* searched for in the text, and in normalized text; or NULL */
    bool blanks_only;       /* for that, all U+2581 in normalized text become blanks */

    word_encoder words;
    bool has_steps;                        /* something happens to a word before it is encoded */
    bool by_pattern;                       /* words are those of splits[0]; else those of `chars` */
    splitter *splits[MAX_PIECE_STEPS + 1]; /* of the text, then of each step; or NULL */

    /* Words of a pattern: */
    piece_step steps[MAX_PIECE_STEPS];
    size_t n_steps;
    bool drops_blanks; /* the first splitter does */
    bool finds_first;  /* a step needs to know what the text begins with */

    /* Words of characters: */
    char_words chars;
    sentence_kind sentences; /* in a word */
    bool prefix_words, splits_at_marks;
    bool sums_over_text; /* the ids of a word depend on the scores of all words before it */
} text_rules;

/* Loads the rules of m. words: its tokens, for as long as the rules. false: err names what is not
 * supported, or memory ran out. *normalized: the added tokens that are searched for in normalized
 * text, with their contents normalized. */
bool text_rules_load(text_rules *r, const model *m, const vocabulary *words, model *normalized,
                     failure *err);
void text_rules_free(text_rules *r);

/* Whether every text is encoded, also one that is not UTF-8. */
bool text_rules_take_bytes(const text_rules *r);
/* Returns the length of the U+2581 or the blank that stands for it at this byte, or 0. */
static inline size_t text_rules_mark_at(const text_rules *r, text_span text, size_t at)
{
    if (text.bytes[at] == ' ' && r->form.spaces_are_marks)
        return 1;
    return model_begins_with_mark(text.bytes + at, text.n_bytes - at) ? MODEL_MARK_BYTES : 0;
}
