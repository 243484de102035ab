/* SPDX-License-Identifier: Apache-2.0 */
/* word_steps.h - encodes a word that is not in the cache, with all that a tokenizer does to it
 * first. */
#pragma once

#include "tokenizer/encode/text_rules.h"
#include "tokenizer/encode/word_list.h"

typedef struct word_steps { /* starts as {0}; one for each thread */
    const text_rules *rules;
    word_workspace work;
    struct {
        text_buffer text;
        word_list words;
    } steps[MAX_PIECE_STEPS]; /* what each step makes of a word */
    text_buffer prefixed;     /* a piece with U+2581 before it */
    word_list pieces;
} word_steps;

void word_steps_free(word_steps *s);
/* Frees what is larger than ARRAY_KEPT_BYTES. */
void word_steps_free_large(word_steps *s);

/* Appends the ids of a word. context: a word_steps. false: out of memory. */
bool word_steps_encode(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out);
/* The same as word_steps_encode, but the first n_first bytes of the word, which is one of a
 * pattern, come from the first character of the text. */
bool word_steps_encode_first(word_steps *s, text_span word, size_t n_first, id_buffer *out);
