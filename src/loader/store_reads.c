/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/store_reads.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "dataset/lane.h"
#include "dataset/store.h"
#include "dataset/token_files.h"
#include "loader/fetch_pages.h"
#include "system/platform_thread.h"

enum {
    MOST_THREADS = 16,
    BLOCKS_AT_ONCE = 32, /* that a thread reads, and keeps in memory */
    CANCEL_NS = 10000000 /* until reads are cancelled again: they may not have begun yet */
};

/* A row that was started. */
typedef struct job {
    uint32_t slot, row;
    const tokmap_dataset *ds;
    const tokmap_sample *at;
    uint8_t *to;
    tokmap_error *failure; /* NULL: it was read, or there is no memory for the error */
    tokmap_status status;
} job;

/* A list of jobs that is a ring. */
typedef struct job_ring {
    job *jobs;
    uint64_t first, n, room;
} job_ring;

/* A block that is read to be checked. */
typedef struct block {
    const tokmap_dataset *ds;
    tokmap_i_token_piece piece;
    uint8_t *bytes; /* NULL: this is another part of the block before it in the sorted list */
    uint8_t checksum[8];
    uint64_t number;
    /* The part of it that a row needs: */
    uint64_t skip; /* bytes before the part */
    size_t n_bytes;
    uint8_t *to;
} block;

/* A thread, and the jobs that it has. */
typedef struct worker {
    tokmap_i_store_reads *r;
    tokmap_i_thread thread;
    job *jobs;
    size_t n_jobs, capacity;
    tokmap_i_store_batch batch;
    block *blocks;
    size_t n_blocks, block_capacity;
    const tokmap_byte_read *reading; /* under the lock; NULL: not in a call of the source */
} worker;

struct tokmap_i_store_reads {
    bool verifies;
    worker workers[MOST_THREADS];
    tokmap_i_mutex mutex;
    tokmap_i_condition work, done; /* the threads wait for work, and the caller for done */
    /* Under the lock: */
    uint32_t n_workers, n_idle;
    job_ring waiting, ended;
    uint64_t n_in_flight;
    bool stop, draining, interrupted;
    _Atomic uint64_t n_bytes;
};

static void put(job_ring *ring, const job *j)
{
    ring->jobs[(ring->first + ring->n++) % ring->room] = *j;
}

static job *job_at(const job_ring *ring, uint64_t i)
{
    return &ring->jobs[(ring->first + i) % ring->room];
}

static job *front(const job_ring *ring)
{
    return job_at(ring, 0);
}

static void drop_front(job_ring *ring)
{
    ring->first++;
    ring->n--;
}

/* ---- The threads. fail_front, take_jobs and end_jobs are called with the lock. ---- */

static bool fits(const job *first, const job *next)
{
    return first->ds->store ? tokmap_i_store_same(first->ds->store, next->ds->store)
                            : !next->ds->store;
}

/* Ends the row that waits first, because there is no memory to read it. */
static void fail_front(tokmap_i_store_reads *r)
{
    job *j = front(&r->waiting);
    j->status = TOKMAP_ERR_MEMORY;
    put(&r->ended, j);
    drop_front(&r->waiting);
    tokmap_i_condition_broadcast(&r->done);
}

/* Drops what was taken of the first n rows that wait, whose ds is NULL. */
static void close_gaps(job_ring *ring, uint64_t n)
{
    uint64_t n_kept = 0;
    for (uint64_t i = n; i-- > 0;)
        if (job_at(ring, i)->ds)
            *job_at(ring, n - ++n_kept) = *job_at(ring, i);
    ring->first += n - n_kept;
    ring->n -= n - n_kept;
}

/* Takes the rows of the first step that waits, and of others if more wait than threads do; only of
 * one store, also if rows of others are between them. Returns false if there is no memory for
 * them. */
static bool take_jobs(worker *w)
{
    tokmap_i_store_reads *r = w->r;
    const uint64_t n_others = r->n_idle + (MOST_THREADS - r->n_workers);
    const uint64_t share = div_up(r->waiting.n, n_others + 1);
    uint64_t i = 0;
    w->n_jobs = 0;
    for (; i < r->waiting.n; i++) {
        job *j = job_at(&r->waiting, i);
        if (w->n_jobs >= MAX(share, 1) && j->slot != w->jobs[0].slot)
            break;
        if (w->n_jobs > 0 && !fits(&w->jobs[0], j))
            continue;
        if (!array_reserve(&w->jobs, &w->capacity, w->n_jobs + 1, sizeof *w->jobs)) {
            if (w->n_jobs == 0)
                fail_front(r);
            break;
        }
        w->jobs[w->n_jobs++] = *j;
        j->ds = NULL;
    }
    if (w->n_jobs > 0)
        close_gaps(&r->waiting, i);
    r->n_in_flight += w->n_jobs;
    return w->n_jobs > 0;
}

/* Notes the blocks that have bytes of a piece. */
static bool add_blocks(worker *w, const tokmap_dataset *ds, const tokmap_i_token_piece *p,
                       uint8_t *to)
{
    const uint64_t end = p->first_byte + p->n_bytes;
    for (uint64_t at = p->first_byte; at < end;) {
        const uint64_t number =
            p->file->first_block + (at - p->file->token_offset) / TOKMAP_I_BLOCK_BYTES;
        const tokmap_i_token_piece whole = tokmap_i_block_piece(ds, number);
        const uint64_t n = MIN(end, whole.first_byte + whole.n_bytes) - at;
        if (!array_reserve(&w->blocks, &w->block_capacity, w->n_blocks + 1, sizeof *w->blocks))
            return false;
        w->blocks[w->n_blocks++] = (block){.ds = ds,
                                           .piece = whole,
                                           .number = number,
                                           .skip = at - whole.first_byte,
                                           .n_bytes = (size_t)n,
                                           .to = to + (at - p->first_byte)};
        at += n;
    }
    return true;
}

static int compare_blocks(const void *a, const void *b)
{
    const block *x = a, *y = b;
    if (x->ds != y->ds)
        return x->ds < y->ds ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Adds the checksum of a block. The file of a lane has the checksums of the lane. */
static bool add_checksum(tokmap_i_store_batch *batch, block *b)
{
    if (b->ds->check_file) {
        const uint64_t in_file = b->number - b->piece.file->first_block;
        const tokmap_i_token_piece piece = {.file = b->piece.file,
                                            .first_byte = TOKMAP_I_LANE_CHECKSUMS_AT +
                                                          sizeof b->checksum * in_file,
                                            .n_bytes = sizeof b->checksum};
        return tokmap_i_store_add(batch, b->ds, &piece, b->checksum);
    }
    const tokmap_i_section *section = tokmap_i_section_find(&b->ds->header, TOKMAP_I_CHECKSUMS);
    return tokmap_i_store_add_index(batch, b->ds, section->offset + sizeof b->checksum * b->number,
                                    sizeof b->checksum, b->checksum);
}

/* Adds the ranges of a row; one on a disk is read at once. */
static tokmap_status add_row(worker *w, const job *j, tokmap_error *err)
{
    const uint32_t width = j->ds->header.token_bytes;
    tokmap_status status = TOKMAP_OK;
    for (size_t k = 0; k < j->at->n_pieces && !status; k++) {
        const tokmap_piece *piece = &j->at->pieces[k];
        tokmap_i_token_range rest = {j->ds, piece->first_token, piece->n_tokens};
        uint8_t *to = j->to + (size_t)piece->place * width;
        atomic_fetch_add_explicit(&w->r->n_bytes, (uint64_t)piece->n_tokens * width,
                                  memory_order_relaxed);
        if (!j->ds->store) {
            status = tokmap_i_pages_read(rest, to, err);
            continue;
        }
        while (rest.n_tokens > 0 && !status) {
            const tokmap_i_token_piece p = tokmap_i_range_next_piece(&rest);
            const bool is_added = w->r->verifies ? add_blocks(w, j->ds, &p, to)
                                                 : tokmap_i_store_add(&w->batch, j->ds, &p, to);
            status = is_added ? TOKMAP_OK : FAIL_MEMORY(err);
            to += p.n_bytes;
        }
    }
    return status;
}

/* Lets the caller cancel the call of the source, unless the rows are not wanted any more. */
static tokmap_status read_batch(worker *w, tokmap_error *err)
{
    tokmap_i_store_reads *r = w->r;
    tokmap_i_mutex_lock(&r->mutex);
    const bool is_wanted = !r->draining && !r->stop;
    w->reading = is_wanted && w->batch.n > 0 ? w->batch.reads : NULL;
    tokmap_i_mutex_unlock(&r->mutex);
    const tokmap_status status = is_wanted
                                     ? tokmap_i_store_read(&w->batch, err)
                                     : FAIL(err, TOKMAP_ERR_IO, "the rows are not wanted any more");
    tokmap_i_mutex_lock(&r->mutex);
    w->reading = NULL;
    tokmap_i_mutex_unlock(&r->mutex);
    w->batch.n = 0;
    return status;
}

/* Reads blocks of the sorted list from number *next on, each once, although many rows may have
 * parts of it. */
static tokmap_status read_blocks(worker *w, size_t *next, tokmap_error *err)
{
    size_t n = 0;
    for (; *next < w->n_blocks; ++*next) {
        block *b = &w->blocks[*next];
        if (n > 0 && compare_blocks(b - 1, b) == 0)
            continue;
        if (n++ == BLOCKS_AT_ONCE)
            break;
        b->bytes = malloc((size_t)b->piece.n_bytes);
        if (!b->bytes || !tokmap_i_store_add(&w->batch, b->ds, &b->piece, b->bytes) ||
            !add_checksum(&w->batch, b))
            return FAIL_MEMORY(err);
    }
    return read_batch(w, err);
}

/* Compares a block with its checksum, and copies what rows need of it. */
static tokmap_status use_block(const block *b, const block *end, tokmap_error *err)
{
    const uint8_t *bytes = b->bytes;
    if (tokmap_i_checksum(bytes, (size_t)b->piece.n_bytes) != le_get64(b->checksum))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, b->piece.first_byte,
                       "%s: damaged: the MiB from byte %" PRIu64 " does not match its checksum",
                       b->piece.file->path, b->piece.first_byte);
    do
        memcpy(b->to, bytes + b->skip, b->n_bytes);
    while (++b < end && !b->bytes);
    return TOKMAP_OK;
}

static tokmap_status use_blocks(worker *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    qsort(w->blocks, w->n_blocks, sizeof *w->blocks, compare_blocks);
    for (size_t next = 0, first = 0; next < w->n_blocks && !status; first = next) {
        status = read_blocks(w, &next, err);
        for (size_t i = first; i < next; i++) {
            if (w->blocks[i].bytes && !status)
                status = use_block(&w->blocks[i], w->blocks + next, err);
        }
        for (size_t i = first; i < w->n_blocks; i++) {
            free(w->blocks[i].bytes);
            w->blocks[i].bytes = NULL;
        }
    }
    return status;
}

static tokmap_status read_jobs(worker *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    w->batch.n = w->n_blocks = 0;
    for (size_t i = 0; i < w->n_jobs && !status; i++)
        status = add_row(w, &w->jobs[i], err);
    if (status)
        return status;
    return w->n_blocks > 0 ? use_blocks(w, err) : read_batch(w, err);
}

static void end_jobs(worker *w, tokmap_status status, const tokmap_error *err)
{
    tokmap_i_store_reads *r = w->r;
    r->n_in_flight -= w->n_jobs;
    for (size_t i = 0; i < w->n_jobs && !r->draining; i++) {
        job *j = &w->jobs[i];
        j->status = status;
        j->failure = status ? malloc(sizeof *j->failure) : NULL;
        if (j->failure)
            *j->failure = *err;
        put(&r->ended, j);
    }
    tokmap_i_condition_broadcast(&r->done);
}

static void *run_worker(void *context)
{
    worker *w = context;
    tokmap_i_store_reads *r = w->r;
    tokmap_error err;
    tokmap_i_thread_name("tokmap-store");
    tokmap_i_mutex_lock(&r->mutex);
    while (!r->stop) {
        if (r->waiting.n == 0) {
            r->n_idle++;
            tokmap_i_condition_wait(&r->work, &r->mutex);
            r->n_idle--;
            continue;
        }
        if (!take_jobs(w))
            continue;
        tokmap_i_mutex_unlock(&r->mutex);
        const tokmap_status status = read_jobs(w, &err);
        tokmap_i_mutex_lock(&r->mutex);
        end_jobs(w, status, &err);
    }
    tokmap_i_mutex_unlock(&r->mutex);
    return NULL;
}

/* Starts one more thread, with the lock. */
static int start_worker(tokmap_i_store_reads *r)
{
    worker *w = &r->workers[r->n_workers];
    w->r = r;
    const int error = tokmap_i_thread_start(&w->thread, run_worker, w);
    r->n_workers += !error;
    return error;
}

/* ---- The caller ---- */

static bool open_ring(job_ring *ring, uint64_t room)
{
    ring->room = room;
    ring->jobs = malloc((size_t)room * sizeof *ring->jobs);
    return ring->jobs != NULL;
}

tokmap_status tokmap_i_store_reads_open(tokmap_i_store_reads **out, const tokmap_i_fetch_options *o,
                                        uint32_t n_slots, tokmap_error *err)
{
    const uint64_t room = (uint64_t)n_slots * o->max_rows;
    tokmap_i_store_reads *r = *out = calloc(1, sizeof *r);
    if (!r)
        return FAIL_MEMORY(err);
    r->verifies = o->verifies;
    tokmap_i_mutex_init(&r->mutex);
    tokmap_i_condition_init(&r->work);
    tokmap_i_condition_init(&r->done);
    const bool has_room = open_ring(&r->waiting, room) && open_ring(&r->ended, room);
    tokmap_i_mutex_lock(&r->mutex);
    const int error = has_room ? start_worker(r) : 0;
    tokmap_i_mutex_unlock(&r->mutex);
    if (has_room && !error)
        return TOKMAP_OK;
    tokmap_i_store_reads_close(r, false);
    *out = NULL;
    return has_room ? FAIL_IO(err, error, "cannot start a thread that reads from a store")
                    : FAIL_MEMORY(err);
}

static void drop_ended(tokmap_i_store_reads *r)
{
    for (; r->ended.n > 0; drop_front(&r->ended))
        free(front(&r->ended)->failure);
}

/* Cancels what is being read, with the lock, and waits for it. */
static void cancel_all(tokmap_i_store_reads *r)
{
    r->waiting.n = 0;
    r->draining = true;
    while (r->n_in_flight > 0) {
        for (uint32_t i = 0; i < r->n_workers; i++) {
            const worker *w = &r->workers[i];
            if (w->reading)
                tokmap_i_store_cancel(w->batch.parts[0].ds->store, w->reading);
        }
        (void)tokmap_i_condition_wait_until(&r->done, &r->mutex, tokmap_i_now_ns() + CANCEL_NS);
    }
    drop_ended(r);
    r->draining = false;
}

void tokmap_i_store_reads_drain(tokmap_i_store_reads *r)
{
    tokmap_i_mutex_lock(&r->mutex);
    cancel_all(r);
    tokmap_i_mutex_unlock(&r->mutex);
}

void tokmap_i_store_reads_close(tokmap_i_store_reads *r, bool is_child)
{
    if (!r)
        return;
    if (!is_child) {
        tokmap_i_mutex_lock(&r->mutex);
        cancel_all(r);
        r->stop = true;
        tokmap_i_condition_broadcast(&r->work);
        tokmap_i_mutex_unlock(&r->mutex);
        for (uint32_t i = 0; i < r->n_workers; i++)
            tokmap_i_thread_join(r->workers[i].thread);
        tokmap_i_mutex_free(&r->mutex); /* in a child, threads would still seem to use them */
        tokmap_i_condition_free(&r->work);
        tokmap_i_condition_free(&r->done);
    }
    for (uint32_t i = 0; i < r->n_workers && !is_child; i++) {
        free(r->workers[i].jobs);
        free(r->workers[i].blocks);
        tokmap_i_store_free(&r->workers[i].batch);
    }
    free(r->waiting.jobs);
    free(r->ended.jobs);
    free(r);
}

void tokmap_i_store_reads_start(tokmap_i_store_reads *r, uint32_t slot, uint32_t row,
                                const tokmap_i_fetch_row *tokens, const tokmap_dataset *ds,
                                void *to)
{
    const job j = {.slot = slot, .row = row, .ds = ds, .at = &tokens->at, .to = to};
    tokmap_i_mutex_lock(&r->mutex);
    put(&r->waiting, &j);
    tokmap_i_mutex_unlock(&r->mutex);
}

void tokmap_i_store_reads_go(tokmap_i_store_reads *r)
{
    tokmap_i_mutex_lock(&r->mutex);
    if (r->n_idle == 0 && r->waiting.n > 0 && r->n_workers < MOST_THREADS)
        (void)start_worker(r); /* if none starts, the threads that exist take the rows */
    tokmap_i_mutex_unlock(&r->mutex);
    tokmap_i_condition_signal(&r->work);
}

bool tokmap_i_store_reads_take(tokmap_i_store_reads *r, uint64_t until_ns,
                               tokmap_i_ring_result *out, tokmap_error *err)
{
    tokmap_i_mutex_lock(&r->mutex);
    bool may_wait = until_ns > 0;
    while (may_wait && !r->interrupted && r->ended.n == 0 && r->waiting.n + r->n_in_flight > 0) {
        if (until_ns == UINT64_MAX)
            tokmap_i_condition_wait(&r->done, &r->mutex);
        else
            may_wait = tokmap_i_condition_wait_until(&r->done, &r->mutex, until_ns);
    }
    r->interrupted &= until_ns == 0;
    const bool is_done = r->ended.n > 0;
    if (is_done) {
        const job *j = front(&r->ended);
        *out = (tokmap_i_ring_result){j->slot, j->row, j->status, j->to};
        if (j->failure)
            *err = *j->failure;
        else if (j->status)
            FAIL_MEMORY(err);
        free(j->failure);
        drop_front(&r->ended);
    }
    tokmap_i_mutex_unlock(&r->mutex);
    return is_done;
}

void tokmap_i_store_reads_interrupt(tokmap_i_store_reads *r)
{
    tokmap_i_mutex_lock(&r->mutex);
    r->interrupted = true;
    tokmap_i_condition_broadcast(&r->done);
    tokmap_i_mutex_unlock(&r->mutex);
}

uint64_t tokmap_i_store_reads_n_started(tokmap_i_store_reads *r)
{
    tokmap_i_mutex_lock(&r->mutex);
    const uint64_t n = r->waiting.n + r->n_in_flight + r->ended.n;
    tokmap_i_mutex_unlock(&r->mutex);
    return n;
}

uint64_t tokmap_i_store_reads_bytes(const tokmap_i_store_reads *r)
{
    return atomic_load_explicit(&r->n_bytes, memory_order_relaxed);
}
