/* SPDX-License-Identifier: Apache-2.0 */
/* long_words.h - the part of the word cache for words of more than 15 bytes. */
#ifndef TOKMAP_LONG_WORDS_H
#define TOKMAP_LONG_WORDS_H

#include "tokenizer/words/word_cache.h"

typedef struct long_words long_words;

long_words *long_words_new(size_t max_bytes);
void long_words_free(long_words *w);
/* Appends the ids of the word, from the table or else the source; false: out of memory. */
bool long_words_encode(long_words *w, const uint8_t *word, size_t n_bytes,
                       const word_source *source, id_buffer *out);

#endif /* TOKMAP_LONG_WORDS_H */
