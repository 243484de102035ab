/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.h - finds the best-scored sequence of pieces exactly as sentencepiece and HuggingFace do:
 * with their floating-point numbers, their order of comparing, and their treatment of unknown
 * characters.
 *
 * A sentence is encoded part by part. The ids of a part may depend on the score of everything
 * before it, down to the last bit, so a state is passed from part to part. But most parts are far
 * from any tie: they are known to give the same ids after any state, and their ids may be
 * cached. */
#ifndef TOKMAP_UNIGRAM_H
#define TOKMAP_UNIGRAM_H

#include "tokenizer/chars/char_words.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct unigram unigram;

/* spaces_are_marks: a blank is read as U+2581. NULL: err names what is not supported. */
unigram *unigram_new(const model *m, bool spaces_are_marks, model_error *err);
void unigram_free(unigram *u);
/* Where a sentence can be cut into parts. */
const char_words *unigram_words(const unigram *u);

/* Whether this character alone is a piece, so that it is never unknown; and how many of two
 * neighbours must be known so that the text on both sides is independent: 1 if the text of a whole
 * run of unknown characters is needed at once. */
bool unigram_knows(const unigram *u, uint32_t character);
unsigned unigram_must_know(const unigram *u);

typedef struct unigram_scratch unigram_scratch; /* one for each thread */
unigram_scratch *unigram_scratch_new(const unigram *u);
void unigram_scratch_free(unigram_scratch *s);

typedef struct unigram_state { /* of a sentence; starts as {0} */
    double score;
    const uint8_t *unknown; /* start of the current run of unknown characters, or NULL */
} unigram_state;

/* Appends the ids of a part, which directly follows the parts before in memory. Its last ids may be
 * appended with the next part. false: out of memory. */
bool unigram_encode(unigram_scratch *s, unigram_state *state, const uint8_t *text, size_t n_bytes,
                    id_buffer *out);
/* Appends the remaining ids of the parts before `end`. */
bool unigram_finish(const unigram *u, unigram_state *state, const uint8_t *end, id_buffer *out);

/* Appends the ids of a part if they are the same after any state whose score, without its sign, is
 * less than unigram_usual_limit. *fixed: they are. false: out of memory. */
bool unigram_encode_fixed(unigram_scratch *s, const uint8_t *text, size_t n_bytes, bool *fixed,
                          id_buffer *out);
double unigram_usual_limit(const unigram *u);

#endif /* TOKMAP_UNIGRAM_H */
