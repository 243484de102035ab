/* SPDX-License-Identifier: Apache-2.0 */
/* expression_tree.h - the text of an expression as a tree, for expression.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/dialect.h"

enum {
    N_PAGES = 0x110000 >> 7,
    MAX_NODES = 8192,
    MAX_ALTERNATIVES = 1000,
    MAX_SETS = 64,
    MAX_BOUND = 4096, /* of a repeat */
    NO_LIMIT = UINT16_MAX
};

typedef enum node_kind {
    /* expressions */
    NOTHING,
    SET, /* one character of sets[a] */
    LOOK,
    THEN,
    OR,
    REPEAT, /* a, min to max times */
    /* sets of characters */
    RANGE, /* a to b */
    TABLE, /* of tables of Unicode: number a, classes b */
    UNION,
    BOTH,
    NOT
} node_kind;

typedef struct node {
    uint8_t kind;
    bool negated, end_too; /* LOOK: at the next character, or the end of the text */
    bool lazy, possessive; /* REPEAT */
    uint16_t min, max;
    uint32_t a, b;
} node;

enum {
    OF_CLASS,
    OF_WORD,
    OF_HF
};

typedef struct tree {
    const char *text;
    size_t n_bytes, at;
    expression_dialect dialect;
    expression_error *err;
    bool failed, any_case, dot_all, in_negated;
    bool keeps_flags; /* fancy-regex: flags of this group are valid after it, to the end of the next
                       * group with ?: around it. Refused */
    char letter; /* the character before, if it is one after (?i), in lower case; else a blank */
    unsigned n_alternatives, depth,
        half_letters; /* \p{Lm} and \p{Lo} are one class in our tables */
    uint32_t n_nodes, n_sets;
    node nodes[MAX_NODES]; /* 0 is NOTHING */
    uint32_t sets[MAX_SETS];
    bool page_is_cut[N_PAGES]; /* a range begins or ends in these 128 code points */
} tree;

/* Reads t->text; all else is zeros. Returns the root; t->failed: refused. */
uint32_t tree_parse(tree *t);
/* Refuses the expression. Returns 0. */
uint32_t tree_fail(tree *t, const char *what);
