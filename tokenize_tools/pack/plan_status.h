/* SPDX-License-Identifier: Apache-2.0 */
/* plan_status.h - how far the work on a plan is, from what lies in the folder of its cells. */
#ifndef TOKMAP_PACK_PLAN_STATUS_H
#define TOKMAP_PACK_PLAN_STATUS_H

#include "plan/cell_state.h"

typedef struct plan_share {
    size_t n_cells;
    uint64_t input_bytes; /* as they are stored */
} plan_share;

typedef struct plan_status {
    plan_share all, done, unfinished, failed, left; /* left: not begun */
    uint64_t unfinished_bytes;                      /* of the inputs of unfinished cells: packed */
    uint64_t n_tokens, n_documents;   /* so far, in cells that are done or unfinished */
    double bytes_per_s, tokens_per_s; /* 0: cannot be known */
    double seconds_left;              /* at this rate; 0: cannot be known, or all is done */
    failure *failures;                /* their places are cells */
} plan_status;

/* false: out of memory. */
bool plan_status_find(plan_status *status, const plan_file *plan, bool verify);
void plan_status_free(plan_status *status);

#endif /* TOKMAP_PACK_PLAN_STATUS_H */
