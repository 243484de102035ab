/* unigram.h - the best-scored row of pieces, as sentencepiece and HuggingFace find it: with their
 * floating-point numbers, their order of comparing and their treatment of unknown characters.
 *
 * A sentence is worked on part by part. What a part gives may depend on the score of all before it,
 * down to the last bit, so a state goes from part to part. But most parts are far from any tie:
 * those are known to give the same ids after whatever state, and their ids may be kept. */
#ifndef TOKMAP_UNIGRAM_H
#define TOKMAP_UNIGRAM_H

#include "tokenizer/chars/char_words.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct unigram unigram;

/* With spaces_are_marks a blank is read as U+2581. NULL: err says what is not supported. */
unigram *unigram_new(const model *m, bool spaces_are_marks, model_error *err);
void unigram_free(unigram *u);
/* Where a sentence can be cut into parts. */
const char_words *unigram_words(const unigram *u);

/* Whether this character alone is a piece, so that it is never unknown, and how many of two
 * neighbors must be such that what is before and after them is apart: 1, if the text of all unknown
 * characters in a row is needed at once. */
bool unigram_knows(const unigram *u, uint32_t character);
unsigned unigram_must_know(const unigram *u);

typedef struct unigram_scratch unigram_scratch; /* one for each thread */
unigram_scratch *unigram_scratch_new(const unigram *u);
void unigram_scratch_free(unigram_scratch *s);

typedef struct unigram_state { /* of a sentence; starts as {0} */
    double score;
    const uint8_t *unknown; /* where a run of unknown characters began, or NULL */
} unigram_state;

/* Appends the ids of a part, which follows the parts before in memory. What it ends with may come
 * with the next part. false: out of memory. */
bool unigram_encode(unigram_scratch *s, unigram_state *state, const uint8_t *text, size_t n_bytes,
                    id_buffer *out);
/* Appends what is still to come of the parts before `end`. */
bool unigram_finish(const unigram *u, unigram_state *state, const uint8_t *end, id_buffer *out);

/* Appends the ids of a part that gives these after any state whose score is below
 * unigram_usual_limit, with or without its sign. *fixed: whether it is such a part. false: out of
 * memory. */
bool unigram_encode_fixed(unigram_scratch *s, const uint8_t *text, size_t n_bytes, bool *fixed,
                          id_buffer *out);
double unigram_usual_limit(const unigram *u);

#endif /* TOKMAP_UNIGRAM_H */
