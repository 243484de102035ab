/* known_regex.h - the regular expressions of tokenizer files that a splitter is the twin of.
 *
 * A text is known when it matches the same words as the splitter on every text, with the engine of
 * tokenizers (Oniguruma) and with that of tiktoken. Nothing is guessed from parts of it. */
#ifndef TOKMAP_KNOWN_REGEX_H
#define TOKMAP_KNOWN_REGEX_H

#include <stddef.h>

#include "tokenizer/split/splitter.h"

typedef enum known_regex {
    REGEX_UNKNOWN,
    /* Whole patterns: every character is in some word. */
    REGEX_GPT2,
    REGEX_CL100K,
    REGEX_QWEN2,
    REGEX_QWEN35,
    REGEX_O200K,
    REGEX_TEKKEN,
    /* Stages of a sequence. */
    REGEX_NUMBERS, /* DeepSeek V3: \p{N}{1,3} */
    REGEX_CJK,     /* [一-龥぀-ゟ゠-ヿ]+ */
    REGEX_DEEPSEEK_WORDS,
    REGEX_DIGITS /* Falcon: [0-9][0-9][0-9] */
} known_regex;

known_regex known_regex_find(const char *text, size_t n_bytes);
/* SPLIT_N_PATTERNS for a stage. */
split_pattern known_regex_split(known_regex regex);

#endif /* TOKMAP_KNOWN_REGEX_H */
