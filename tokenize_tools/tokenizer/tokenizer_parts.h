/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_parts.h - what tokenizer.c and encoder.c share. */
#ifndef TOKMAP_TOKENIZER_PARTS_H
#define TOKMAP_TOKENIZER_PARTS_H

#include "tokenizer/words/added_tokens.h"
#include "tokenizer/chars/char_decode.h"
#include "tokenizer/chars/char_engine.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_engine.h"
#include "tokenizer/bytes/vocabulary.h"

struct tokenizer {
    bool builtin; /* the built-in `bytes`; else one of these: */
    word_engine *words;
    char_engine *chars;
    char_decoder *decoder;  /* NULL: that of `chars`, or the bytes of the tokens */
    normalizer *normalizer; /* before `words`; or NULL */
    bool prefix_space;      /* the same */

    added_tokens *raw, *normalized;
    unsigned cuts; /* text_cut.h; for `words` */
    bool in_order;
    model_token *tokens;
    size_t n_tokens;
    uint8_t *token_bytes;
    vocabulary *normal, *control;
    uint32_t bos_id, eos_id, eos_rival;
    bool eos_guessed;
    bool decodes;
    const char *family;
    const char *unicode; /* or NULL */
};

#endif /* TOKMAP_TOKENIZER_PARTS_H */
