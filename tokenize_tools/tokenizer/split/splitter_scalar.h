/* splitter_scalar.h - the truth about words: one word after the other, one character at a time. */
#ifndef TOKMAP_SPLITTER_SCALAR_H
#define TOKMAP_SPLITTER_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"

/* Where the word that starts at `start` ends; start < n_bytes is the start of a word. Depends only
 * on what follows start, so that one may begin at any word. Falcon's words are those before its
 * passes over bytes. */
size_t split_word_end(split_pattern p, const uint8_t *text, size_t n_bytes, size_t start);

/* As split_words. */
void split_words_scalar(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);

/* The length of the contraction that begins with the apostrophe text[0]: 's 't 'm 'd 're 've 'll;
 * or 0. any_case also takes U+017F, the long s, for an s. */
static inline size_t split_contraction(const uint8_t *text, size_t n_bytes, bool any_case)
{
    if (n_bytes < 2)
        return 0;
    uint8_t fold = any_case ? 0x20 : 0; /* makes one of these letters only of a letter */
    uint8_t first = text[1] | fold, second = n_bytes < 3 ? 0 : text[2] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 2;
    if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l'))
        return 3;
    return any_case && n_bytes >= 3 && text[1] == 0xC5 && text[2] == 0xBF ? 3 : 0;
}

#endif /* TOKMAP_SPLITTER_SCALAR_H */
