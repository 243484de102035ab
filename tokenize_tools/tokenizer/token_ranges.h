/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranges.h - the bytes of a text that each of its ids stands for.
 *
 * The encoder does not keep them. Where the tokens of a tokenizer spell the text, a walk over ids
 * and text finds them again: each token must be the text at the place where the one before it ends,
 * so there is only one way. Pure. */
#ifndef TOKMAP_TOKEN_RANGES_H
#define TOKMAP_TOKEN_RANGES_H

#include "tokenizer/model/model.h"
#include "tokenizer/words/added_tokens.h"

typedef struct token_ranges token_ranges;

typedef struct byte_range {
    uint64_t begin, end; /* offsets in the text */
} byte_range;

/* A text and its ids: all of them, or those of a part between two safe cuts. */
typedef struct encoded_text {
    const uint8_t *text; /* TEXT_PADDING bytes after it must be readable */
    size_t n_bytes;
    bool begins;        /* it begins a document; else it continues one */
    bool drop_specials; /* those that were found in the text have no ids */
    bool take_specials; /* they have ids; neither: they were plain text */
    const uint32_t *ids;
    size_t n_ids;
} encoded_text;

/* normalized: the added tokens that are searched for in normalized text, with their contents
 * normalized. NULL: out of memory. *why: why there are no ranges, or NULL. */
token_ranges *token_ranges_new(const model *m, const model *normalized, const char **why);
void token_ranges_free(token_ranges *r);
/* Whether added tokens that are searched for in normalized text are found in the text itself. */
bool token_ranges_search(const token_ranges *r);

/* Fills in n_ids ranges. They are in order and do not overlap. added: what is searched for in the
 * text, then between those; may be NULL. false: the tokens do not spell the text from byte *lost
 * on; some ranges are filled in. */
bool token_ranges_find(const token_ranges *r, const added_tokens *const added[2],
                       const encoded_text *e, byte_range *ranges, size_t *lost);

#endif /* TOKMAP_TOKEN_RANGES_H */
