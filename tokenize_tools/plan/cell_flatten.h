/* SPDX-License-Identifier: Apache-2.0 */
/* cell_flatten.h - makes flat datasets of the cells of a plan, by any number of processes.
 *
 * The first one joins the cells as .P.HASH, with the hash of the plan. Each copies its share of the
 * tokens of that; the one that is no task copies what is left, and gives the names. */
#ifndef TOKMAP_CELL_FLATTEN_H
#define TOKMAP_CELL_FLATTEN_H

#include <stdbool.h>

#include "plan/plan_file.h"

typedef struct cell_flatten_options {
    const char *prefix; /* of the output, P */
    bool force;         /* replace it if it exists */
    bool json, quiet;
    bool is_task;           /* only copy this share: */
    uint64_t task, n_tasks; /* 0 and 1 if it is no task */
    unsigned n_threads;
} cell_flatten_options;

/* As cell_join, but P.bin holds the tokens, and the cells are needed no more. */
int cell_flatten(const plan_file *plan, const cell_flatten_options *options);

#endif /* TOKMAP_CELL_FLATTEN_H */
