/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - texts to ids, by as many threads as there is text for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/status.h"
#include "system/platform.h"
#include "system/process.h"
#include "system/platform_thread.h"
#include "text/utf8.h"
#include "tokenizer/file/special_place.h"
#include "tokenizer/library/encode_output.h"
#include "tokenizer/library/library.h"
#include "tokenizer/library/result_memory.h"

enum {
    MAX_THREADS = 1024
};

/* How many jobs a thread may have that wait for earlier ones of other threads. */
#define MAX_PENDING 4

typedef struct encode_run encode_run;

/* The ids of a job, in the kit of the worker. */
typedef struct pending_job {
    size_t job, first_id;
} pending_job;

/* A thread, and where it failed. */
typedef struct encode_worker {
    encode_run *run;
    encode_kit *kit;
    tokmap_i_thread thread;
    pending_job pending[MAX_PENDING];
    size_t n_pending;
    tokmap_status status;
    size_t failed_job;
    uint64_t failed_text;
    size_t failed_byte;
    char special[SPECIAL_NAME_BYTES];
} encode_worker;

struct encode_run {
    const tokenizer *tokenizer;
    text_list texts;
    encode_plan plan;
    encode_output output;
    encode_worker *workers;
    uint32_t n_workers;
    atomic_size_t next; /* job */
    atomic_size_t end;  /* jobs from here on are not needed: an earlier one failed */
};

/* ---- One job ---- */

static bool fail_at(encode_worker *w, tokmap_status status, uint64_t text, size_t byte)
{
    w->status = status;
    w->failed_text = text;
    w->failed_byte = byte;
    return false;
}

/* Bytes of text number `text` from byte `at` on, copied with padding after them. */
typedef struct text_part {
    uint64_t text;
    size_t at;
    const uint8_t *bytes;
    size_t n_bytes;
} text_part;

static bool encode_valid(encode_worker *w, text_part part, id_buffer *out)
{
    const unsigned flags = part.at == 0 ? TEXT_FIRST : 0;
    special_place place;
    switch (encoder_encode(w->kit->encoder, part.bytes, part.n_bytes, flags, out)) {
    case TOKENIZE_OK:
        return true;
    case TOKENIZE_SPECIAL:
        place = special_place_find(w->run->tokenizer, part.bytes, part.n_bytes);
        memcpy(w->special, place.name, sizeof w->special);
        return fail_at(w, TOKMAP_ERR_MISMATCH, part.text, part.at + place.at);
    case TOKENIZE_NO_MEMORY:
        break;
    }
    w->kit->broken = true;
    return fail_at(w, TOKMAP_ERR_MEMORY, part.text, part.at);
}

/* Includes zeros of the padding, which are valid, because whole vectors are checked faster. */
static size_t count_valid(const uint8_t *text, size_t n_bytes)
{
    const size_t n_whole = (n_bytes + TEXT_PADDING - 1) / TEXT_PADDING * TEXT_PADDING;
    const size_t n_valid = utf8_valid_prefix(text, n_whole);
    return MIN(n_valid, n_bytes);
}

static bool encode_part(encode_worker *w, text_part part, id_buffer *out)
{
    const size_t n_bytes = part.n_bytes;
    if (!tokenizer_takes_bytes(w->run->tokenizer))
        part.n_bytes = count_valid(part.bytes, n_bytes);
    if (!encode_valid(w, part, out))
        return false;
    return part.n_bytes == n_bytes ||
           fail_at(w, TOKMAP_ERR_ARGUMENT, part.text, part.at + part.n_bytes);
}

static const uint8_t *copy_text(encode_kit *kit, const uint8_t *text, size_t n_bytes)
{
    if (kit->capacity < n_bytes + TEXT_PADDING) {
        free(kit->text);
        kit->capacity = MAX(n_bytes, JOB_BYTES) + TEXT_PADDING;
        kit->text = malloc(kit->capacity);
        kit->capacity = kit->text ? kit->capacity : 0;
    }
    if (!kit->text)
        return NULL;
    if (text)
        memcpy(kit->text, text, n_bytes);
    memset(kit->text + n_bytes, 0, TEXT_PADDING);
    return kit->text;
}

/* From byte `at` of text number `index` to byte `to`. */
static bool encode_text(encode_worker *w, text_part part, size_t to, id_buffer *out)
{
    const uint8_t *bytes = (const uint8_t *)text_list_get(&w->run->texts, part.text).bytes;
    do {
        const uint8_t *own = bytes ? bytes + part.at : NULL;
        part.n_bytes = encode_part_bytes(w->run->tokenizer, own, to - part.at);
        part.bytes = copy_text(w->kit, own, part.n_bytes);
        if (!part.bytes)
            return fail_at(w, TOKMAP_ERR_MEMORY, part.text, part.at);
        if (!encode_part(w, part, out))
            return false;
        part.at += part.n_bytes;
    } while (part.at < to);
    return true;
}

/* Appends the ids of the job. The offsets of its texts count from its first id. */
static bool encode_job_texts(encode_worker *w, const encode_job *job)
{
    int64_t *ends = w->run->output.offsets + job->first + 1;
    id_buffer *ids = &w->kit->ids;
    const size_t first_id = ids->n;
    if (job->to > 0) {
        const text_part part = {.text = job->first, .at = job->from};
        if (!encode_text(w, part, job->to, ids))
            return false;
        if (job->n_ended > 0)
            ends[0] = (int64_t)(ids->n - first_id);
        return true;
    }
    for (uint64_t i = 0; i < job->n_ended; i++) {
        const text_part part = {.text = job->first + i};
        if (!encode_text(w, part, text_list_get(&w->run->texts, part.text).n_bytes, ids))
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
        if (encode_output_place(&w->run->output, p->job, w->kit->ids.ids + p->first_id, wait))
            n_placed++;
        else if (wait) /* the call fails */
            n_placed = w->n_pending;
        else
            break;
    }
    w->n_pending -= n_placed;
    memmove(w->pending, w->pending + n_placed, w->n_pending * sizeof *w->pending);
    if (w->n_pending == 0)
        w->kit->ids.n = 0;
}

static void note_failure(encode_worker *w, size_t k)
{
    size_t end = atomic_load(&w->run->end);
    w->failed_job = k;
    while (k < end && !atomic_compare_exchange_weak(&w->run->end, &end, k))
        continue;
    encode_output_stop(&w->run->output);
}

static void *encode_jobs(void *arg)
{
    encode_worker *w = arg;
    encode_run *run = w->run;
    w->kit->ids.n = 0;
    for (size_t k; (k = atomic_fetch_add(&run->next, 1)) < atomic_load(&run->end);) {
        const size_t first_id = w->kit->ids.n;
        if (!encode_job_texts(w, &run->plan.jobs[k])) {
            note_failure(w, k);
            return NULL;
        }
        encode_output_done(&run->output, k, w->kit->ids.n - first_id);
        w->pending[w->n_pending++] = (pending_job){k, first_id};
        place_pending(w, false);
    }
    place_pending(w, true);
    return NULL;
}

/* The calling thread works too, and does everything if no other can be started. */
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

/* Of the text that comes first. */
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
    const bool special = first->status == TOKMAP_ERR_MISMATCH;
    return FAIL_AT(err, first->status, first->failed_byte,
                   "byte %zu of text number %" PRIu64 " %s%s", first->failed_byte,
                   first->failed_text, special ? "begins the special token " : "is not valid UTF-8",
                   first->special);
}

/* ---- The call ---- */

/* Calls whose ids fit the memory that is taken first are faster, and the C library keeps freed
 * blocks only for those of the same size. */
static size_t expect_ids(const tokmap_tokenizer *t, const encode_plan *plan)
{
    const unsigned known = atomic_load_explicit(&t->ids_per_kib, memory_order_relaxed);
    const size_t n_kib = plan->n_bytes / 1024 + 1;
    return n_kib * (known > 0 ? known : 320);
}

static void learn_ids(tokmap_tokenizer *t, const encode_plan *plan, size_t n_ids)
{
    const size_t n_kib = plan->n_bytes / 1024;
    if (n_kib >= 16)
        atomic_store_explicit(&t->ids_per_kib, (unsigned)MIN(n_ids / n_kib + 1, 1 << 16),
                              memory_order_relaxed);
}

static uint32_t *finish_ids(const encode_output *o)
{
    const bool wasteful = o->capacity - o->n_ids > o->n_ids / 2 + 1024;
    return wasteful ? result_memory_shrink(o->ids, o->n_ids * sizeof *o->ids) : o->ids;
}

static uint32_t count_workers(const encode_run *run, uint32_t n_threads)
{
    const size_t most = MIN(run->plan.n, MAX_THREADS);
    if (most <= 1)
        return 1;
    return (uint32_t)MIN(most, n_threads ? n_threads : tokmap_i_n_processors());
}

/* At least one worker has a kit, or memory ran out. */
static bool hire_workers(encode_run *run, tokmap_tokenizer *t, const tokmap_encode_options *o)
{
    const uint32_t n = count_workers(run, o->n_threads);
    run->workers = calloc(n, sizeof *run->workers);
    for (; run->workers && run->n_workers < n; run->n_workers++) {
        encode_worker *w = &run->workers[run->n_workers];
        w->run = run;
        w->kit = tokmap_i_take_kit(t);
        if (!w->kit)
            break;
        encoder_set_specials(w->kit->encoder, (specials_policy)o->specials);
    }
    return run->n_workers > 0;
}

static tokmap_status encode_all(encode_run *run, tokmap_tokenizer *t,
                                const tokmap_encode_options *o, tokmap_error *err)
{
    if (!encode_plan_make(&run->plan, &run->texts, run->tokenizer) ||
        !encode_output_begin(&run->output, &run->plan, run->texts.n, expect_ids(t, &run->plan)) ||
        !hire_workers(run, t, o))
        return FAIL_MEMORY(err);
    atomic_store(&run->end, run->plan.n);
    work_together(run);
    return find_failure(run, err);
}

static tokmap_status check_texts(const text_list *texts, tokmap_error *err)
{
    for (uint64_t i = 0; i < texts->n; i++) {
        const tokmap_text text = text_list_get(texts, i);
        if (!text.bytes && text.n_bytes > 0)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "text number %" PRIu64 " is NULL", i);
    }
    return TOKMAP_OK;
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
    return TOKMAP_OK;
}

static void free_run(encode_run *run, tokmap_tokenizer *t)
{
    for (uint32_t i = 0; i < run->n_workers; i++)
        tokmap_i_return_kit(t, run->workers[i].kit);
    encode_output_free(&run->output);
    encode_plan_free(&run->plan);
    free(run->workers);
}

tokmap_status tokmap_tokenizer_encode(tokmap_tokenizer *t, const tokmap_encode_options *options,
                                      tokmap_encoding *out, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_encoding, offsets)};
    tokmap_encoding full = {0};
    tokmap_encode_options o;
    tokmap_i_error_clear(err);
    tokmap_status status = tokmap_i_give_struct(out, &full, &kind, err);
    if (!status && !t)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "the tokenizer is NULL");
    if (!status)
        status = check_options(&o, options, err);
    if (status)
        return status;
    encode_run run = {
        .tokenizer = t->file.tokenizer,
        .texts = {(const uint8_t *)o.texts, o.text_stride, o.n_texts},
    };
    status = check_texts(&run.texts, err);
    if (status)
        return status;
    status = encode_all(&run, t, &o, err);
    if (!status) {
        learn_ids(t, &run.plan, run.output.n_ids);
        full.ids = finish_ids(&run.output);
        full.n_ids = run.output.n_ids;
        full.offsets = run.output.offsets;
        run.output.ids = NULL;
        run.output.offsets = NULL;
        status = tokmap_i_give_struct(out, &full, &kind, err);
    }
    free_run(&run, t);
    return status;
}
