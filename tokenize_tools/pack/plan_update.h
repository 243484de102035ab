/* SPDX-License-Identifier: Apache-2.0 */
/* plan_update.h - updates a plan for inputs that were repaired, so that only the cells that read
 * them have to be packed again. */
#ifndef TOKMAP_PACK_PLAN_UPDATE_H
#define TOKMAP_PACK_PLAN_UPDATE_H

#include "pack/options.h"
#include "plan/plan_file.h"

typedef struct pack_plan_update {
    plan_file *plan;             /* parsed; gets the new sizes, times and places */
    const pack_options *options; /* those of the plan */
    size_t n_inputs, n_cells;    /* that have changed */
} pack_plan_update;

/* Compares all inputs with the plan, in the current folder, which is that of the plan. A cell that
 * begins inside an input that has changed begins there at the same byte or the first place after
 * it. Returns an exit code, and prints the error. */
int pack_plan_update_run(pack_plan_update *u);

#endif /* TOKMAP_PACK_PLAN_UPDATE_H */
