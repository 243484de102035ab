/* SPDX-License-Identifier: Apache-2.0 */
/* unigram_stream.h - encodes a sentence of Unigram word by word, with a cache of the ids of
 * words. */
#ifndef TOKMAP_UNIGRAM_STREAM_H
#define TOKMAP_UNIGRAM_STREAM_H

#include "tokenizer/chars/unigram.h"

typedef struct unigram_stream unigram_stream;

/* NULL: out of memory. */
unigram_stream *unigram_stream_new(const unigram *u, size_t cache_bytes);
void unigram_stream_free(unigram_stream *s);

/* Starts a new sentence; then come its parts, and its end. */
void unigram_stream_begin(unigram_stream *s);
/* Encodes a part that is one word, at text[0], without the cache. false: out of memory. */
bool unigram_stream_word(unigram_stream *s, const uint8_t *text, size_t n_bytes, id_buffer *out);
/* Encodes a part of many words; starts: from char_words_split. TEXT_PADDING bytes after it must be
 * readable. */
bool unigram_stream_words(unigram_stream *s, const uint8_t *text, size_t n_bytes,
                          const uint64_t *starts, id_buffer *out);
/* Appends the remaining ids. The sentence may continue, also in another stream that gets the
 * state. */
bool unigram_stream_end(unigram_stream *s, const uint8_t *end, id_buffer *out);
unigram_state *unigram_stream_state(unigram_stream *s);

#endif /* TOKMAP_UNIGRAM_STREAM_H */
