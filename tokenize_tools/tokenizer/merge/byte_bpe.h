/* SPDX-License-Identifier: Apache-2.0 */
/* byte_bpe.h - byte-level BPE: merges a word from its bytes. */
#pragma once

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"
#include "tokenizer/model/vocabulary.h"
#include "tokenizer/merge/merge.h"

typedef struct byte_bpe byte_bpe;

/* Makes the merges of m. words: its tokens, for as long as the result. NULL: err says what is
 * missing or not supported. */
byte_bpe *byte_bpe_new(const model *m, const vocabulary *words, failure *err);
void byte_bpe_free(byte_bpe *b);
/* Whether every byte has a token. */
bool byte_bpe_takes_bytes(const byte_bpe *b);

/* Appends the ids of a word, after which MODEL_PADDING bytes are readable. false: out of
 * memory. */
bool byte_bpe_encode(const byte_bpe *b, merge_workspace *workspace, const uint8_t *word,
                     size_t n_bytes, id_buffer *out);
/* Sets more bits of starts, as of splitter_words(): the parts of a long word have its ids, and are
 * more often in a cache than it is. */
void byte_bpe_cut_words(const byte_bpe *b, const uint8_t *text, size_t n_bytes, uint64_t *starts);
