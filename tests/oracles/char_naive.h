/* SPDX-License-Identifier: Apache-2.0 */
/* char_naive.h - the tokenizers over characters, implemented directly from their definitions; and
 * small random models and texts to compare the fast ones with. Texts here are normalized: they
 * contain U+2581 itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/model/model.h"

#define NAIVE_MAX_BYTES 4096 /* of a text */
#define NAIVE_MARK "\xE2\x96\x81"

typedef struct naive_ids {
    uint32_t ids[3 * NAIVE_MAX_BYTES];
    size_t n;
} naive_ids;

size_t naive_char(const uint8_t *at);

/* ---- sentencepiece's BPE ---- */

void naive_scored_bpe(const model *m, const uint8_t *text, size_t n, naive_ids *out);

/* ---- The BPE of tokenizer.json ---- */

void naive_listed_bpe(const model *m, const uint8_t *text, size_t n, naive_ids *out);

/* ---- Unigram ---- */

void naive_unigram(const model *m, bool sentencepiece, const uint8_t *text, size_t n_bytes,
                   naive_ids *out);

/* ---- Random models and texts ---- */

uint32_t naive_any(uint32_t n);

enum {
    NAIVE_LETTERS = 14,
    NAIVE_STRANGERS = 7
};
extern const char *const naive_alphabet[NAIVE_LETTERS];
/* What models have no token for. */
extern const char *const naive_strangers[NAIVE_STRANGERS];
#define NAIVE_N(array) (sizeof(array) / sizeof *(array))

/* Appends up to n characters of the first n_kinds of the alphabet. */
void naive_letters(char *to, size_t n, size_t n_kinds);
bool naive_add(model *m, const char *bytes, token_kind kind, double score);
/* If a token of these kinds (1 << TOKEN_...) is the two together. */
void naive_add_merge(model *m, unsigned kinds, uint32_t left, uint32_t right);
void naive_add_bytes(model *m);
/* Makes pieces of characters and of other pieces; scores have few bits, so that sums tie. */
void naive_add_pieces(model *m, size_t n, size_t n_kinds, double grain);
/* Makes a text of at most NAIVE_MAX_BYTES / 2: few characters, runs, unknown characters. */
size_t naive_text(char *text, size_t n_kinds);
/* The text with U+2581 for blanks. */
size_t naive_marked(const char *text, size_t n, char *out);
