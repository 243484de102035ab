/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h - finds tokens by their bytes. */
#pragma once

#include "tokenizer/model/model.h"

typedef struct vocabulary vocabulary;

/* Indexes the tokens of m of this kind. Copies the bytes. NULL: out of memory, or too many tokens
 * have the same hash. */
vocabulary *vocabulary_new(const model *m, token_kind kind);
void vocabulary_free(vocabulary *v);
/* The id of the token with these bytes (the lowest, if several have them), or MODEL_NO_ID.
 * VOCABULARY_PADDING bytes after them must be readable. */
#define VOCABULARY_PADDING 16
uint32_t vocabulary_find(const vocabulary *v, const uint8_t *bytes, size_t n_bytes);
/* The same, without readable bytes after them. */
uint32_t vocabulary_find_text(const vocabulary *v, const void *text, size_t n_bytes);
/* The bytes of any token of the model, followed by VOCABULARY_PADDING. */
const uint8_t *vocabulary_bytes(const vocabulary *v, uint32_t id);
size_t vocabulary_longest(const vocabulary *v);
