/* SPDX-License-Identifier: Apache-2.0 */
/* model_load.h - reads tokenizer files of every kind into a model, or refuses them and names the
 * part that is not supported. Pure. */
#pragma once

#include "tokenizer/model/model.h"

/* The contents of a file, of the files beside it, and of the command line. */
typedef struct model_source {
    const uint8_t *data;
    size_t n_bytes;
    const uint8_t *merges; /* vocab.json: the merges.txt beside it, or NULL */
    size_t merges_bytes;
    const uint8_t *specials; /* --specials-file: JSON, {"content": id} or {"id": "content"} */
    size_t specials_bytes;
    const char *pattern; /* --pattern, or NULL */
} model_source;

/* Recognizes the kind of the file by its content, loads it, and adds presets and specials. m is
 * initialised; the caller frees it, also after a failure. */
bool model_load(model *m, const model_source *source, failure *err);
/* Returns the steps of model_load: one of these, then model_finish. */
bool load_hf_json(model *m, const model_source *source, failure *err);
bool load_tiktoken(model *m, const model_source *source, failure *err);
bool load_sentencepiece(model *m, const model_source *source, failure *err);
bool load_tekken(model *m, const model_source *source, failure *err);
bool load_vocab_merges(model *m, const model_source *source, failure *err);
/* Adds the tokens of --specials-file, in place of added tokens with the same content or id; makes a
 * TOKEN_CONTROL of each added token whose id is free; checks bos_id and eos_id. Without an eos_id,
 * the first of these that is a special added token becomes it, and the second eos_rival:
 * <|endoftext|> <|end_of_text|> </s> <eos> <｜end▁of▁sentence｜> <|im_end|> [EOS]. Two added tokens
 * may have the same id. */
bool model_finish(model *m, const model_source *source, failure *err);
