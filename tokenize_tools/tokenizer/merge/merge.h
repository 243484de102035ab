/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - byte pair merging: of all neighbours that may merge, merges the pair of the lowest
 * rank, and of equal ranks the leftmost, until none is left.
 *
 * Never quadratic: short words by scanning, longer ones in pieces that are joined where two of them
 * agree on a token. That is exact: a sequence of tokens is the result for its text exactly if every
 * two neighbours are the result for theirs (merge_long.c). */
#pragma once

#include "tokenizer/model/model.h"

typedef struct merge_pair {
    uint32_t left, right;
    uint32_t rank;
    uint32_t result;
} merge_pair;

typedef struct merge_list { /* starts as {0}; the owner frees the pairs */
    merge_pair *pairs;
    size_t n;
} merge_list;
/* Adds a pair. false: err says that there are MERGE_MAX_PAIRS, or memory ran out. */
bool merge_list_add(merge_list *list, merge_pair pair, failure *err);

typedef struct merge_table merge_table;

/* Sorts the pairs by rank. At most MERGE_MAX_PAIRS pairs; symbols and results must be less than
 * 2^21 - 1. If a pair is given twice, the lowest rank counts. Faster if results are numbered in the
 * order of ranks. NULL: err says that memory ran out, or that values are out of range or too many
 * pairs have one hash. */
#define MERGE_MAX_PAIRS (((uint32_t)1 << 22) - 2)
merge_table *merge_table_new(merge_pair *pairs, size_t n_pairs, failure *err);
void merge_table_free(merge_table *t);
/* The result of merging the pair, or UINT32_MAX. *rank, which may be NULL, is a renumbered rank in
 * the same order. */
uint32_t merge_table_find(const merge_table *t, uint32_t left, uint32_t right, uint32_t *rank);

typedef struct merge_workspace { /* starts as {0}; one for each thread */
    void *memory;
    size_t n_bytes;
    size_t n_merged; /* symbols of all pieces of long words: what they cost */
} merge_workspace;
void merge_workspace_free(merge_workspace *s);

/* Whether symbols[0 .. n) merge into one symbol, and from which last two: *last is the pair, whose
 * result it is. n <= MERGE_LAST_MAX. */
#define MERGE_LAST_MAX 60
bool merge_last(const merge_table *t, const uint32_t *symbols, size_t n, merge_pair *last);

/* Merges symbols[0 .. n) in place. Returns how many are left, or SIZE_MAX: out of memory, with the
 * symbols unchanged. */
size_t merge_symbols(const merge_table *t, merge_workspace *s, uint32_t *symbols, size_t n);

/* ---- Between merge.c (the table, short words) and merge_long.c (long ones) ---- */

#define NO_RANK UINT32_MAX

/* Returns the rank of the pair; NO_RANK: the two do not merge. */
uint32_t merge_rank(const merge_table *t, uint32_t left, uint32_t right);
/* Returns the result of the pair, which has that rank. */
uint32_t merge_result(const merge_table *t, uint32_t rank, uint32_t left, uint32_t right);
/* Merges symbols[0 .. n) in place, n from 1 to MERGE_SHORT. starts[i] is where token i starts; it
 * has room for n. */
#define MERGE_SHORT 240
size_t merge_short(const merge_table *t, uint32_t *symbols, size_t n, uint8_t *starts);
/* The same as merge_symbols, but only for n > 0. Exact for short words too. */
size_t merge_long(const merge_table *t, merge_workspace *s, uint32_t *symbols, size_t n);
