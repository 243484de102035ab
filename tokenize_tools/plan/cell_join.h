/* SPDX-License-Identifier: Apache-2.0 */
/* cell_join.h - makes one dataset P, and a P-NAME for each split, from the datasets of all cells of
 * a plan. */
#pragma once

#include <stdbool.h>

#include "plan/plan_file.h"

typedef struct cell_join_options {
    char prefix[PATH_PREFIX_BYTES]; /* the prefix P of the output */
    bool force;                     /* replace P if it exists */
    bool json, quiet;
} cell_join_options;

/* Writes the outputs as joined datasets of the cells. All appear complete or not at all, P last.
 * Returns an exit code, and prints the error, or the results. CLI_INPUT: cells are missing.
 * CLI_DATASET: one is damaged or of another plan. */
int cell_join(const plan_file *plan, const cell_join_options *options);

/* Removes the temporary names beside a dataset, if the process that finished it was killed before
 * it removed them. */
int cell_clear_up(const char *index_path);
