/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - texts to ids, by several threads if there are many texts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "system/platform.h"
#include "system/platform_thread.h"
#include "base/array.h"
#include "base/utf8.h"
#include "tokenizer/file/special_place.h"
#include "tokenizer/library/library.h"
#include "tokenizer/encode/tokenizer.h"

enum {
    MAX_THREADS = 1024
};

/* How many jobs a thread may have that wait for earlier ones of other threads. */
#define MAX_PENDING 4

#define JOB_TEXTS 4096

/* n_texts texts from number `first` on. */
typedef struct encode_job {
    uint64_t first, n_texts;
    bool done; /* then it has n_ids */
    size_t n_ids, first_id;
} encode_job;

/* The ids of all jobs in one array, in the order of the texts, while other threads still encode. */
typedef struct encode_output {
    encode_job *jobs; /* in the order of the texts */
    size_t n_jobs;
    uint32_t *ids;
    byte_range *ranges; /* of the ids, or NULL */
    size_t n_ids, capacity;
    int64_t *offsets; /* those of a job count from its first id until it is placed */

    tokmap_i_mutex lock;
    tokmap_i_condition changed;
    size_t n_known; /* jobs whose first id is known: all before them are done */
    unsigned n_copying;
    bool stopped; /* the call fails: nothing more is placed */
    bool no_memory;
} encode_output;

_Static_assert(sizeof(byte_range) == sizeof(tokmap_byte_range), "one struct for both");

typedef struct encode_run encode_run;

/* The ids of a job, in the state of the worker. */
typedef struct pending_job {
    size_t job, first_id;
} pending_job;

/* A thread, and where it failed. */
typedef struct encode_worker {
    encode_run *run;
    worker_state *state;
    tokmap_i_thread thread;
    pending_job pending[MAX_PENDING];
    size_t n_pending;
    tokmap_status status;
    size_t failed_job;
    uint64_t failed_text;
    size_t failed_byte;
    const char *no_ranges; /* why */
    char special[SPECIAL_NAME_BYTES];
} encode_worker;

struct encode_run {
    const tokenizer *tokenizer;
    tokmap_encode_options options;
    size_t n_bytes; /* of all texts */
    encode_output output;
    encode_worker *workers;
    uint32_t n_workers;
    atomic_size_t next; /* job */
    atomic_size_t end;  /* jobs from here on are not needed: an earlier one failed */
};

/* ---- Jobs ---- */

static tokmap_text get_text(const encode_run *run, uint64_t index)
{
    tokmap_text text;
    const uint8_t *first = (const uint8_t *)run->options.texts;
    memcpy(&text, first + index * run->options.text_stride, sizeof text);
    return text;
}

static bool add_job(encode_output *o, encode_job job)
{
    if (!array_grow(&o->jobs, o->n_jobs, sizeof *o->jobs))
        return false;
    o->jobs[o->n_jobs++] = job;
    return true;
}

static bool make_jobs(encode_run *run)
{
    encode_job job = {0};
    size_t n_bytes = 0; /* of the job */
    bool added = true;
    for (uint64_t i = 0; added && i < run->options.n_texts; i++) {
        const tokmap_text text = get_text(run, i);
        run->n_bytes += text.n_bytes;
        if (job.n_texts > 0 && n_bytes + text.n_bytes > JOB_BYTES) {
            added = add_job(&run->output, job);
            job = (encode_job){.first = i};
            n_bytes = 0;
        }
        n_bytes += MAX(text.n_bytes, JOB_BYTES / JOB_TEXTS);
        job.n_texts++;
    }
    return added && (job.n_texts == 0 || add_job(&run->output, job));
}

/* ---- The ids of all jobs ---- */

/* Grows if there are more ids than expected. */
static bool begin_output(encode_output *o, uint64_t n_texts, size_t n_ids_expected, bool ranges)
{
    tokmap_i_mutex_init(&o->lock);
    tokmap_i_condition_init(&o->changed);
    o->capacity = n_ids_expected + n_ids_expected / 4 + 64;
    o->ids = result_memory_new(o->capacity * sizeof *o->ids);
    if (ranges)
        o->ranges = result_memory_new(o->capacity * sizeof *o->ranges);
    if (n_texts < SIZE_MAX / 32)
        o->offsets = result_memory_new((n_texts + 1) * sizeof *o->offsets);
    if (o->offsets)
        o->offsets[0] = 0;
    return o->ids && o->offsets && (o->ranges || !ranges);
}

/* Records that job k has n_ids. */
static void end_job(encode_output *o, size_t k, size_t n_ids)
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

/* Moves a result to larger memory. false: out of memory, and the old one stays. */
static bool grow_result(void *result, size_t old_bytes, size_t n_bytes)
{
    array_elements *memory = result;
    void *grown = result_memory_new(n_bytes);
    if (!grown)
        return false;
    memcpy(grown, *memory, old_bytes);
    tokmap_memory_free(*memory);
    *memory = grown;
    return true;
}

/* Grows the arrays, into which nobody copies now. */
static bool grow(encode_output *o)
{
    const size_t old = o->capacity, n = MAX(o->n_ids, old + old / 2);
    if (!grow_result(&o->ids, old * sizeof *o->ids, n * sizeof *o->ids) ||
        (o->ranges && !grow_result(&o->ranges, old * sizeof *o->ranges, n * sizeof *o->ranges)))
        return false;
    o->capacity = n;
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

/* Copies the ids of job k, which is done, to their place. With `wait`, waits until the place is
 * known. false: not yet, or stopped. */
static bool place_ids(encode_output *o, size_t k, const worker_state *state, size_t first_id,
                      bool wait)
{
    const encode_job *job = &o->jobs[k];
    tokmap_i_mutex_lock(&o->lock);
    const bool placed = get_place(o, k, wait);
    o->n_copying += placed;
    tokmap_i_mutex_unlock(&o->lock);
    if (!placed)
        return false;
    if (job->n_ids > 0)
        memcpy(o->ids + job->first_id, state->ids.ids + first_id, job->n_ids * sizeof *o->ids);
    if (job->n_ids > 0 && o->ranges)
        memcpy(o->ranges + job->first_id, state->ranges + first_id, job->n_ids * sizeof *o->ranges);
    for (uint64_t i = 1; i <= job->n_texts; i++)
        o->offsets[job->first + i] += (int64_t)job->first_id;
    tokmap_i_mutex_lock(&o->lock);
    o->n_copying--;
    if (o->n_copying == 0)
        tokmap_i_condition_broadcast(&o->changed);
    tokmap_i_mutex_unlock(&o->lock);
    return true;
}

/* ---- One job ---- */

static bool fail_in(encode_worker *w, tokmap_status status, uint64_t text, size_t byte)
{
    w->status = status;
    w->failed_text = text;
    w->failed_byte = byte;
    return false;
}

/* The first bytes of text number `text`, copied with padding after them. */
typedef struct text_copy {
    uint64_t text;
    const uint8_t *bytes;
    size_t n_bytes;
} text_copy;

/* Finds the ranges of the ids of the text, which begin with number first_id. */
static bool find_ranges(encode_worker *w, text_copy copy, size_t first_id)
{
    worker_state *state = w->state;
    const tokmap_specials specials = w->run->options.specials;
    if (!w->run->options.token_offsets || state->ids.n == first_id)
        return true;
    const encoded_text text = {.text = copy.bytes,
                               .n_bytes = copy.n_bytes,
                               .drop_specials = specials == TOKMAP_SPECIALS_DROP,
                               .take_specials = specials == TOKMAP_SPECIALS_MATCH,
                               .ids = state->ids.ids + first_id,
                               .n_ids = state->ids.n - first_id};
    size_t place;
    if (!array_reserve(&state->ranges, &state->ranges_capacity, state->ids.n,
                       sizeof *state->ranges))
        return fail_in(w, TOKMAP_ERR_MEMORY, copy.text, 0);
    w->no_ranges =
        tokenizer_find_ranges(w->run->tokenizer, &text, state->ranges + first_id, &place);
    return !w->no_ranges || fail_in(w, TOKMAP_ERR_UNSUPPORTED, copy.text, place);
}

static bool encode_valid(encode_worker *w, text_copy copy, id_buffer *out)
{
    const encoder *e = w->state->encoder;
    const size_t first_id = out->n;
    special_place place;
    switch (encoder_encode(w->state->encoder, copy.bytes, copy.n_bytes, out)) {
    case TOKENIZE_OK:
        return find_ranges(w, copy, first_id);
    case TOKENIZE_SPECIAL:
        place = special_place_of(e, copy.bytes, copy.n_bytes);
        memcpy(w->special, place.name, sizeof w->special);
        return fail_in(w, TOKMAP_ERR_MISMATCH, copy.text, place.at);
    case TOKENIZE_TOO_LONG:
        return fail_in(w, TOKMAP_ERR_UNSUPPORTED, copy.text, 0);
    case TOKENIZE_NO_MEMORY:
        break;
    }
    w->state->broken = true;
    return fail_in(w, TOKMAP_ERR_MEMORY, copy.text, 0);
}

/* Includes zeros of the padding, which are valid, because whole vectors are checked faster. */
static size_t count_valid(const uint8_t *text, size_t n_bytes)
{
    const size_t n_whole = (n_bytes + TEXT_PADDING - 1) / TEXT_PADDING * TEXT_PADDING;
    const size_t n_valid = utf8_valid_prefix(text, n_whole);
    return MIN(n_valid, n_bytes);
}

static const uint8_t *copy_text(worker_state *state, const uint8_t *text, size_t n_bytes)
{
    if (!array_reserve(&state->text, &state->capacity, MAX(n_bytes, JOB_BYTES) + TEXT_PADDING, 1))
        return NULL;
    if (text)
        memcpy(state->text, text, n_bytes);
    memset(state->text + n_bytes, 0, TEXT_PADDING);
    return state->text;
}

static bool encode_text(encode_worker *w, uint64_t index, id_buffer *out)
{
    const tokmap_text text = get_text(w->run, index);
    text_copy copy = {.text = index, .n_bytes = text.n_bytes};
    copy.bytes = copy_text(w->state, (const uint8_t *)text.bytes, text.n_bytes);
    if (!copy.bytes)
        return fail_in(w, TOKMAP_ERR_MEMORY, index, 0);
    if (!tokenizer_get_info(w->run->tokenizer)->takes_bytes)
        copy.n_bytes = count_valid(copy.bytes, text.n_bytes);
    if (!encode_valid(w, copy, out))
        return false;
    return copy.n_bytes == text.n_bytes || fail_in(w, TOKMAP_ERR_ARGUMENT, index, copy.n_bytes);
}

/* Appends the ids of the job. The offsets of its texts count from its first id. */
static bool encode_job_texts(encode_worker *w, const encode_job *job)
{
    int64_t *ends = w->run->output.offsets + job->first + 1;
    id_buffer *ids = &w->state->ids;
    const size_t first_id = ids->n;
    for (uint64_t i = 0; i < job->n_texts; i++) {
        if (!encode_text(w, job->first + i, ids))
            return false;
        ends[i] = (int64_t)(ids->n - first_id);
    }
    return true;
}

/* ---- All jobs ---- */

/* Places what can be placed; waits if there is too much, or with `all`. */
static void place_pending(encode_worker *w, bool all)
{
    size_t n_placed = 0;
    while (n_placed < w->n_pending) {
        const pending_job *p = &w->pending[n_placed];
        const bool wait = all || w->n_pending - n_placed == MAX_PENDING;
        if (place_ids(&w->run->output, p->job, w->state, p->first_id, wait))
            n_placed++;
        else if (wait) /* the call fails */
            n_placed = w->n_pending;
        else
            break;
    }
    w->n_pending -= n_placed;
    memmove(w->pending, w->pending + n_placed, w->n_pending * sizeof *w->pending);
    if (w->n_pending == 0)
        w->state->ids.n = 0;
}

/* Stops the others: jobs after k are not needed, and nothing more is placed. */
static void note_failure(encode_worker *w, size_t k)
{
    encode_output *o = &w->run->output;
    size_t end = atomic_load(&w->run->end);
    w->failed_job = k;
    while (k < end && !atomic_compare_exchange_weak(&w->run->end, &end, k))
        continue;
    tokmap_i_mutex_lock(&o->lock);
    o->stopped = true;
    tokmap_i_condition_broadcast(&o->changed);
    tokmap_i_mutex_unlock(&o->lock);
}

static void *encode_jobs(void *arg)
{
    encode_worker *w = arg;
    encode_run *run = w->run;
    w->state->ids.n = 0;
    for (size_t k; (k = atomic_fetch_add(&run->next, 1)) < atomic_load(&run->end);) {
        const size_t first_id = w->state->ids.n;
        if (!encode_job_texts(w, &run->output.jobs[k])) {
            note_failure(w, k);
            return NULL;
        }
        end_job(&run->output, k, w->state->ids.n - first_id);
        w->pending[w->n_pending++] = (pending_job){k, first_id};
        place_pending(w, false);
    }
    place_pending(w, true);
    return NULL;
}

/* Runs all workers. The calling thread is one, and does everything if no other can be started. */
static void work_together(encode_run *run)
{
    uint32_t n_started = 1;
    while (n_started < run->n_workers &&
           tokmap_i_thread_start(&run->workers[n_started].thread, encode_jobs,
                                 &run->workers[n_started]) == 0)
        n_started++;
    encode_jobs(&run->workers[0]);
    for (uint32_t i = 1; i < n_started; i++)
        tokmap_i_thread_join(run->workers[i].thread);
}

/* Returns the failure of the first text that failed. */
static tokmap_status find_failure(const encode_run *run, tokmap_error *err)
{
    const encode_worker *first = NULL;
    for (uint32_t i = 0; i < run->n_workers; i++) {
        const encode_worker *w = &run->workers[i];
        if (w->status && (!first || w->failed_job < first->failed_job))
            first = w;
    }
    if (!first && !run->output.no_memory)
        return TOKMAP_OK;
    if (!first || first->status == TOKMAP_ERR_MEMORY)
        return FAIL_MEMORY(err);
    if (first->no_ranges)
        return FAIL_AT(err, first->status, first->failed_byte,
                       "cannot give offsets: byte %zu of text number %" PRIu64 ": %s",
                       first->failed_byte, first->failed_text, first->no_ranges);
    if (first->status == TOKMAP_ERR_UNSUPPORTED)
        return FAIL_AT(err, first->status, first->failed_byte,
                       "text number %" PRIu64 ": " TOKENIZE_TOO_LONG_TEXT, first->failed_text);
    const bool special = first->status == TOKMAP_ERR_MISMATCH;
    return FAIL_AT(err, first->status, first->failed_byte,
                   "byte %zu of text number %" PRIu64 " %s%s", first->failed_byte,
                   first->failed_text, special ? "begins the special token " : "is not valid UTF-8",
                   first->special);
}

/* ---- The call ---- */

/* Calls whose ids fit the memory that is taken first are faster, and the C library keeps freed
 * blocks only for those of the same size. */
static size_t expect_ids(const tokmap_tokenizer *t, size_t n_bytes)
{
    const unsigned known = atomic_load_explicit(&t->ids_per_kib, memory_order_relaxed);
    const size_t n_kib = n_bytes / 1024 + 1;
    return n_kib * (known > 0 ? known : 320);
}

static void learn_ids(tokmap_tokenizer *t, size_t n_bytes, size_t n_ids)
{
    const size_t n_kib = n_bytes / 1024;
    if (n_kib >= 16)
        atomic_store_explicit(&t->ids_per_kib, (unsigned)MIN(n_ids / n_kib + 1, 1 << 16),
                              memory_order_relaxed);
}

/* Takes a state for each worker. false: memory ran out before there was one. */
static bool hire_workers(encode_run *run, tokmap_tokenizer *t)
{
    const tokmap_encode_options *o = &run->options;
    const size_t most = MIN(run->output.n_jobs, MAX_THREADS);
    const size_t wanted = most <= 1 ? 1 : o->n_threads ? o->n_threads : tokmap_i_n_processors();
    const uint32_t n = (uint32_t)MAX(MIN(most, wanted), 1);
    run->workers = calloc(n, sizeof *run->workers);
    for (; run->workers && run->n_workers < n; run->n_workers++) {
        encode_worker *w = &run->workers[run->n_workers];
        w->run = run;
        w->state = tokmap_i_take_state(t);
        if (!w->state)
            break;
        encoder_set_specials(w->state->encoder, (specials_policy)o->specials);
    }
    return run->n_workers > 0;
}

static tokmap_status check_options(tokmap_encode_options *o, const tokmap_encode_options *options,
                                   tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_encode_options, specials)};
    static const tokmap_i_struct_kind text_kind = {STRUCT_KIND(tokmap_text, n_bytes)};
    tokmap_status status = tokmap_i_take_options(o, options, &kind, err);
    if (!status && o->n_texts > 0)
        status = tokmap_i_check_stride(o->text_stride, &text_kind, err);
    if (status)
        return status;
    if (!o->texts && o->n_texts > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "texts is NULL");
    if (o->n_threads > MAX_THREADS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_threads is %u: at most %d", (unsigned)o->n_threads,
                    MAX_THREADS);
    if ((unsigned)o->specials > TOKMAP_SPECIALS_DROP)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "specials is %d: no such value", (int)o->specials);
    return tokmap_i_check_flag("token_offsets", o->token_offsets, err);
}

tokmap_status tokmap_tokenizer_encode(const tokmap_tokenizer *of,
                                      const tokmap_encode_options *options, tokmap_encoding *out,
                                      tokmap_error *err)
{
    tokmap_tokenizer *t = (tokmap_tokenizer *)(uintptr_t)of; /* keeps the states of threads */
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_encoding, offsets)};
    tokmap_encoding full = {0};
    encode_run run = {0};
    tokmap_i_error_clear(err);
    tokmap_status status = tokmap_i_give_struct(out, &full, &kind, err);
    if (!status && !t)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "the tokenizer is NULL");
    if (!status)
        status = check_options(&run.options, options, err);
    if (status)
        return status;
    const uint64_t n_texts = run.options.n_texts;
    run.tokenizer = t->file.tokenizer;
    if (run.options.token_offsets && out->struct_size < sizeof full)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "token_offsets: the tokmap_encoding has no room");
    const char *no_ranges = tokenizer_get_info(run.tokenizer)->no_ranges;
    if (run.options.token_offsets && no_ranges)
        return FAIL(err, TOKMAP_ERR_UNSUPPORTED, "%s: cannot give offsets: %s", t->path, no_ranges);
    for (uint64_t i = 0; i < n_texts; i++) {
        const tokmap_text text = get_text(&run, i);
        if (!text.bytes && text.n_bytes > 0)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "text number %" PRIu64 " is NULL", i);
        if (text.n_bytes > TEXT_MAX_BYTES)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "text number %" PRIu64 " has %zu bytes: at most %zu", i, text.n_bytes,
                        TEXT_MAX_BYTES);
    }
    const bool ranges = run.options.token_offsets;
    if (make_jobs(&run) && begin_output(&run.output, n_texts, expect_ids(t, run.n_bytes), ranges) &&
        hire_workers(&run, t)) {
        atomic_store(&run.end, run.output.n_jobs);
        work_together(&run);
        status = find_failure(&run, err);
    } else {
        status = FAIL_MEMORY(err);
    }
    if (!status) {
        encode_output *made = &run.output;
        const bool wasteful = made->capacity - made->n_ids > made->n_ids / 2 + 1024;
        learn_ids(t, run.n_bytes, made->n_ids);
        if (wasteful)
            made->ids = result_memory_shrink(made->ids, made->n_ids * sizeof *made->ids);
        if (wasteful && ranges)
            made->ranges = result_memory_shrink(made->ranges, made->n_ids * sizeof *made->ranges);
        full.ids = made->ids;
        full.n_ids = made->n_ids;
        full.offsets = made->offsets;
        full.token_offsets = (tokmap_byte_range *)made->ranges;
        made->ids = NULL;
        made->offsets = NULL;
        made->ranges = NULL;
        status = tokmap_i_give_struct(out, &full, &kind, err);
    }
    for (uint32_t i = 0; i < run.n_workers; i++)
        tokmap_i_return_state(t, run.workers[i].state);
    tokmap_memory_free(run.output.ids);
    tokmap_memory_free(run.output.offsets);
    tokmap_memory_free(run.output.ranges);
    tokmap_i_mutex_free(&run.output.lock);
    tokmap_i_condition_free(&run.output.changed);
    free(run.output.jobs);
    free(run.workers);
    return status;
}
