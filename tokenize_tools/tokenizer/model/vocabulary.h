/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h - the tokens of a tokenizer: their bytes by id, and their ids by bytes. */
#pragma once

#include "tokenizer/model/model.h"

typedef struct vocabulary vocabulary;

/* Copies the tokens of m. NULL: err says that memory ran out, or that too many tokens have the same
 * hash. */
vocabulary *vocabulary_new(const model *m, failure *err);
void vocabulary_free(vocabulary *v);
/* Returns a model that has the tokens, and nothing else. */
const model *vocabulary_tokens(const vocabulary *v);
/* The id of the TOKEN_NORMAL with these bytes (the lowest, if several have them), or MODEL_NO_ID.
 * MODEL_PADDING bytes after them must be readable. */
uint32_t vocabulary_find(const vocabulary *v, const uint8_t *bytes, size_t n_bytes);
/* The same as vocabulary_find, but searches TOKEN_CONTROL first, and needs no padding. */
uint32_t vocabulary_find_any(const vocabulary *v, const void *bytes, size_t n_bytes);
/* Returns the length of the longest TOKEN_NORMAL. */
size_t vocabulary_longest(const vocabulary *v);
