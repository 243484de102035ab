/* char_words.h - where a text of characters can be cut into words that have nothing to do with each
 * other, because no piece of the vocabulary lies across.
 *
 * Characters are of few kinds; kinds may stay joined or not. Pure. */
#ifndef TOKMAP_CHAR_WORDS_H
#define TOKMAP_CHAR_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/simd.h"

#define CHAR_WORDS_MARK 0x2581u

typedef struct char_words {
    uint8_t kind[256];     /* one bit, by byte */
    uint8_t joins[256];    /* bits of the kinds that may not be cut off after this byte */
    bool spaces_are_marks; /* a blank stands for U+2581: so both are one kind */
} char_words;

/* All characters of a word apart: then joins are added. */
void char_words_init(char_words *w, bool spaces_are_marks);
/* These two are never to be cut between, nor others of their kinds. */
void char_words_join(char_words *w, uint32_t left, uint32_t right);
/* Cuts are left only before blanks, and there only if none of them was joined to what is before. */
void char_words_join_all_but_blanks(char_words *w);
void char_words_join_all(char_words *w);
/* The same for all neighbours in a piece. */
void char_words_join_piece(char_words *w, const uint8_t *piece, size_t n_bytes);
bool char_words_joined(const char_words *w, uint32_t left, uint32_t right);

/* A bitmap as split_words makes it (splitter.h), of text[0 .. n_bytes); it may look at the bytes of
 * text[n_bytes .. n_text). n_bytes > 0. */
void char_words_split(const char_words *w, simd_level e, const uint8_t *text, const size_t sizes[2],
                      uint64_t *starts);

#endif /* TOKMAP_CHAR_WORDS_H */
