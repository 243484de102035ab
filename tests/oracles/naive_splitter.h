/* SPDX-License-Identifier: Apache-2.0 */
/* naive_splitter.h - finds words with the regular expressions themselves, by a very simple
 * backtracking matcher, to compare with the splitter. It knows alternatives, (?i:...) and (?:...),
 * (?!x), classes, \s \S \r \n \p{..}, ? * + {1,3}. */
#ifndef TOKMAP_NAIVE_SPLITTER_H
#define TOKMAP_NAIVE_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"

enum {
    NAIVE_MAX_BYTES = 1 << 13, /* of a text */
    NAIVE_MAX_SPLITS = 6       /* of a text */
};

/* Splits in sequence, first those of the text, then those of GPT-2's characters for its bytes. */
typedef struct naive_pattern {
    split_pattern pattern;
    const char *of_text[NAIVE_MAX_SPLITS], *of_bytes[2];
    bool merges_next; /* the first one: MergedWithNext */
} naive_pattern;
extern const naive_pattern naive_patterns[];
extern const int naive_n_patterns;

void naive_set_bit(uint64_t *bits, size_t i);
bool naive_has_bit(const uint64_t *bits, size_t i);
/* Like split_words, with naive_patterns[pattern]; at most NAIVE_MAX_BYTES. */
void naive_words(int pattern, const uint8_t *text, size_t n_bytes, uint64_t *starts);

#endif /* TOKMAP_NAIVE_SPLITTER_H */
