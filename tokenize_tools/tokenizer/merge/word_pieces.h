/* SPDX-License-Identifier: Apache-2.0 */
/* word_pieces.h - WordPiece and WordLevel: a word becomes the tokens that it consists of, or the
 * unknown token. */
#pragma once

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"

typedef struct word_pieces word_pieces;

/* Makes the pieces of a MODEL_WORDPIECE or MODEL_WORDLEVEL. NULL: err says what is missing or not
 * supported. */
word_pieces *word_pieces_new(const model *m, failure *err);
void word_pieces_free(word_pieces *p);
/* Appends the ids of a word that is UTF-8 and not empty. false: out of memory. */
bool word_pieces_encode(const word_pieces *p, const uint8_t *word, size_t n_bytes, id_buffer *out);
