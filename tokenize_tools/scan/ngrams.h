/* SPDX-License-Identifier: Apache-2.0 */
/* ngrams.h - runs of n tokens of examples, and which of them a document has.
 *
 * Each n-gram has a piece of 8 tokens at each of its first n - 7 places. So a scan asks a filter of
 * all pieces only at each (n - 7)th place of a document. Where the filter says that a piece may be
 * there, each of the n - 7 n-grams with this piece is looked up in a table, which compares the
 * tokens. So what a scan finds is there, and it finds everything that is there. Pure; any number of
 * threads may scan. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NGRAMS_MOST_TOKENS = 255 /* of an n-gram */
};

typedef struct ngrams ngrams;

/* Begins an index of n-grams of n tokens, 1 to NGRAMS_MOST_TOKENS, for documents with tokens of 2
 * or 4 bytes. NULL: out of memory. */
ngrams *ngrams_open(uint32_t n, uint32_t token_bytes);
void ngrams_close(ngrams *x);
/* Adds the n-grams of an example, whose ids fit in a token; false: out of memory, or more than 2^32
 * tokens. An n-gram keeps the first example that has it. */
bool ngrams_add(ngrams *x, const uint32_t *ids, size_t n_ids, uint32_t example);
/* Completes the index after the last example; false: out of memory. */
bool ngrams_finish(ngrams *x);
/* Returns the number of different n-grams. */
uint64_t ngrams_count(const ngrams *x);

/* What documents were found to have. Begins as {0}. */
typedef struct ngrams_found {
    uint64_t n_ngrams; /* places where an n-gram of an example begins */
    uint64_t longest;  /* tokens of the longest run of such n-grams */
    uint64_t at;       /* where this run begins */
    uint32_t example;  /* that has its first n-gram */
} ngrams_found;

/* Looks through the tokens of a document. */
void ngrams_scan(const ngrams *x, const void *tokens, size_t n_tokens, ngrams_found *found);
