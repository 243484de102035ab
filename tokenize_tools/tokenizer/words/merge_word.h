/* SPDX-License-Identifier: Apache-2.0 */
/* merge_word.h - what merge.c (the table, short words) and merge_long.c (long ones) share. */
#ifndef TOKMAP_MERGE_WORD_H
#define TOKMAP_MERGE_WORD_H

#include "tokenizer/words/merge.h"

#define MERGE_NONE UINT32_MAX

/* MERGE_NONE: the two do not merge. */
uint32_t merge_rank(const merge_table *t, uint32_t left, uint32_t right);
/* The result of the pair, which has that rank. */
uint32_t merge_result(const merge_table *t, uint32_t rank, uint32_t left, uint32_t right);
/* Merges symbols[0 .. n) in place, n from 1 to MERGE_SHORT. *starts has a bit for each symbol at
 * which a token starts. */
#define MERGE_SHORT MERGE_LAST_MAX
size_t merge_short(const merge_table *t, uint32_t *symbols, size_t n, uint64_t *starts);
/* Like merge_symbols, for words of any length from 1 on. */
size_t merge_long(const merge_table *t, merge_scratch *s, uint32_t *symbols, size_t n);

#endif /* TOKMAP_MERGE_WORD_H */
