/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - what a pattern consists of: stages. A stage has the expressions that it stands for
 * or a scalar function that defines its words; algebra over masks finds the same words faster. */
#pragma once

#include "base/simd.h"
#include "tokenizer/split/expression.h"
#include "tokenizer/split/stages.h"

enum {
    SPLIT_MAX_ALTERNATIVES = 16,
    SPLIT_ALL = SPLIT_MAX_STAGES /* all stages at once */
};

/* Where `\s+(?!\S)` fails there is a single blank, so `\s` is the same as `\s+` there. */
#define REGEX_BLANKS "\\s+(?!\\S)|\\s+ \\s+(?!\\S)|\\s"

struct carry;
struct block;
struct pieces;
/* Finds the words of a stage in a block of 64 bytes (splitter_blocks.h). */
typedef uint64_t split_algebra(struct carry *c, const struct block *b, const struct block *next,
                               const struct pieces *p);

/* Finds the words of a stage, or of all if it is SPLIT_ALL. The bits of the stages before are set,
 * and that of byte 0. n_bytes > 0. The processor must have the instructions. From byte `stop` on it
 * may end at the start of a word, whose bit it clears. Returns where it ended. */
typedef size_t split_scanner(const splitter *s, unsigned stage, const uint8_t *text, size_t n_bytes,
                             size_t stop, uint64_t *starts);
typedef struct split_scanners {
    split_scanner *of[SIMD_BLOCKS + 1]; /* by level; NULL: none for this level or platform */
} split_scanners;
extern const split_scanners any_scanners; /* for any stage that has `words` */

typedef struct split_stage {
    /* Ended by NULL: an expression is a list of alternatives in a fixed order. Each alternative is
     * a list of spellings, separated by spaces (a space in a spelling is written \x20). All
     * spellings of an alternative must match the same text at every place. */
    const char *alternatives[SPLIT_MAX_ALTERNATIVES];
    bool everything; /* every character belongs to a match; matches do not depend on the text
                         before */
    split_join join;
    bool
        drops_blanks; /* see split_drops_blanks. With `everything`, a blank may be left at the start
                          of a word; without, what it does not match is dropped */
    expression_dialect dialect;
    /* The end of the match at `start`, which may be empty; 0: none. NULL: the first spellings of
     * the alternatives say it. */
    size_t (*match)(text_cursor *v, size_t start);
    const char *begins;   /* of `match`: the characters that a match may begin with. NULL: where it
                             finds nothing, the alternatives after the first are tried */
    split_algebra *words; /* the same faster; NULL: there is none */
    unsigned wanted;      /* what it needs of a block, WANT_... */
    const struct family *family;
    const split_scanners *scanners; /* the same faster still, as the first stage; or NULL */
} split_stage;

extern const split_stage *const split_stages[STAGE_N];

struct splitter {
    split_pattern pattern;
    bool drops_blanks, removes;
    const split_scanners *scanners; /* all stages at once, which is faster; or NULL */
    unsigned n_stages;
    const split_stage *stages[SPLIT_MAX_STAGES];
    expression *expressions[SPLIT_MAX_STAGES]; /* of what the stage's `match` does not say */
    split_join joins[SPLIT_MAX_STAGES];
};
