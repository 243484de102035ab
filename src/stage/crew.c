/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/crew.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "system/platform_thread.h"

struct tokmap_i_crew {
    tokmap_i_mutex mutex;
    tokmap_i_condition begin, end;
    void (*work)(void *context, uint32_t part);
    void *context;
    uint32_t n_parts; /* 0: no work */
    atomic_uint next_part;
    uint32_t n_at_work; /* working threads, without the caller's */
    bool quitting;
    uint32_t n_threads;
    tokmap_i_thread threads[];
};

/* Does parts until none is left. */
static void take_parts(tokmap_i_crew *c, uint32_t n_parts)
{
    for (uint32_t part; (part = atomic_fetch_add(&c->next_part, 1)) < n_parts;)
        c->work(c->context, part);
}

static void *run_worker(void *context)
{
    tokmap_i_crew *c = context;
    tokmap_i_mutex_lock(&c->mutex);
    while (!c->quitting) {
        const uint32_t n_parts = c->n_parts;
        if (atomic_load(&c->next_part) < n_parts) {
            c->n_at_work++;
            tokmap_i_mutex_unlock(&c->mutex);
            take_parts(c, n_parts);
            tokmap_i_mutex_lock(&c->mutex);
            if (--c->n_at_work == 0)
                tokmap_i_condition_signal(&c->end);
        } else {
            tokmap_i_condition_wait(&c->begin, &c->mutex);
        }
    }
    /* A signal wakes one thread, so pass it on. */
    tokmap_i_condition_signal(&c->begin);
    tokmap_i_mutex_unlock(&c->mutex);
    return NULL;
}

tokmap_i_crew *tokmap_i_crew_open(uint32_t n_threads)
{
    tokmap_i_crew *c = calloc(1, sizeof *c + n_threads * sizeof c->threads[0]);
    if (!c)
        return NULL;
    tokmap_i_mutex_init(&c->mutex);
    tokmap_i_condition_init(&c->begin);
    tokmap_i_condition_init(&c->end);
    while (c->n_threads + 1 < n_threads &&
           tokmap_i_thread_start(&c->threads[c->n_threads], run_worker, c) == 0)
        c->n_threads++;
    return c;
}

void tokmap_i_crew_close(tokmap_i_crew *c)
{
    if (!c)
        return;
    tokmap_i_mutex_lock(&c->mutex);
    c->quitting = true;
    tokmap_i_condition_signal(&c->begin);
    tokmap_i_mutex_unlock(&c->mutex);
    for (uint32_t i = 0; i < c->n_threads; i++)
        tokmap_i_thread_join(c->threads[i]);
    tokmap_i_condition_free(&c->begin);
    tokmap_i_condition_free(&c->end);
    tokmap_i_mutex_free(&c->mutex);
    free(c);
}

void tokmap_i_crew_run(tokmap_i_crew *c, void (*work)(void *context, uint32_t part), void *context,
                       uint32_t n_parts)
{
    tokmap_i_mutex_lock(&c->mutex);
    c->work = work;
    c->context = context;
    c->n_parts = n_parts;
    atomic_store(&c->next_part, 0);
    for (uint32_t i = 0; i < c->n_threads && i + 1 < n_parts; i++)
        tokmap_i_condition_signal(&c->begin);
    tokmap_i_mutex_unlock(&c->mutex);
    take_parts(c, n_parts);
    tokmap_i_mutex_lock(&c->mutex);
    while (c->n_at_work > 0)
        tokmap_i_condition_wait(&c->end, &c->mutex);
    c->n_parts = 0;
    tokmap_i_mutex_unlock(&c->mutex);
}
