/* SPDX-License-Identifier: Apache-2.0 */
/* cell_join.h - makes one dataset P, and a P-NAME for each split, of the datasets of all cells of a
 * plan. */
#pragma once

#include <stdbool.h>

#include "plan/plan_file.h"

typedef struct cell_join_options {
    const char *prefix; /* of the output, P */
    bool force;         /* replace it if it exists */
    bool json, quiet;
    bool temporary; /* several processes may do the same: the first one wins */
    /* For cell_flatten: */
    uint64_t task, n_tasks; /* only copy this share; n_tasks 0: finish too */
    uint64_t n_threads;
} cell_join_options;

#define CELL_JOIN_TAKEN (-1) /* another process joins, or has joined, the same */

/* Writes the outputs as joined datasets of the cells, and P.bad with their bad documents. All
 * appear complete or not at all, P last. Returns an exit code, and prints the error, or the
 * results; if `temporary`, also CELL_JOIN_TAKEN, without a message. CLI_INPUT: cells are missing.
 * CLI_DATASET: one is damaged or of another plan. */
int cell_join(const plan_file *plan, const cell_join_options *options);

/* The same, but P.bin holds the tokens, and the cells are needed no more; by any number of
 * processes. The first one joins the cells as .P.HASH, with the hash of the plan. Each copies its
 * share of the tokens of that; the one that is no task copies what is left, and gives the names. */
int cell_flatten(const plan_file *plan, const cell_join_options *options);

/* ---- For both ---- */

/* Checks the names of all outputs, which must not be those of cells, and creates their folder.
 * Returns an exit code, and prints the error. */
int cell_join_check_names(const plan_file *plan, const char *prefix);
/* Removes what the process that finished a dataset has left beside it, if it was killed before it
 * removed its temporary names. */
int cell_clear_up(const char *index_path);
int cell_join_print_results(const plan_file *plan, const cell_join_options *options);
