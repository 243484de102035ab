/* SPDX-License-Identifier: Apache-2.0 */
/* word_engine.h - the tokenizers that split text into words by a pattern and encode each word
 * alone; most words were seen before. Pure. */
#pragma once

#include "tokenizer/model/id_buffer.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/text_buffer.h"

typedef struct word_engine word_engine;
typedef struct word_scratch word_scratch; /* one for each thread */

/* Copies what it needs from the model. NULL: err says what is missing or not supported. */
word_engine *word_engine_new(const model *m, failure *err);
void word_engine_free(word_engine *e);
/* Whether it encodes every byte. */
bool word_engine_takes_bytes(const word_engine *e);

word_scratch *word_scratch_new(const word_engine *e, size_t cache_bytes, size_t chunk_bytes);
void word_scratch_free(word_scratch *s);
/* Appends the ids of a text with TEXT_PADDING readable bytes after it. n_first: of normalize_text.
 * The text has at most NORMALIZE_MAX_BYTES. false: out of memory. */
bool word_scratch_encode(word_scratch *s, text_span text, size_t n_first, id_buffer *out);
