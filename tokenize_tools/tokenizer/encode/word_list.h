/* SPDX-License-Identifier: Apache-2.0 */
/* word_list.h - the words of a text, in memory that is used again. */
#pragma once

#include "tokenizer/split/splitter.h"

/* Bits that are all 0 when a search begins. */
typedef struct word_bits {
    uint64_t *words;
    size_t capacity, n_used;
} word_bits;

typedef struct word_list { /* starts as {0} */
    /* What the stages keep of the text: the caller's own bytes if they remove nothing. TEXT_PADDING
     * more bytes are readable. */
    const uint8_t *text;
    size_t n_bytes;
    size_t n_taken;          /* how many bytes of the caller's text these are the words of */
    uint64_t *starts;        /* as splitter_words() gives them */
    const uint64_t *removed; /* bits of the bytes that are not kept, or NULL */
    word_bits all_starts, all_removed;
    uint8_t *kept;
    size_t kept_capacity;
} word_list;

/* Makes a list of a text whose starts the caller writes. false: out of memory. */
bool word_list_reserve(word_list *w, const uint8_t *text, size_t n_bytes);
/* Finds the words of a text, or of its beginning (`stop` of splitter_words()). false: out of
 * memory. */
bool word_list_find(word_list *w, const splitter *split, const uint8_t *text, size_t n_bytes,
                    size_t stop);
/* Returns how many of the first bytes of the caller's text are kept. */
size_t word_list_kept(const word_list *w, size_t n_first);
/* Takes the first words away, which have n_bytes in `text`. */
void word_list_skip(word_list *w, size_t n_bytes);
void word_list_free(word_list *w);
/* Frees what is larger than ARRAY_KEPT_BYTES; the words are gone. */
void word_list_free_large(word_list *w);
