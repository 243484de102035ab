/* SPDX-License-Identifier: Apache-2.0 */
#include "system/each.h"

#include <stdatomic.h>

#include "base/base.h"
#include "system/platform.h"

typedef struct each {
    size_t n;
    atomic_size_t next;
    void (*work)(void *context, size_t which);
    void *context;
} each;

static void *run(void *arg)
{
    each *e = arg;
    size_t i;
    while ((i = atomic_fetch_add(&e->next, 1)) < e->n)
        e->work(e->context, i);
    return NULL;
}

void each_at_once(size_t n, size_t n_threads, void (*work)(void *context, size_t which),
                  void *context)
{
    each e = {.n = n, .work = work, .context = context};
    tokmap_i_run_threads((uint32_t)MIN(MIN(n, n_threads), (size_t)TOKMAP_I_MAX_THREADS), run, &e);
}
