/* SPDX-License-Identifier: Apache-2.0 */
/* document_tokens.h - the tokens of documents, in the map, or else copied. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

/* Begins as {ds}. */
typedef struct document_tokens {
    const tokmap_dataset *ds;
    uint8_t *copy;
    size_t room;
} document_tokens;

/* Points *tokens to the tokens of a document, valid until the next call. */
tokmap_status document_tokens_get(document_tokens *t, uint64_t number, const void **tokens,
                                  size_t *n_tokens, tokmap_error *err);
void document_tokens_free(document_tokens *t);
