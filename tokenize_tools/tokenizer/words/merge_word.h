/* merge_word.h - what merge.c (the table, short words) and merge_long.c (long ones) share. */
#ifndef TOKMAP_MERGE_WORD_H
#define TOKMAP_MERGE_WORD_H

#include "tokenizer/words/merge.h"

#define MERGE_NONE UINT32_MAX

/* MERGE_NONE: the two do not merge. */
uint32_t merge_rank(const merge_table *t, uint32_t left, uint32_t right);
/* The result of the pair, which has that rank. */
uint32_t merge_result(const merge_table *t, uint32_t rank, uint32_t left, uint32_t right);
/* Like merge_symbols, for words of any length from 2 on. */
size_t merge_long(const merge_table *t, merge_scratch *s, uint32_t *symbols, size_t n);

#endif /* TOKMAP_MERGE_WORD_H */
