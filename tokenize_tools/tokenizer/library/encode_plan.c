/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/library/encode_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

tokmap_text text_list_get(const text_list *texts, uint64_t index)
{
    tokmap_text text;
    memcpy(&text, texts->first + index * texts->stride, sizeof text);
    return text;
}

size_t encode_part_bytes(const tokenizer *t, const uint8_t *text, size_t n_bytes)
{
    size_t n_searched = 0;
    for (size_t size = JOB_BYTES; size < n_bytes; size *= 2) {
        const size_t cut = tokenizer_safe_cut(t, text, n_searched, size);
        if (cut > 0)
            return cut;
        n_searched = size;
    }
    return n_bytes;
}

static bool add_job(encode_plan *plan, encode_job job)
{
    if (plan->n == plan->capacity) {
        const size_t capacity = plan->capacity ? 2 * plan->capacity : 16;
        encode_job *jobs = realloc(plan->jobs, capacity * sizeof *jobs);
        if (!jobs)
            return false;
        plan->jobs = jobs;
        plan->capacity = capacity;
    }
    plan->jobs[plan->n++] = job;
    return true;
}

/* Any encoder may take a part, unless it needs the state after the part before. */
static bool add_long(encode_plan *plan, uint64_t index, tokmap_text text, const tokenizer *t)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    bool added = true;
    for (size_t at = 0, n; added && at < text.n_bytes; at += n) {
        const size_t left = text.n_bytes - at;
        n = tokenizer_in_order(t) ? left : encode_part_bytes(t, bytes + at, left);
        added = add_job(
            plan, (encode_job){
                      .first = index, .n_ended = at + n == text.n_bytes, .from = at, .to = at + n});
    }
    return added;
}

bool encode_plan_make(encode_plan *plan, const text_list *texts, const tokenizer *t)
{
    encode_job job = {0};
    size_t n_bytes = 0; /* of the job */
    bool added = true;
    for (uint64_t i = 0; added && i < texts->n; i++) {
        const tokmap_text text = text_list_get(texts, i);
        const bool is_long = text.n_bytes > JOB_BYTES;
        plan->n_bytes += text.n_bytes;
        if (job.n_ended > 0 && n_bytes + text.n_bytes > JOB_BYTES) {
            added = add_job(plan, job);
            job = (encode_job){.first = i};
            n_bytes = 0;
        }
        if (added && is_long)
            added = add_long(plan, i, text, t);
        if (is_long) {
            job.first = i + 1;
            continue;
        }
        n_bytes += MAX(text.n_bytes, JOB_BYTES / JOB_TEXTS);
        job.n_ended++;
    }
    return added && (job.n_ended == 0 || add_job(plan, job));
}

void encode_plan_free(encode_plan *plan)
{
    free(plan->jobs);
    *plan = (encode_plan){0};
}
