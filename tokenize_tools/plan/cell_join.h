/* SPDX-License-Identifier: Apache-2.0 */
/* cell_join.h - joins the datasets of all cells of a plan. */
#ifndef TOKMAP_CELL_JOIN_H
#define TOKMAP_CELL_JOIN_H

#include <stdbool.h>

#include "plan/plan_file.h"

typedef struct cell_join_options {
    const char *prefix; /* of the output, P */
    bool force;         /* replace it if it exists */
    bool json, quiet;
    bool temporary; /* several processes may do the same: the first one wins */
} cell_join_options;

enum {
    CELL_JOIN_TAKEN = -1 /* another process joins, or has joined, the same */
};

/* Writes P, and a P-NAME for each split, as joined datasets of the cells, and P.bad with their bad
 * documents. All appear complete or not at all, P last. Returns an exit code, and prints the error,
 * or the results; if `temporary`, also CELL_JOIN_TAKEN, without a message. CLI_INPUT: cells are
 * missing. CLI_DATASET: one is damaged or of another plan. */
int cell_join(const plan_file *plan, const cell_join_options *options);

/* The prefix of output `which`, P or P-NAME; false: there are no more. */
bool cell_join_output(const plan_file *plan, const char *prefix, size_t which,
                      char output[PATH_PREFIX_BYTES]);
/* Checks the names of all outputs, which must not be those of cells, and creates their folder.
 * Returns an exit code, and prints the error. */
int cell_join_check_names(const plan_file *plan, const char *prefix);

#endif /* TOKMAP_CELL_JOIN_H */
