/* SPDX-License-Identifier: Apache-2.0 */
/* naive_splitter.h - finds words with the expressions of the stages, by a very simple backtracking
 * matcher, to compare with the splitter. That the expressions are those of public tokenizers is
 * tested by test_model_parts.c and test_splitter.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"

enum {
    NAIVE_SPLIT_BYTES = 1 << 13 /* of a text */
};

void naive_set_bit(uint64_t *bits, size_t i);
bool naive_has_bit(const uint64_t *bits, size_t i);
/* Like split_words, for the stages of splitter.h; at most NAIVE_SPLIT_BYTES. */
void naive_words(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);
