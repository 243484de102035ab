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

/* Makes the pieces of m. spaces_are_marks: a blank is read as U+2581. NULL: err names what is not
 * supported. */
unigram *unigram_new(const model *m, bool spaces_are_marks, failure *err);
void unigram_free(unigram *u);
/* Returns where a sentence can be divided into parts. */
const char_words *unigram_char_words(const unigram *u);

typedef struct unigram_workspace unigram_workspace; /* one for each thread */
/* Makes a workspace. cache_bytes: for the ids of words; 0: no cache. NULL: out of memory. */
unigram_workspace *unigram_workspace_new(const unigram *u, size_t cache_bytes);
void unigram_workspace_free(unigram_workspace *s);
/* Frees what is larger than ARRAY_KEPT_BYTES. */
void unigram_workspace_free_large(unigram_workspace *s);

typedef struct unigram_state { /* of a sentence; starts as {0} */
    double score;
    const uint8_t *unknown; /* start of the current run of unknown characters, or NULL */
} unigram_state;
unigram_state *unigram_workspace_state(unigram_workspace *s);

/* Starts a new sentence; then come its parts, each directly after the one before in memory, and its
 * end. The last ids of a part may be appended with the next one. */
void unigram_begin(unigram_workspace *s);
/* Encodes a part without the cache. false: out of memory. */
bool unigram_word(unigram_workspace *s, const uint8_t *text, size_t n_bytes, id_buffer *out);
/* Encodes a part of many words; starts: from char_words_split. TEXT_PADDING bytes after it must be
 * readable. */
bool unigram_words(unigram_workspace *s, const uint8_t *text, size_t n_bytes,
                   const uint64_t *starts, id_buffer *out);
/* Appends the remaining ids. */
bool unigram_end(unigram_workspace *s, const uint8_t *end, id_buffer *out);
