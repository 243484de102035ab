/* SPDX-License-Identifier: Apache-2.0 */
/* word_encoder.h - a word to ids, by the model that a tokenizer has. */
#pragma once

#include "tokenizer/merge/byte_bpe.h"
#include "tokenizer/merge/char_bpe.h"
#include "tokenizer/merge/unigram.h"
#include "tokenizer/merge/word_pieces.h"

typedef struct word_encoder { /* starts as {0}; one of them is loaded */
    byte_bpe *bytes;
    char_bpe *chars;
    unigram *unigram;
    word_pieces *pieces;
} word_encoder;

/* Loads the model. words: the tokens of m, for as long as the encoder. spaces_are_marks: a blank is
 * read as U+2581. false: err says what is missing or not supported. */
bool word_encoder_load(word_encoder *e, const model *m, const vocabulary *words,
                       bool spaces_are_marks, failure *err);
void word_encoder_free(word_encoder *e);

typedef struct word_workspace { /* starts as {0}; one for each thread */
    merge_workspace merging;
    unigram_workspace *search; /* with a unigram */
} word_workspace;
/* Loads a workspace for the encoder. unigram_cache_bytes: for the words of a text over which scores
 * are summed; or 0. false: out of memory. */
bool word_workspace_load(word_workspace *w, const word_encoder *e, size_t unigram_cache_bytes);
void word_workspace_free(word_workspace *w);
/* Frees what is larger than ARRAY_KEPT_BYTES. */
void word_workspace_free_large(word_workspace *w);

/* Appends the ids of a word, after which TEXT_PADDING bytes are readable. false: out of memory. */
bool word_encoder_encode(const word_encoder *e, word_workspace *w, const uint8_t *word,
                         size_t n_bytes, id_buffer *out);
