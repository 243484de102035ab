/* SPDX-License-Identifier: Apache-2.0 */
/* cell_metadata.h - the metadata of a cell's dataset: what a plain pack writes, and then which cell
 * of which plan it is. Without the plan, and with the sums of all cells as its counts, it is the
 * metadata that a plain pack writes. Pure. */
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
    uint64_t hash, cell; /* the hash of the cell, and its number */
    uint64_t origin;     /* the origin of the plan */
    size_t head_bytes;   /* bytes before the counts, which are the same in all cells */
    cell_counts counts;  /* what was left out or changed */
} cell_metadata;

/* Reads what pack has written for a cell; false if the text is anything else. */
bool cell_metadata_read(cell_metadata *m, const char *json, size_t n_bytes);
/* Adds the counts of a cell to a sum, which begins as {0}. False if they have other names, or a sum
 * is too large. */
bool cell_counts_add(cell_counts *sum, const cell_counts *more);
/* Returns the count of this name, or 0. */
uint64_t cell_counts_value(const cell_counts *counts, const char *name);
/* Makes the metadata of a plain pack from the head of any cell and the sum of all. Malloced; NULL:
 * out of memory. */
char *cell_metadata_join(const char *head, size_t head_bytes, const cell_counts *sum,
                         size_t *n_bytes);
/* The last member of the object, `plan`, as text: from hash, cell and origin. */
typedef struct cell_plan_text {
    char s[160];
} cell_plan_text;
cell_plan_text cell_metadata_plan(const cell_metadata *m);
