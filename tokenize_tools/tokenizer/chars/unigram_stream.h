/* unigram_stream.h - a sentence of Unigram, word by word, with the ids of words that were seen
 * before. */
#ifndef TOKMAP_UNIGRAM_STREAM_H
#define TOKMAP_UNIGRAM_STREAM_H

#include "tokenizer/chars/unigram.h"

typedef struct unigram_stream unigram_stream;

/* NULL: out of memory. */
unigram_stream *unigram_stream_new(const unigram *u, size_t cache_bytes);
void unigram_stream_free(unigram_stream *s);

/* A new sentence begins; then its parts one after the other, and its end. */
void unigram_stream_begin(unigram_stream *s);
/* A part that is one word, at text[0]; not looked up. false: out of memory. */
bool unigram_stream_word(unigram_stream *s, const uint8_t *text, size_t n_bytes, id_buffer *out);
/* A part of many words: starts as char_words_split gives it. TEXT_PADDING bytes after it are
 * readable. */
bool unigram_stream_words(unigram_stream *s, const uint8_t *text, size_t n_bytes,
                          const uint64_t *starts, id_buffer *out);
/* What is still to come; the sentence may go on, in another stream too if it gets the state. */
bool unigram_stream_end(unigram_stream *s, const uint8_t *end, id_buffer *out);
unigram_state *unigram_stream_state(unigram_stream *s);

#endif /* TOKMAP_UNIGRAM_STREAM_H */
