/* SPDX-License-Identifier: Apache-2.0 */
/* added_tokens.h - finds added tokens in a text: the leftmost, and of several there the longest. */
#pragma once

#include "tokenizer/model/model.h"

typedef struct added_tokens added_tokens;

typedef struct added_match { /* starts as {0}; kept from one match to the next in a text */
    size_t taken;      /* set by the caller: blanks before this offset belong to another token */
    size_t at, next;   /* offsets in the text: of the token itself, and of its end */
    size_t start, end; /* the same with the blanks that lstrip and rstrip take */
    uint32_t id;
    bool special;
    /* The blanks that were searched last, so that a run of them is searched once: up to blanks_end,
     * and those from before_start to before_end. */
    size_t blanks_end, before_start, before_end;
} added_match;

/* Takes the tokens of m that match in raw text, or those that match in normalized text. Their
 * contents are not normalized. NULL: err. */
added_tokens *added_tokens_new(const model *m, bool normalized, failure *err);
void added_tokens_free(added_tokens *a);
/* Finds the first token at or after `from`; false: there is none. TEXT_PADDING bytes after the text
 * must be readable. */
bool added_tokens_next(const added_tokens *a, const uint8_t *text, size_t n_bytes, size_t from,
                       added_match *match);
