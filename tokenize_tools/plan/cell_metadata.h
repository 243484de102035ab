/* SPDX-License-Identifier: Apache-2.0 */
/* cell_metadata.h - the metadata of a cell's dataset: that of a plain pack, and then which cell
 * of which plan it is. Without the plan, and with the sums of all cells as its counts, it is the
 * metadata that a plain pack has. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CELL_MAX_COUNTS 16
#define CELL_COUNT_NAME_BYTES 32

typedef struct cell_count {
    char name[CELL_COUNT_NAME_BYTES];
    uint64_t value;
} cell_count;

typedef struct cell_counts {
    cell_count list[CELL_MAX_COUNTS];
    size_t n;
} cell_counts;

typedef struct cell_metadata {
    uint64_t hash, cell; /* of the cell, and its number */
    uint64_t origin;     /* of the plan */
    size_t head_bytes;   /* of the text before the counts, which is the same in all cells */
    cell_counts counts;  /* of what was left out or changed */
} cell_metadata;

/* Reads what pack has written for a cell; false: it is anything else. */
bool cell_metadata_read(cell_metadata *m, const char *json, size_t n_bytes);
/* Adds to the counts of other cells; the sum of none is {0}. False: they have other names, or a sum
 * is too large. */
bool cell_counts_add(cell_counts *sum, const cell_counts *more);
/* 0 if there is none of this name. */
uint64_t cell_counts_value(const cell_counts *counts, const char *name);
/* The metadata of a plain pack, from the head of any cell and the sum of all. Malloced; NULL: out
 * of memory. */
char *cell_metadata_join(const char *head, size_t head_bytes, const cell_counts *sum,
                         size_t *n_bytes);
/* The member `plan` of the object, which is its last one, from hash, cell and origin. */
typedef struct cell_plan_text {
    char s[160];
} cell_plan_text;
cell_plan_text cell_metadata_plan(const cell_metadata *m);
