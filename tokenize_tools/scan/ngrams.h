/* SPDX-License-Identifier: Apache-2.0 */
/* ngrams.h - runs of n tokens of examples, and which of them a document has.
 *
 * A scan computes a rolling hash, asks a filter, then a table, and compares the tokens. So what it
 * finds is there, and it finds everything that is there. Pure; any number of threads may scan. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NGRAMS_MOST_TOKENS = 255 /* of an n-gram */
};

typedef struct ngrams ngrams;

/* Begins an index of n-grams of n tokens, 1 to NGRAMS_MOST_TOKENS. NULL: out of memory. */
ngrams *ngrams_open(uint32_t n);
void ngrams_close(ngrams *x);
/* Adds the n-grams of an example; false: out of memory, or more than 2^32 tokens. An n-gram keeps
 * the first example that has it. */
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

/* Looks through the tokens of a document, of 2 or 4 bytes. */
void ngrams_scan(const ngrams *x, const void *tokens, uint32_t token_bytes, size_t n_tokens,
                 ngrams_found *found);
