/* SPDX-License-Identifier: Apache-2.0 */
/* char_words.h - cuts a text of characters into independent words: where no piece of the vocabulary
 * crosses.
 *
 * Characters are of a few kinds; pairs of kinds may be joined or not. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

#define CHAR_WORDS_MARK 0x2581u

typedef struct char_words {
    uint8_t kind[256];     /* one bit, by byte */
    uint8_t joins[256];    /* kinds that must not be cut off after this byte */
    bool spaces_are_marks; /* a blank stands for U+2581, so both are one kind */
} char_words;

/* Starts with nothing joined; joins are then added. */
void char_words_init(char_words *w, bool spaces_are_marks);
/* Forbids cuts between these two characters, and between others of their kinds. */
void char_words_join(char_words *w, uint32_t left, uint32_t right);
/* Leaves cuts only before blanks, and only if no blank was joined to the character before. */
void char_words_join_all_but_blanks(char_words *w);
void char_words_join_all(char_words *w);
/* Joins all neighbours in a piece. */
void char_words_join_piece(char_words *w, const uint8_t *piece, size_t n_bytes);
bool char_words_joined(const char_words *w, uint32_t left, uint32_t right);

/* Makes a bitmap of word starts in text[0 .. n_bytes), as splitter_words (splitter.h); it may read
 * text[n_bytes .. n_text). n_bytes > 0. */
void char_words_split(const char_words *w, simd_level e, const uint8_t *text, const size_t sizes[2],
                      uint64_t *starts);
