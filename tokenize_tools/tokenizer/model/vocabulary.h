/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h - finds tokens by their bytes. */
#pragma once

#include "tokenizer/model/model.h"

typedef struct vocabulary vocabulary;

/* Indexes the tokens of m that are TOKEN_NORMAL. NULL: out of memory, or too many tokens have the
 * same hash. */
vocabulary *vocabulary_new(const model *m);
void vocabulary_free(vocabulary *v);
/* The id of the token with these bytes (the lowest, if several have them), or MODEL_NO_ID.
 * MODEL_PADDING bytes after them must be readable. */
uint32_t vocabulary_find(const vocabulary *v, const uint8_t *bytes, size_t n_bytes);
size_t vocabulary_longest(const vocabulary *v);
