/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.h - finds the best-scored sequence of pieces exactly as sentencepiece and HuggingFace do:
 * with their floating-point numbers, their order of comparing, and their treatment of unknown
 * characters.
 *
 * A sentence is encoded part by part. The ids of a part may depend on the score of everything
 * before it, down to the last bit, so a state is passed from part to part. But most parts are far
 * from any tie: they are known to give the same ids after any state, and their ids may be
 * cached. */
#pragma once

#include "tokenizer/split/char_words.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct unigram unigram;

/* spaces_are_marks: a blank is read as U+2581. NULL: err names what is not supported. */
unigram *unigram_new(const model *m, bool spaces_are_marks, failure *err);
void unigram_free(unigram *u);
/* Where a sentence can be cut into parts. */
const char_words *unigram_char_words(const unigram *u);

typedef struct unigram_scratch unigram_scratch; /* one for each thread */
/* cache_bytes: for the ids of words; 0: no cache. NULL: out of memory. */
unigram_scratch *unigram_scratch_new(const unigram *u, size_t cache_bytes);
void unigram_scratch_free(unigram_scratch *s);

typedef struct unigram_state { /* of a sentence; starts as {0} */
    double score;
    const uint8_t *unknown; /* start of the current run of unknown characters, or NULL */
} unigram_state;
unigram_state *unigram_scratch_state(unigram_scratch *s);

/* Starts a new sentence; then come its parts, each directly after the one before in memory, and its
 * end. The last ids of a part may be appended with the next one. */
void unigram_begin(unigram_scratch *s);
/* Encodes a part without the cache. false: out of memory. */
bool unigram_word(unigram_scratch *s, const uint8_t *text, size_t n_bytes, id_buffer *out);
/* Encodes a part of many words; starts: from char_words_split. TEXT_PADDING bytes after it must be
 * readable. */
bool unigram_words(unigram_scratch *s, const uint8_t *text, size_t n_bytes, const uint64_t *starts,
                   id_buffer *out);
/* Appends the remaining ids. */
bool unigram_end(unigram_scratch *s, const uint8_t *end, id_buffer *out);
