/* splitter.h - where words (pre-tokens) start, for every known pattern.
 *
 * Each pattern does what a regular expression of public tokenizers does, in hand-written code. The
 * result is a bitmap: bit i % 64 of starts[i / 64] is set if a word starts at byte i. A word always
 * starts at byte 0. Every byte belongs to a word: text that the expression does not match is a word
 * too ("isolated"). A byte that is not UTF-8 counts as a character of CLASS_OTHER. Words are whole
 * characters, except with falcon, which also splits between bytes. Pure. */
#ifndef TOKMAP_SPLITTER_H
#define TOKMAP_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/simd.h"

/* Vector loads may read this many bytes after the text; their values do not matter. */
#define TEXT_PADDING 64

/* The table of patterns. row(X, x) stands for SPLIT_X and for its definition split_x, in a file
 * pattern_*.c. */
#define SPLIT_PATTERNS(row)                                                                        \
    row(GPT2, gpt2) row(CL100K, cl100k) row(O200K, o200k) row(QWEN2, qwen2) row(QWEN35, qwen35)    \
        row(TEKKEN, tekken) row(DEEPSEEK3, deepseek3) row(FALCON, falcon)                          \
            row(STARCODER, starcoder) row(WHITESPACE, whitespace)                                  \
                row(WHITESPACE_SPLIT, whitespace_split) row(BERT, bert)

#define SPLIT_ROW(X, x) SPLIT_##X,
typedef enum split_pattern {
    SPLIT_NONE, /* the text is one word */
    SPLIT_PATTERNS(SPLIT_ROW) SPLIT_N_PATTERNS
} split_pattern;
#undef SPLIT_ROW

/* "gpt2", "cl100k", ... for messages; NULL: there is no such pattern. */
const char *split_pattern_name(split_pattern p);

/* Whether blanks are not part of the words that are encoded: a word of blanks is removed, and so
 * are the blanks that a word begins with. */
bool split_drops_blanks(split_pattern p);
size_t split_leading_blanks(const uint8_t *word, size_t n_bytes);

/* The places of text_cut.h where a word always starts. */
unsigned split_cuts(split_pattern p);

/* starts has room for n_bytes / 64 + 1 words; bits from n_bytes on are 0. text has TEXT_PADDING
 * readable bytes after n_bytes. */
void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts);

#endif /* TOKMAP_SPLITTER_H */
