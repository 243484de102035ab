/* SPDX-License-Identifier: Apache-2.0 */
/* expression.h - regular expressions as automata: how stages without code of their own find words.
 *
 * An expression matches as a backtracking engine does: at a place the first alternative that fits
 * wins, and repeats are greedy unless marked. The automaton is complete after expression_new and
 * never changes. It reads each character once, with one character of look-ahead. What cannot be
 * matched exactly and in linear time is refused: look-ahead of several characters, look-behind, \b,
 * backreferences, atomic groups, matches of nothing. */
#pragma once

#include <stddef.h>

#include "tokenizer/split/dialect.h"

typedef struct expression expression;
typedef struct text_cursor text_cursor; /* text_cursor.h */

/* Compiles an expression. NULL: refused, or out of memory. */
expression *expression_new(const char *text, size_t n_bytes, expression_dialect dialect,
                           expression_error *err);
/* Returns x, which then has to be freed once more. Not while another thread shares or frees it. */
expression *expression_share(expression *x);
void expression_free(expression *x);

/* Whether a match begins at every character of every text in UTF-8; -1: out of memory. */
int expression_matches_everywhere(const expression *x);

/* Returns the first byte from i on where a match may begin; n_bytes or more: there is none. */
size_t expression_next(const expression *x, const text_cursor *v, size_t i);
/* Returns the end of the match that begins at byte `start` of the piece; 0: there is none. The
 * cursor remembers long vain searches. */
size_t expression_match(const expression *x, text_cursor *v, size_t start);
