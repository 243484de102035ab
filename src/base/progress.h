/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - reports how far a call is to its caller, who may stop it. */
#pragma once

#include "base/base.h"
#include "base/error.h"

typedef struct tokmap_i_progress {
    tokmap_on_progress *on_progress; /* NULL: nothing is reported */
    void *context;
    uint64_t n_done, n_total;
} tokmap_i_progress;

/* Adds n to what is done, and reports it. p may be NULL. TOKMAP_ERR_STOPPED: the caller stops the
 * call. */
static inline tokmap_status tokmap_i_progress_add(tokmap_i_progress *p, uint64_t n,
                                                  tokmap_error *err)
{
    if (!p || !p->on_progress || p->n_total == 0)
        return TOKMAP_OK;
    p->n_done = MIN(p->n_done + n, p->n_total);
    return p->on_progress(p->context, p->n_done, p->n_total) == 0
               ? TOKMAP_OK
               : FAIL(err, TOKMAP_ERR_STOPPED, "stopped by on_progress");
}
