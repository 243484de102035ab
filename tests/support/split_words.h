/* SPDX-License-Identifier: Apache-2.0 */
/* split_words.h - splitter_words for a pattern: keeps the splitters. */
#ifndef TOKMAP_TEST_SPLIT_WORDS_H
#define TOKMAP_TEST_SPLIT_WORDS_H

#include "tokenizer/split/splitter.h"

void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts);

/* split_cuts(), and those that the automaton of a single stage has. */
unsigned cuts_of(split_pattern p);

#endif /* TOKMAP_TEST_SPLIT_WORDS_H */
