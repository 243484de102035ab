/* pattern.h - what a pattern consists of: the expressions that it stands for, a scalar function
 * that defines its words, and vector functions that find the same words faster. */
#ifndef TOKMAP_SPLIT_PATTERN_H
#define TOKMAP_SPLIT_PATTERN_H

#include "tokenizer/split/splitter.h"

/* One pre-tokenizer of a tokenizer.json; several are applied in sequence. */
typedef enum split_stage_kind {
    STAGE_NONE,
    STAGE_REGEX,       /* Split, with a regular expression */
    STAGE_BYTE_LEVEL,  /* ByteLevel with use_regex: GPT-2's expression, then bytes as characters */
    STAGE_DIGITS,      /* Digits: runs of numeric characters */
    STAGE_EACH_DIGIT,  /* Digits with individual_digits */
    STAGE_PUNCTUATION, /* Punctuation, Contiguous */
    STAGE_WHITESPACE,
    STAGE_WHITESPACE_SPLIT,
    STAGE_BERT /* BertPreTokenizer */
} split_stage_kind;

enum {
    SPLIT_MAX_ALTERNATIVES = 8,
    SPLIT_MAX_STAGES = 4,
    SPLIT_MAX_REGEX_BYTES = 512
};

/* An expression is a list of alternatives in a fixed order. Each alternative is a list of
 * spellings, separated by spaces (a space in a spelling is written \x20). All spellings of an
 * alternative must match the same text at every place, both in Oniguruma, which tokenizers uses,
 * and in the engine of tiktoken. */
typedef struct split_stage {
    split_stage_kind kind;
    const char *alternatives[SPLIT_MAX_ALTERNATIVES]; /* of STAGE_REGEX; ended by NULL */
} split_stage;

/* Where `\s+(?!\S)` fails there is a single blank, so `\s` is the same as `\s+` there. */
#define REGEX_BLANKS "\\s+(?!\\S)|\\s+ \\s+(?!\\S)|\\s"

typedef struct view view; /* see splitter_scalar.h */

/* Does the work of split_words. The processor must have the instructions. */
typedef void split_walker(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts);

typedef struct split_definition {
    const char *name;
    /* Each is Isolated: text that it does not match is kept. If there is only one stage, it matches
     * every character. If none of them is STAGE_BYTE_LEVEL, a tokenizer.json ends with a ByteLevel
     * without use_regex. */
    split_stage stages[SPLIT_MAX_STAGES + 1]; /* ended by STAGE_NONE */
    bool drops_blanks;                        /* see split_drops_blanks */
    unsigned crosses;                         /* places of text_cut.h that its words cross */
    /* The end of the word that starts at `start`. Depends only on the text from there on. */
    size_t (*word_end)(view *v, size_t start);
    /* Splits [start, end), a word of word_end, at bytes: sets the bits in starts. NULL: it is one
     * word. */
    void (*split_word)(const view *v, size_t start, size_t end, uint64_t *starts);
    split_walker *avx2, *avx512; /* NULL: the scalar function is used */
} split_definition;

extern const split_definition *const split_definitions[SPLIT_N_PATTERNS];

#endif /* TOKMAP_SPLIT_PATTERN_H */
