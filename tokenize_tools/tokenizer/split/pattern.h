/* pattern.h - what a pattern is made of: the expressions that it stands for, a scalar splitter,
 * which is the definition, and vector engines, which find the same words faster. */
#ifndef TOKMAP_SPLIT_PATTERN_H
#define TOKMAP_SPLIT_PATTERN_H

#include "tokenizer/split/splitter.h"

/* One of the splits in sequence that a tokenizer.json states, by component. */
typedef enum split_stage_kind {
    STAGE_NONE,
    STAGE_REGEX,      /* Split, with a regular expression */
    STAGE_BYTE_LEVEL, /* ByteLevel with use_regex: GPT-2's expression, then bytes as characters */
    STAGE_DIGITS,     /* Digits: runs of numeric characters */
    STAGE_EACH_DIGIT, /* Digits with individual_digits */
    STAGE_PUNCTUATION /* Punctuation, Contiguous */
} split_stage_kind;

enum {
    SPLIT_MAX_ALTERNATIVES = 8,
    SPLIT_MAX_STAGES = 4,
    SPLIT_MAX_REGEX_BYTES = 512
};

/* An expression is a list of alternatives, and what matters is their order and what each of them
 * matches. So each alternative has one or several spellings that match the same at every place,
 * separated by spaces that are not part of them: a space itself is written \x20 here. Spellings
 * must match the same words with the engine of tokenizers (Oniguruma) and with that of tiktoken. */
typedef struct split_stage {
    split_stage_kind kind;
    const char *alternatives[SPLIT_MAX_ALTERNATIVES]; /* of STAGE_REGEX; ended by NULL */
} split_stage;

/* After `\s+(?!\S)` has failed a single blank is left, so `\s` is `\s+`. */
#define REGEX_BLANKS "\\s+(?!\\S)|\\s+ \\s+(?!\\S)|\\s"

typedef struct view view; /* see splitter_scalar.h */

/* All words of a text, as split_words. The processor must have the instructions. */
typedef void split_walker(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);

typedef struct split_definition {
    const char *name;
    /* A single stage has to match every character. Where ByteLevel is none of the stages it comes
     * after them, without an expression. */
    split_stage stages[SPLIT_MAX_STAGES + 1]; /* ended by STAGE_NONE */
    /* Where the word that starts at `start` ends. Depends only on what follows. */
    size_t (*word_end)(view *v, size_t start);
    /* Splits a word of word_end further, at bytes: sets the bits of [start, end). NULL: it is one
     * word. */
    void (*split_word)(const view *v, size_t start, size_t end, uint64_t *starts);
    split_walker *avx2, *avx512; /* NULL: there is none, and the pattern is slow */
} split_definition;

extern const split_definition *const split_definitions[SPLIT_N_PATTERNS];

#endif /* TOKMAP_SPLIT_PATTERN_H */
