/* SPDX-License-Identifier: Apache-2.0 */
/* split_words.h - splitter_words for a pattern: keeps the splitters. */
#pragma once

#include "tokenizer/split/splitter.h"

#define SPLIT_FALCON                                                                               \
    SPLIT_LIST(STAGE_PUNCTUATION, STAGE_BYTE_LEVEL, STAGE_DIGITS, STAGE_THREE_DIGITS)
#define SPLIT_AX_K2 SPLIT_LIST(STAGE_CJK, STAGE_QWEN2, STAGE_NONE, STAGE_NONE)
#define SPLIT_LAGUNA SPLIT_LIST(STAGE_LINES, STAGE_QWEN2, STAGE_NONE, STAGE_NONE)

/* The patterns of public tokenizers, by number; SPLIT_UNKNOWN after the last. */
split_pattern split_known(size_t i);
/* "gpt2", "deepseek3", ...; "several splits" if it is none of these. */
const char *split_pattern_name(split_pattern p);

/* The splitter of split_known(i). */
const splitter *split_kept(size_t i);

/* Clears `starts`, and does what splitter_words does. */
size_t split_window(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes, size_t stop,
                    uint64_t *starts);
/* The same as split_window, but takes the whole text. */
void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts);
