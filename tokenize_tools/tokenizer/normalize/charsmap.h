/* SPDX-License-Identifier: Apache-2.0 */
/* charsmap.h - sentencepiece's precompiled rules for characters: a trie of what is replaced, and
 * the replacements. They come from the model file and are checked before any lookup. Pure. */
#pragma once

#include "tokenizer/model/double_array.h"
#include "tokenizer/model/model.h"

typedef struct charsmap { /* starts as {0}, which replaces nothing */
    double_array rules;
    char *replacements;    /* each ends with NUL */
    size_t n_replacements; /* bytes */
    /* ASCII characters that stay unchanged before an ASCII character; so do U+0020 to U+007E. */
    bool plain[128], regular;
} charsmap;

bool charsmap_load(charsmap *c, const model_text *blob, failure *err);
void charsmap_free(charsmap *c);

typedef struct replacement {
    const uint8_t *bytes;
    size_t n_bytes;
} replacement;

/* Returns the longest rule that text begins with, as in sentencepiece. Returns its length, or 0. */
size_t charsmap_longest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r);
/* Returns the shortest one, as in HuggingFace: NUL ends the text. */
bool charsmap_shortest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r);
