/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/pipeline.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "system/platform_thread.h"
#include "base/simd.h"

typedef struct pipeline_slot {
    pack_job job;
    size_t memory; /* memory of the job, counted in `in_flight` */
    bool done;     /* its ids are complete */
} pipeline_slot;

struct pack_pipeline {
    pack_pipeline_options options;
    corpus *corpus;
    pipeline_slot *slots; /* job n is in slots[n % n_slots] */
    size_t n_slots;
    tokmap_i_thread reader, *encoders;
    unsigned n_started;

    tokmap_i_mutex lock;
    tokmap_i_condition room, text, ids; /* for the reader, the encoders, the caller */
    uint64_t n_read, n_taken, n_out;    /* jobs that were read, taken by an encoder, handed out */
    bool out;                           /* the caller still has job n_out - 1 */
    size_t in_flight;                   /* bytes in the jobs from n_out - out to n_read */
    size_t waited_for;                  /* the largest job, if threads wait because of it */
    size_t largest;                     /* of those that another document waited for */
    bool at_end, stop, reader_started;
    bool no_memory; /* an encoder ran out of memory */
    int read_status;
    failure read_error;
};

/* ---- Encoders ---- */

/* Waits for the next job to encode. NULL: there are no more. */
static pipeline_slot *take_text(pack_pipeline *p)
{
    pipeline_slot *slot = NULL;
    tokmap_i_mutex_lock(&p->lock);
    while (!p->stop && !p->at_end && p->n_taken == p->n_read)
        tokmap_i_condition_wait(&p->text, &p->lock);
    if (!p->stop && p->n_taken < p->n_read)
        slot = &p->slots[p->n_taken++ % p->n_slots];
    tokmap_i_mutex_unlock(&p->lock);
    return slot;
}

static void encode_all(pack_pipeline *p, encoder *e)
{
    pipeline_slot *slot;
    pack_marks marks = {p->options.parts};
    bool ok = true;
    while (ok && (slot = take_text(p)) != NULL) {
        ok = pack_job_encode(&slot->job, &marks, e);
        const size_t ids_bytes = slot->job.ids.n * sizeof(uint32_t);
        tokmap_i_mutex_lock(&p->lock);
        slot->done = true;
        slot->memory += ids_bytes;
        p->in_flight += ids_bytes;
        p->no_memory = p->no_memory || !ok;
        tokmap_i_condition_signal(&p->ids);
        tokmap_i_mutex_unlock(&p->lock);
    }
    pack_marks_free(&marks);
}

static void *run_encoder(void *arg)
{
    pack_pipeline *p = arg;
    const pack_parts *parts = p->options.parts;
    const encoder_options options = {.cache_bytes = parts->options->memory / 2,
                                     .specials = parts->options->specials};
    encoder *e = encoder_new(parts->tokenizer->tokenizer, &options);
    if (e) {
        encode_all(p, e);
    } else {
        tokmap_i_mutex_lock(&p->lock);
        p->no_memory = true;
        tokmap_i_condition_signal(&p->ids);
        tokmap_i_mutex_unlock(&p->lock);
    }
    encoder_free(e);
    return NULL;
}

/* ---- Reader ---- */

/* What the jobs may hold together. As much is for pages of inputs. */
static uint64_t memory_for_jobs(const pack_options *o)
{
    return o->memory / 4 * o->n_threads;
}

/* Notes the largest job, if there are too few to keep all threads busy. */
static void note_largest(pack_pipeline *p)
{
    const uint64_t first = p->n_out - p->out;
    if (p->n_read - first > p->options.parts->options->n_threads)
        return;
    for (uint64_t n = first; n < p->n_read; n++) {
        const pipeline_slot *slot = &p->slots[n % p->n_slots];
        const size_t memory =
            slot->done ? slot->memory : 2 * slot->memory; /* its ids will follow */
        p->waited_for = memory > p->waited_for ? memory : p->waited_for;
    }
}

/* Waits for a free slot. NULL: the reader must end. */
static pipeline_slot *take_room(pack_pipeline *p)
{
    const uint64_t most = memory_for_jobs(p->options.parts->options);
    const size_t usual = 2 * p->options.batch_bytes; /* the text, and its ids */
    tokmap_i_mutex_lock(&p->lock);
    for (;;) {
        const bool is_full = p->n_read - (p->n_out - p->out) == p->n_slots;
        const bool is_large = p->in_flight > 0 && p->in_flight + usual > most;
        if (p->stop || (!is_full && !is_large))
            break;
        note_largest(p);
        tokmap_i_condition_wait(&p->room, &p->lock);
    }
    pipeline_slot *slot = p->stop ? NULL : &p->slots[p->n_read % p->n_slots];
    tokmap_i_mutex_unlock(&p->lock);
    return slot;
}

static bool read_job(pack_pipeline *p)
{
    pipeline_slot *slot = take_room(p);
    if (!slot)
        return false;
    failure err = {.text = ""};
    pack_reports *reports = &slot->job.reports;
    reports->n_bytes = reports->n_items = reports->n_moments = 0;
    reports->no_memory = false;
    *p->options.reports = reports;
    int status = corpus_read(p->corpus, &slot->job.batch, &err);
    tokmap_i_mutex_lock(&p->lock);
    p->read_status = status;
    p->read_error = err;
    p->at_end = status != 1;
    if (status == 1) {
        slot->done = false;
        slot->memory = slot->job.batch.n_bytes + slot->job.batch.values_bytes +
                       slot->job.batch.n_ranges * sizeof(text_range);
        p->in_flight += slot->memory;
        p->n_read++;
        if (slot->job.batch.n_bytes > 0 && p->waited_for > p->largest)
            p->largest = p->waited_for;
        tokmap_i_condition_signal(&p->text);
    } else {
        tokmap_i_condition_broadcast(&p->text);
        tokmap_i_condition_signal(&p->ids);
    }
    tokmap_i_mutex_unlock(&p->lock);
    return status == 1;
}

static void *run_reader(void *arg)
{
    pack_pipeline *p = arg;
    while (read_job(p)) {
    }
    return NULL;
}

/* ---- The caller ---- */

/* Returns what the next call will return, except for the job. Call with the lock held. */
static pack_next next_state(pack_pipeline *p, pack_error *err)
{
    if (p->n_out < p->n_read && p->slots[p->n_out % p->n_slots].done && !p->no_memory)
        return PACK_JOB;
    if (p->no_memory) {
        pack_error_set(err, CLI_AGAIN,
                       "out of memory; use fewer threads (-j), or --max-document to refuse large "
                       "documents");
        return PACK_FAILED;
    }
    if (!p->at_end || p->n_out < p->n_read)
        return PACK_NOTHING_YET;
    if (p->read_status == 0)
        return PACK_END;
    const bool changed = p->read_error.status == FAILURE_CHANGED;
    const bool other_plan = changed && p->options.parts->cell;
    pack_error_set(err, other_plan ? CLI_DATASET : cli_failure_exit_code(&p->read_error), "%s",
                   p->read_error.text);
    if (changed)
        err->hint = other_plan
                        ? "Update the plan with tokmap plan --update; if size and time of the "
                          "input are still those of the plan, touch it first."
                        : "Run the same command again, which resumes before this input if "
                          "its size or time has changed; or use --restart to start over.";
    err->start_over = changed;
    return PACK_FAILED;
}

/* Frees buffers that have grown: a slot may be used again only much later. */
static void shrink_job(pack_pipeline *p, pack_job *job)
{
    size_t usual = 2 * p->options.batch_bytes + TEXT_PADDING;
    if (job->batch.capacity > usual) {
        corpus_batch_free(&job->batch);
        job->batch = (corpus_batch){0};
    }
    if (job->ids.capacity > usual) {
        id_buffer_free(&job->ids);
        job->ids = (id_buffer){0};
    }
}

pack_next pack_pipeline_next(pack_pipeline *p, unsigned wait_ms, pack_job **job, pack_error *err)
{
    const uint64_t until = tokmap_i_now_ns() + wait_ms * UINT64_C(1000000);
    pipeline_slot *last = p->out ? &p->slots[(p->n_out - 1) % p->n_slots] : NULL;
    if (last) /* the job comes back */
        shrink_job(p, &last->job);
    tokmap_i_mutex_lock(&p->lock);
    if (last) {
        p->out = false;
        p->in_flight -= last->memory;
        tokmap_i_condition_signal(&p->room);
    }
    pack_next next = next_state(p, err);
    while (next == PACK_NOTHING_YET && tokmap_i_condition_wait_until(&p->ids, &p->lock, until))
        next = next_state(p, err);
    if (next == PACK_JOB) {
        *job = &p->slots[p->n_out++ % p->n_slots].job;
        p->out = true;
    }
    tokmap_i_mutex_unlock(&p->lock);
    return next;
}

/* ---- Start and end ---- */

pack_pipeline *pack_pipeline_start(corpus *c, const pack_pipeline_options *options, pack_error *err)
{
    /* Enough jobs that the encoders neither wait for text nor for room while the caller waits for
     * the disk. */
    const size_t n_encoders = options->parts->options->n_threads, n_slots = 6 * n_encoders + 6;
    pack_pipeline *p = calloc(1, sizeof *p);
    pipeline_slot *slots = calloc(n_slots, sizeof *slots);
    tokmap_i_thread *encoders = calloc(n_encoders, sizeof *encoders);
    if (!p || !slots || !encoders) {
        pack_error_no_memory(err);
        free(p);
        free(slots);
        free(encoders);
        corpus_close(c);
        return NULL;
    }
    p->options = *options;
    p->corpus = c;
    p->slots = slots;
    p->n_slots = n_slots;
    p->encoders = encoders;
    tokmap_i_mutex_init(&p->lock);
    tokmap_i_condition_init(&p->room);
    tokmap_i_condition_init(&p->text);
    tokmap_i_condition_init(&p->ids);
    p->reader_started = tokmap_i_thread_start(&p->reader, run_reader, p) == 0;
    while (p->reader_started && p->n_started < n_encoders &&
           tokmap_i_thread_start(&p->encoders[p->n_started], run_encoder, p) == 0)
        p->n_started++;
    if (p->n_started == n_encoders)
        return p;
    pack_error_set(err, CLI_AGAIN, "cannot start a thread; use fewer (-j)");
    pack_pipeline_close(p);
    return NULL;
}

uint64_t pack_pipeline_needed(const pack_pipeline *p)
{
    const uint64_t needed = 4 * (uint64_t)p->largest; /* as memory_for_jobs */
    return needed > p->options.parts->options->memory ? needed : 0;
}

void pack_pipeline_close(pack_pipeline *p)
{
    if (!p)
        return;
    tokmap_i_mutex_lock(&p->lock);
    p->stop = true;
    tokmap_i_condition_broadcast(&p->text);
    tokmap_i_condition_broadcast(&p->room);
    tokmap_i_mutex_unlock(&p->lock);
    corpus_interrupt(p->corpus);
    for (unsigned i = 0; i < p->n_started; i++)
        tokmap_i_thread_join(p->encoders[i]);
    if (p->reader_started)
        tokmap_i_thread_join(p->reader);
    for (size_t i = 0; i < p->n_slots; i++)
        pack_job_free(&p->slots[i].job);
    corpus_close(p->corpus);
    tokmap_i_mutex_free(&p->lock);
    tokmap_i_condition_free(&p->room);
    tokmap_i_condition_free(&p->text);
    tokmap_i_condition_free(&p->ids);
    free(p->encoders);
    free(p->slots);
    free(p);
}
