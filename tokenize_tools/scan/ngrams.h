/* SPDX-License-Identifier: Apache-2.0 */
/* ngrams.h - runs of n tokens of examples, and which of them a document has.
 *
 * A piece is 8 tokens, or a whole n-gram that is shorter. Each n-gram has a piece at each of its
 * first n - 7 places. So a scan asks a filter of all pieces only at each (n - 7)th place of a
 * document. Where the filter says that a piece may be there, each of the n - 7 n-grams with this
 * piece is looked up in a table, which compares the tokens. So what a scan finds is there, and it
 * finds everything that is there. Pure; any number of threads may scan. */
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

/* Places that follow each other, at each of which an n-gram of an example begins. */
typedef struct ngrams_run {
    uint64_t at, n_tokens; /* from the first n-gram to the end of the last one */
    uint32_t example;      /* the first that has the first n-gram */
} ngrams_run;

/* What was found. Begins as {0}; the caller frees `runs`. */
typedef struct ngrams_found {
    uint64_t n_ngrams;
    ngrams_run *runs;
    size_t n_runs, room;
} ngrams_found;

/* Looks through the tokens of a document, and adds what it finds; false: out of memory. */
bool ngrams_scan(const ngrams *x, const void *tokens, size_t n_tokens, ngrams_found *found);
/* Returns the longest of some runs, at least one; among equal ones, the first. */
const ngrams_run *ngrams_longest(const ngrams_run *runs, size_t n_runs);
