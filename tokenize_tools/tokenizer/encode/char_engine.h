/* SPDX-License-Identifier: Apache-2.0 */
/* char_engine.h - the tokenizers over characters: sentencepiece's BPE and Unigram, and similar ones
 * in tokenizer.json. Normalizes text and cuts it into independent words, most of which were seen
 * before. Pure. */
#pragma once

#include "tokenizer/merge/unigram.h"
#include "tokenizer/model/id_buffer.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/encode/added_tokens.h"

typedef struct char_engine char_engine;
typedef struct char_scratch char_scratch; /* one for each thread */

/* Copies what it needs from the model. normalized: its added tokens that are searched for in
 * normalized text, with their contents normalized. NULL: err names what is not supported
 * exactly. */
char_engine *char_engine_new(const model *m, const model *normalized, failure *err);
void char_engine_free(char_engine *e);

/* Those that are searched for in normalized text, or NULL. */
const added_tokens *char_engine_added(const char_engine *e);
/* Whether it puts U+2581 before texts. */
bool char_engine_prefixes(const char_engine *e);

char_scratch *char_scratch_new(const char_engine *e, size_t cache_bytes, size_t chunk_bytes);
void char_scratch_free(char_scratch *s);

/* A text, or what added tokens leave of it. */
typedef struct stretch {
    text_span text;
    unsigned flags; /* of normalize_text */
    size_t n_first; /* the same, when it is normalized */
} stretch;

/* Normalizes the text, which afterwards is the original text or in the scratch. It must be UTF-8,
 * and TEXT_PADDING bytes after it must be readable. false: char_scratch_too_long, or out of
 * memory. */
bool char_scratch_normalize(char_scratch *s, stretch *t);
/* Whether the last text was refused because the normalizer makes too much of it. */
bool char_scratch_too_long(const char_scratch *s);
/* Appends the ids of normalized text between two added tokens. */
bool char_scratch_encode(char_scratch *s, stretch t, id_buffer *out);
