/* SPDX-License-Identifier: Apache-2.0 */
/* stages.h - which stages there are, and patterns, which are lists of stages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/expression.h"

/* The table of stages: the splits that a tokenizer applies one after the other. row(X, x) stands
 * for STAGE_X and for its definition stage_x, in a file pattern_*.c. */
/* clang-format off */
#define SPLIT_STAGES(row)                                                                          \
    row(GPT2, gpt2) row(BYTE_LEVEL, byte_level) row(CL100K, cl100k)                                \
    row(CL100K_ANY_DIGITS, cl100k_any_digits)                                                      \
    row(CL100K_08, cl100k_08) row(NANOCHAT, nanochat) row(QWEN2, qwen2) row(QWEN35, qwen35)        \
    row(SEED, seed) row(K2_HORIZON, k2_horizon) row(JAIS2, jais2) row(O200K, o200k)                \
    row(K_EXAONE, k_exaone)                                                                        \
    row(CL100K_TIKTOKEN, cl100k_tiktoken)                                                          \
    row(O200K_EACH_DIGIT, o200k_each_digit) row(TEKKEN, tekken) row(KIMI, kimi) row(BLOOM, bloom)  \
    row(DEEPSEEK, deepseek) row(SPARK, spark) row(NUMBERS, numbers) row(CJK, cjk)                  \
    row(OLD_CJK, old_cjk) row(YOUTU, youtu) row(NEWLINE, newline) row(LINES, lines)                \
    row(LAST_BLANKS, last_blanks) row(BLANK_LETTERS, blank_letters)                                \
    row(BLANK_PUNCTUATION, blank_punctuation) row(DEEPSEEK_LETTERS, deepseek_letters)              \
    row(DEEPSEEK_MARKS, deepseek_marks) row(DIGITS, digits) row(EACH_DIGIT, each_digit)            \
    row(THREE_DIGITS, three_digits) row(PUNCTUATION, punctuation)                                  \
    row(EACH_PUNCTUATION, each_punctuation) row(THOUSANDS, thousands)                              \
    row(THOUSANDS_ONLY, thousands_only) row(SUPERBPE, superbpe) row(WHITESPACE, whitespace)        \
    row(WHITESPACE_SPLIT, whitespace_split) row(BERT, bert) row(CLIP, clip)                     \
    row(CLIP_OLD, clip_old) row(MARKS, marks)
/* clang-format on */

#define SPLIT_ROW(X, x) STAGE_##X,
typedef enum split_stage_id {
    STAGE_NONE,
    SPLIT_STAGES(SPLIT_ROW) STAGE_N
} split_stage_id;
#undef SPLIT_ROW

/* The stages of a tokenizer, 8 bits each, the first one lowest. Each sees the pieces of the one
 * before as if they were texts. */
typedef uint64_t split_pattern;
enum {
    SPLIT_MAX_STAGES = 8,
    STAGE_OWN = 128 /* and more: those of the tokenizer's own list of expressions */
};

/* Whether a word begins where a match begins, and where it ends. */
typedef enum split_join {
    JOIN_NONE,     /* both: Isolated */
    JOIN_NEXT,     /* where it begins: MergedWithNext, and MergedWithPrevious with invert */
    JOIN_PREVIOUS, /* where it ends: the other way around */
    JOIN_MATCHES,  /* both, but not between two matches: Contiguous */
    JOIN_REMOVED,  /* both, and the match is not a word: Removed */
    JOIN_KEPT,     /* both, and only matches are words: Removed with invert */
    JOIN_BYTES     /* nowhere: later stages see a character for each byte (ByteLevel) */
} split_join;

typedef struct split_own {
    expression *expression;
    split_join join;
} split_own;
#define SPLIT_THEN(pattern, stage, place) ((pattern) | (split_pattern)(stage) << 8 * (place))
#define SPLIT_LIST(a, b, c, d)                                                                     \
    SPLIT_THEN(SPLIT_THEN(SPLIT_THEN((split_pattern)(a), b, 1), c, 2), d, 3)

#define SPLIT_NONE ((split_pattern)0) /* the text is one word */
#define SPLIT_DEEPSEEK3 SPLIT_LIST(STAGE_NUMBERS, STAGE_CJK, STAGE_DEEPSEEK, STAGE_NONE)
#define SPLIT_STARCODER SPLIT_LIST(STAGE_EACH_DIGIT, STAGE_GPT2, STAGE_NONE, STAGE_NONE)
#define SPLIT_UNKNOWN UINT64_MAX

static inline split_stage_id split_stage_at(split_pattern p, unsigned place)
{
    return place < SPLIT_MAX_STAGES ? (split_stage_id)(p >> 8 * place & 0xFF) : STAGE_NONE;
}

typedef struct splitter splitter;
