/* SPDX-License-Identifier: Apache-2.0 */
/* char_decode.h - decodes ids, for the tokenizers over characters. */
#pragma once

#include "tokenizer/model/model.h"

typedef struct char_decoder char_decoder;

/* Makes a decoder. NULL: out of memory. */
char_decoder *char_decoder_new(const model *m);
/* Decodes the token to this text. false: out of memory. */
bool char_decoder_set_text(char_decoder *d, uint32_t id, const model_text *text);
void char_decoder_free(char_decoder *d);
/* Sets a malloced text; skips ids that do not exist. false: out of memory. */
bool char_decode(const char_decoder *d, const uint32_t *ids, size_t n_ids, model_text *text);
