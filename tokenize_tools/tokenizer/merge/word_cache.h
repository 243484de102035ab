/* SPDX-License-Identifier: Apache-2.0 */
/* word_cache.h - caches the ids of words; most words of a text were seen before.
 *
 * Words of at most 15 bytes are their own keys, two to a cache line. The result never depends on
 * the contents of the cache, which is bounded: a word that finds no free place near its own
 * replaces another one. What holds long words, or the ids of words that have many, is emptied when
 * it is full. */
#pragma once

#include "base/simd.h"
#include "tokenizer/model/id_buffer.h"

#define WORD_CACHE_MAX_ID (((uint32_t)1 << 21) - 1)

typedef struct word_cache word_cache;

/* Appends the ids of a word that is not in the cache; false: out of memory. */
typedef struct word_source {
    bool (*encode)(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out);
    void *context;
} word_source;

/* Makes a cache of at most max_bytes. NULL: out of memory. */
word_cache *word_cache_new(size_t max_bytes, word_source source, simd_level level);
void word_cache_free(word_cache *c);

/* Appends the ids of all words of a text of less than 4 GiB, with TEXT_PADDING readable bytes after
 * it. starts: from splitter_words. false: out of memory. */
bool word_cache_encode(word_cache *c, const uint8_t *text, size_t n_bytes, const uint64_t *starts,
                       id_buffer *out);
