/* SPDX-License-Identifier: Apache-2.0 */
/* dialect.h - how an expression is written, and why it is refused. */
#pragma once

typedef enum expression_dialect {
    EXPRESSION_RUBY, /* Oniguruma with the syntax of Ruby: tokenizer.json */
    EXPRESSION_RUST, /* fancy-regex: tiktoken */
    EXPRESSION_OWN,  /* EXPRESSION_RUST with \p{HfNumber} and \p{HfPunctuation} (unicode.h) */
    EXPRESSION_TEXT  /* a text, whose characters stand for themselves */
} expression_dialect;

typedef struct expression_error {
    char why[96]; /* "a look-behind at byte 7"; empty: out of memory */
} expression_error;
