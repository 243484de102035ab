/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranges.h - the bytes of a text that each of its ids stands for.
 *
 * The encoder does not keep them. If the tokens spell the text, a walk over ids and text finds them
 * again: each token is the text where the one before it ends, up to the end of both. So a text that
 * was changed before it was encoded is noticed. Pure. */
#pragma once

#include "tokenizer/model/model.h"
#include "tokenizer/encode/added_tokens.h"

typedef struct byte_range {
    uint64_t begin, end; /* offsets in the text */
} byte_range;

/* A text and its ids. */
typedef struct encoded_text {
    const uint8_t *text; /* TEXT_PADDING bytes after it must be readable */
    size_t n_bytes;
    bool drop_specials; /* those that were found in the text have no ids */
    bool take_specials; /* they have ids; neither: they were plain text */
    const uint32_t *ids;
    size_t n_ids;
} encoded_text;

typedef struct range_rules {
    bool marks;            /* U+2581 in a token is a blank or U+2581 in the text */
    bool searches;         /* added tokens of normalized text are found in the text itself */
    prepend_scheme prefix; /* a blank or U+2581 goes before the text between added tokens ... */
    bool not_twice;        /* ... but not before another */
    uint32_t unknown_id;
    const model_token *tokens;    /* the caller sets these */
    const uint8_t *bytes;         /* of the tokens; 8 bytes after them must be readable */
    const added_tokens *added[2]; /* searched for in the text, and between those; may be NULL */
} range_rules;

/* Sets the rules. Returns NULL, or why no text has ranges. */
const char *token_ranges_rules(const model *m, range_rules *r);
/* Fills in n_ids ranges, in order and without overlaps. false: the tokens are not the text from
 * byte *lost on, and some ranges are filled in. */
bool token_ranges_find(const range_rules *r, const encoded_text *e, byte_range *ranges,
                       size_t *lost);
