/* SPDX-License-Identifier: Apache-2.0 */
/* found_words.h - the words of a text, in memory that is used again. */
#ifndef TOKMAP_FOUND_WORDS_H
#define TOKMAP_FOUND_WORDS_H

#include "tokenizer/split/splitter.h"

typedef struct found_words { /* starts as {0} */
    /* What the stages keep of the text: the caller's own bytes if they remove nothing. TEXT_PADDING
     * more bytes are readable. */
    const uint8_t *text;
    size_t n_bytes;
    uint64_t *starts; /* as of splitter_words() */
    uint8_t *kept;
    size_t starts_capacity, kept_capacity;
} found_words;

/* false: out of memory. */
bool found_words_find(found_words *w, const splitter *split, const uint8_t *text, size_t n_bytes);
void found_words_free(found_words *w);

#endif /* TOKMAP_FOUND_WORDS_H */
