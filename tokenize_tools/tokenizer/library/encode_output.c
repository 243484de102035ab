/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/library/encode_output.h"

#include <string.h>

#include "base/base.h"
#include "tokenizer/library/result_memory.h"

bool encode_output_begin(encode_output *o, const encode_plan *plan, uint64_t n_texts,
                         size_t n_ids_expected)
{
    *o = (encode_output){.jobs = plan->jobs, .n_jobs = plan->n};
    tokmap_i_mutex_init(&o->lock);
    tokmap_i_condition_init(&o->changed);
    o->capacity = n_ids_expected + n_ids_expected / 4 + 64;
    o->ids = result_memory_new(o->capacity * sizeof *o->ids);
    if (n_texts < SIZE_MAX / 32)
        o->offsets = result_memory_new((n_texts + 1) * sizeof *o->offsets);
    if (o->offsets)
        o->offsets[0] = 0;
    return o->ids && o->offsets;
}

void encode_output_free(encode_output *o)
{
    result_memory_free(o->ids);
    result_memory_free(o->offsets);
    tokmap_i_mutex_free(&o->lock);
    tokmap_i_condition_free(&o->changed);
}

void encode_output_done(encode_output *o, size_t k, size_t n_ids)
{
    tokmap_i_mutex_lock(&o->lock);
    o->jobs[k].n_ids = n_ids;
    o->jobs[k].done = true;
    if (k == o->n_known)
        tokmap_i_condition_broadcast(&o->changed);
    for (; o->n_known < o->n_jobs && o->jobs[o->n_known].done; o->n_known++) {
        o->jobs[o->n_known].first_id = o->n_ids;
        o->n_ids += o->jobs[o->n_known].n_ids;
    }
    tokmap_i_mutex_unlock(&o->lock);
}

void encode_output_stop(encode_output *o)
{
    tokmap_i_mutex_lock(&o->lock);
    o->stopped = true;
    tokmap_i_condition_broadcast(&o->changed);
    tokmap_i_mutex_unlock(&o->lock);
}

/* Nobody copies into the array. */
static bool grow(encode_output *o)
{
    const size_t capacity = MAX(o->n_ids, o->capacity + o->capacity / 2);
    uint32_t *ids = result_memory_new(capacity * sizeof *ids);
    if (!ids)
        return false;
    memcpy(ids, o->ids, o->capacity * sizeof *ids);
    result_memory_free(o->ids);
    o->ids = ids;
    o->capacity = capacity;
    return true;
}

/* Whether the job may be copied now; with the lock held. */
static bool get_place(encode_output *o, size_t k, bool wait)
{
    while (wait && !o->stopped && k >= o->n_known)
        tokmap_i_condition_wait(&o->changed, &o->lock);
    if (o->stopped || k >= o->n_known)
        return false;
    const size_t end = o->jobs[k].first_id + o->jobs[k].n_ids;
    while (!o->stopped && end > o->capacity) {
        if (o->n_copying > 0)
            tokmap_i_condition_wait(&o->changed, &o->lock);
        else if (!grow(o))
            o->stopped = o->no_memory = true;
    }
    if (o->stopped)
        tokmap_i_condition_broadcast(&o->changed);
    return !o->stopped;
}

bool encode_output_place(encode_output *o, size_t k, const uint32_t *ids, bool wait)
{
    const encode_job *job = &o->jobs[k];
    tokmap_i_mutex_lock(&o->lock);
    const bool placed = get_place(o, k, wait);
    o->n_copying += placed;
    tokmap_i_mutex_unlock(&o->lock);
    if (!placed)
        return false;
    if (job->n_ids > 0)
        memcpy(o->ids + job->first_id, ids, job->n_ids * sizeof *ids);
    for (uint64_t i = 1; i <= job->n_ended; i++)
        o->offsets[job->first + i] += (int64_t)job->first_id;
    tokmap_i_mutex_lock(&o->lock);
    o->n_copying--;
    if (o->n_copying == 0)
        tokmap_i_condition_broadcast(&o->changed);
    tokmap_i_mutex_unlock(&o->lock);
    return true;
}
