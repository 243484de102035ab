/* splitter.h - where words (pre-tokens) begin, for every pattern that is known.
 *
 * Each is a hand-written twin of a regular expression that public tokenizers use. The answer is a
 * bitmap: bit i % 64 of starts[i / 64] is set when a word starts at byte i. Byte 0 always starts
 * one. Every byte belongs to a word: stretches that the expression does not match are words too
 * ("isolated"). A byte that is not UTF-8 counts as a character of CLASS_OTHER. Words are whole
 * characters, save Falcon's, which splits bytes as well. Pure. */
#ifndef TOKMAP_SPLITTER_H
#define TOKMAP_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/simd.h"

/* Bytes after the text that vector loads may read; their values do not matter. */
#define TEXT_PADDING 64

typedef enum split_pattern {
    SPLIT_NONE,      /* the text is one word */
    SPLIT_GPT2,      /* GPT-2, r50k, p50k, GPT-NeoX, Phi-2, ByteLevel with use_regex */
    SPLIT_CL100K,    /* cl100k, Llama 3, OLMo 2, Phi-4 */
    SPLIT_O200K,     /* o200k, harmony, Llama 4 */
    SPLIT_QWEN2,     /* cl100k with single digits: Qwen 2 to 3 */
    SPLIT_QWEN35,    /* qwen2 with marks as letters */
    SPLIT_TEKKEN,    /* o200k without contractions, single digits */
    SPLIT_DEEPSEEK3, /* three splits in sequence: DeepSeek V3, R1 */
    SPLIT_FALCON,    /* Punctuation, GPT-2, Digits, [0-9][0-9][0-9] in sequence */
    SPLIT_STARCODER, /* each \p{N} alone, then GPT-2: StarCoder, SmolLM */
    SPLIT_N_PATTERNS
} split_pattern;

/* "gpt2", "cl100k", ...; for --pattern and messages. NULL, SPLIT_N_PATTERNS if there is none. */
const char *split_pattern_name(split_pattern p);

/* starts has room for n_bytes / 64 + 1 words; bits from n_bytes on are 0. text has TEXT_PADDING
 * readable bytes after n_bytes. */
void split_words(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                 uint64_t *starts);

#endif /* TOKMAP_SPLITTER_H */
