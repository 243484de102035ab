/* SPDX-License-Identifier: Apache-2.0 */
#include "system/each.h"

#include <stdatomic.h>

#include "base/base.h"
#include "system/platform_thread.h"

#define MOST_THREADS ((size_t)64)

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

void each_at_once(size_t n, void (*work)(void *context, size_t which), void *context)
{
    tokmap_i_thread threads[MOST_THREADS];
    const size_t wanted = MIN(n, MOST_THREADS);
    size_t started = 1; /* the caller is one of them */
    each e = {.n = n, .work = work, .context = context};
    while (started < wanted && tokmap_i_thread_start(&threads[started], run, &e) == 0)
        started++;
    run(&e);
    for (size_t i = 1; i < started; i++)
        tokmap_i_thread_join(threads[i]);
}
