/* charsmap.h - sentencepiece's precompiled rules for characters: a trie of what is replaced, and
 * the replacements. They come from the model file and are checked before anything is looked up.
 * Pure. */
#ifndef TOKMAP_CHARSMAP_H
#define TOKMAP_CHARSMAP_H

#include "tokenizer/chars/char_pairs.h"
#include "tokenizer/words/double_array.h"
#include "tokenizer/model/model.h"

typedef struct charsmap { /* starts as {0}, which replaces nothing */
    double_array rules;
    char *replacements;    /* each ends with NUL */
    size_t n_replacements; /* bytes */
    /* ASCII characters that stand for themselves when an ASCII character follows. */
    bool plain[128];
} charsmap;

bool charsmap_load(charsmap *c, const model_text *blob, model_error *err);
void charsmap_free(charsmap *c);

typedef struct replacement {
    const uint8_t *bytes;
    size_t n_bytes;
} replacement;

/* The longest rule that text begins with, as sentencepiece looks it up: its length, 0 if there is
 * none. */
size_t charsmap_longest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r);
/* The shortest one, as HuggingFace looks it up: NUL ends the text. */
bool charsmap_shortest(const charsmap *c, const uint8_t *text, size_t n_bytes, replacement *r);

/* Adds (CHAR_ANY, character) for each character that a rule goes on with: before the others, no
 * rule that began earlier is in the way. Adds every pair where a rule is not made of characters, or
 * where the rules, which are those of a damaged file then, would take too long. */
void charsmap_add_pairs(const charsmap *c, char_pairs *pairs);

#endif /* TOKMAP_CHARSMAP_H */
