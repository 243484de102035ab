/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - the thread that reads ahead, and the steps that it hands to its caller.
 *
 * Steps are numbered from 0 since the last restart, and step i has slot i % (n_steps + 1). There is
 * one slot more than look-ahead steps, for the step that is handed out.
 *
 *     0 .. n_given_back .. head ............ n_planned
 *
 * Step head - 1 is handed out, head is the next to hand out, and n_planned the next to plan.
 *
 * The thread plans steps up to the first slot that is still in use, and reads the planned ones: one
 * at a time (READ), all at once (DIRECT, STORE), or the next few while the others are being read
 * into the page cache (POPULATE). Only the thread accesses a step that it is planning or reading.
 * The lock protects the numbers and the states, and is never held for long. */
#include "loader/fetch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "loader/fetch_pages.h"
#include "loader/fetch_ring.h"
#include "loader/latency.h"
#include "loader/look_ahead.h"
#include "loader/store_reads.h"
#include "system/platform_thread.h"

enum {
    MAX_ROWS = 1 << 26, /* of all steps together */
    TOKEN_BYTES = 4,    /* wider ones, of lanes, count as several */
    MAPPED_STEPS = 8,   /* ready at a time, with POPULATE: fewer would wake the thread more often */
    FAST_STEPS = 64,    /* steps after which data count as being in memory, until a step is slow */
    TIMED_STEPS = 32,   /* steps of a store between two looks at how long they take */
    LEAVE_NS = 2000000, /* STORE: after `next`, before more steps are planned */
    LONG_STEP_NS = 10 * LEAVE_NS,
    /* more than 1, so that the look-ahead grows after a restart; less than all, so that the first
     * step is ready early */
    PLANS_AT_ONCE = 2
};

typedef enum step_state {
    STEP_EMPTY,
    STEP_PLANNED, /* and being read */
    STEP_READY,
    STEP_FAILED,
    STEP_AGAIN, /* failed, must be tried again */
    STEP_END
} step_state;

typedef struct step {
    step_state state; /* protected by the lock */
    tokmap_status status;
    tokmap_error err;
    uint32_t n_rows;
    uint32_t n_left;     /* rows that the ring still has to read */
    uint64_t planned_ns; /* STORE: when it was planned */
    bool slow;           /* reading it took longer than it does from memory */
    tokmap_i_fetch_row *rows;
    tokmap_i_fetch_pieces pieces;
} step;

struct tokmap_i_fetch {
    tokmap_i_fetch_options o;
    _Atomic uint32_t n_steps; /* read ahead; there is one slot more. A restart changes it */
    step *steps;              /* of each slot */
    tokmap_i_fetch_row *rows;
    tokmap_i_ring *ring;         /* NULL with POPULATE */
    tokmap_i_store_reads *reads; /* only with STORE */
    _Atomic uint32_t n_ahead;    /* of n_steps, how many are read ahead; STORE changes it */
    bool expects;                /* the read order was announced to the system */
    bool started;
    tokmap_i_thread thread;
    tokmap_i_mutex mutex;
    tokmap_i_condition work, settled; /* the thread waits for work; the caller for settled */

    /* Under the lock: */
    bool stop, restarted;    /* the thread clears restarted */
    bool idle;               /* the thread waits for work */
    bool asked;              /* the caller has asked for a step */
    bool is_waiting;         /* the caller waits for a step */
    uint64_t quiet_until_ns; /* STORE: until then no step is planned, unless the caller waits */
    uint32_t n_wanted;       /* n_steps from the next restart on */
    uint64_t first, stride;  /* positions */
    uint32_t n_rows;         /* of a step; 0: there are none */
    uint64_t head, n_given_back;
    uint64_t n_planned;

    uint64_t n_finished; /* written by the thread */

    /* Used only by the thread: */
    uint64_t n_dropped;
    uint32_t n_fast; /* steps since the last slow one */
    bool ended;
    tokmap_i_latency *arrivals; /* STORE: from planning a step until it is there; else NULL */

    atomic_bool hurry; /* stop or restarted: the rows that are being read are no longer wanted */
    _Atomic uint64_t bytes_read;
    /* Used only by the caller: */
    uint64_t n_waits, waited_ns;
    uint64_t ns_of_head; /* that it has waited for step `head` */
    bool waits_for_head; /* it has waited */
    bool has_tried;      /* step `head` was tried since the caller began to wait for it */
    bool is_late, adapts;
    uint64_t begun_ns; /* when the first step since the last restart came */
    tokmap_i_look_ahead look_ahead;
    uint64_t returned_ns, step_ns; /* STORE: when `next` returned; how long the caller takes */
    _Atomic uint64_t slowest_ns;   /* STORE: within this, 999 of 1,000 steps arrive */
    tokmap_i_latency waits;
};

/* Whether many rows are read at the same time, and taken when they are done. */
static bool is_async(const tokmap_i_fetch *f)
{
    return f->o.io == TOKMAP_IO_DIRECT || f->o.io == TOKMAP_IO_STORE;
}

static step *step_at(const tokmap_i_fetch *f, uint64_t i)
{
    return &f->steps[i % (f->n_steps + 1)];
}

bool tokmap_i_fetch_add_pieces(tokmap_i_fetch_pieces *to, const tokmap_piece *pieces, size_t n)
{
    if (n == 0)
        return true;
    if (!array_reserve(&to->list, &to->capacity, to->n + n, sizeof *pieces))
        return false;
    memcpy(to->list + to->n, pieces, n * sizeof *pieces);
    to->n += n;
    return true;
}

static tokmap_i_token_range range_of(const tokmap_i_fetch *f, const tokmap_i_fetch_row *row,
                                     size_t piece)
{
    const tokmap_piece *p = &row->at.pieces[piece];
    return (tokmap_i_token_range){f->o.datasets[row->dataset], p->first_token, p->n_tokens};
}

/* ---- Steps, in the thread, without the lock ---- */

static void start_row(tokmap_i_fetch *f, uint32_t slot, uint32_t r)
{
    const tokmap_i_fetch_row *row = &f->steps[slot].rows[r];
    if (f->reads)
        tokmap_i_store_reads_start(f->reads, slot, r, row, f->o.datasets[row->dataset],
                                   tokmap_i_ring_place(f->ring, slot, r));
    else
        tokmap_i_ring_start(f->ring, slot, r, row);
}

static tokmap_status plan_step(tokmap_i_fetch *f, uint64_t i, uint64_t position, uint32_t n_rows)
{
    step *s = step_at(f, i);
    s->n_rows = n_rows;
    s->n_left = 0;
    s->planned_ns = f->reads ? tokmap_i_now_ns() : 0;
    s->pieces.n = 0;
    if (f->o.ahead)
        f->o.ahead(f->o.context, position);
    const tokmap_status status =
        f->o.plan(f->o.context, position, n_rows, s->rows, &s->pieces, &s->err);
    if (status)
        return status;
    for (uint32_t r = 0; r < n_rows; r++)
        s->n_left += s->rows[r].at.n_pieces > 0;
    s->status = TOKMAP_OK;
    const bool asks = !is_async(f) && !f->o.ahead && f->n_fast < FAST_STEPS;
    size_t n_pieces = 0;
    for (uint32_t r = 0; r < n_rows; r++) {
        s->rows[r].at.pieces = s->pieces.list + n_pieces;
        n_pieces += s->rows[r].at.n_pieces;
        if (is_async(f) && s->rows[r].at.n_pieces > 0)
            start_row(f, (uint32_t)(i % (f->n_steps + 1)), r);
        for (size_t k = 0; k < s->rows[r].at.n_pieces && asks; k++)
            tokmap_i_pages_will_need(range_of(f, &s->rows[r], k));
    }
    if (f->reads)
        tokmap_i_store_reads_go(f->reads);
    return TOKMAP_OK;
}

/* Reads a row without the map, each piece to its position. */
static tokmap_status copy_row(tokmap_i_fetch *f, step *s, tokmap_i_fetch_row *row, void *to)
{
    tokmap_status status = TOKMAP_OK;
    row->tokens = to;
    for (size_t k = 0; k < row->at.n_pieces && !status; k++) {
        const tokmap_i_token_range range = range_of(f, row, k);
        const uint32_t width = range.dataset->header.token_bytes;
        atomic_fetch_add_explicit(&f->bytes_read, range.n_tokens * width, memory_order_relaxed);
        status = tokmap_i_pages_read(range, (uint8_t *)to + (size_t)row->at.pieces[k].place * width,
                                     &s->err);
    }
    return status;
}

/* Faults in the pieces of a row, unless they are mapped. */
static tokmap_status fault_in_row(tokmap_i_fetch *f, step *s, tokmap_i_fetch_row *row)
{
    const void *tokens = NULL;
    tokmap_status status = TOKMAP_OK;
    for (size_t k = 0; k < row->at.n_pieces && !row->is_mapped && !status; k++)
        status = tokmap_i_pages_fault_in(range_of(f, row, k), &tokens, &s->err);
    if (row->is_mapped)
        tokens = tokmap_i_pages_in_map(range_of(f, row, 0));
    row->tokens = row->at.n_pieces == 1 ? tokens : NULL;
    return status;
}

/* Reads a step. Checks, with POPULATE, that no file has become shorter, once all rows are in
 * memory. */
static tokmap_status finish_step(tokmap_i_fetch *f, uint64_t i)
{
    step *s = step_at(f, i);
    const uint32_t slot = (uint32_t)(i % (f->n_steps + 1));
    const bool copies = f->o.io == TOKMAP_IO_READ;
    tokmap_i_known_sizes known = {0};
    tokmap_status status = TOKMAP_OK;
    for (uint32_t r = 0; r < s->n_rows && !status && !atomic_load(&f->hurry); r++)
        status = copies ? copy_row(f, s, &s->rows[r], tokmap_i_ring_place(f->ring, slot, r))
                        : fault_in_row(f, s, &s->rows[r]);
    if (copies || atomic_load(&f->hurry))
        return status;
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (size_t k = 0; k < s->rows[r].at.n_pieces && !status; k++)
            status = tokmap_i_pages_check(range_of(f, &s->rows[r], k), true, &known, &s->err);
    return status;
}

/* ---- Work of the thread. Called with the lock, which each function releases while it works; each
 *      returns whether there was something to do. ---- */

static void settle_step(tokmap_i_fetch *f, uint64_t i, step_state state, tokmap_status status)
{
    step *s = step_at(f, i);
    s->status = status;
    s->state = status == TOKMAP_END ? STEP_END : status ? STEP_FAILED : state;
    f->ended |= status == TOKMAP_END;
    if (s->state != STEP_PLANNED)
        tokmap_i_condition_signal(&f->settled);
}

static bool drop_step(tokmap_i_fetch *f)
{
    if (!f->o.drop_behind || is_async(f))
        f->n_dropped = f->n_given_back;
    if (f->n_dropped == f->n_given_back)
        return false;
    tokmap_i_mutex_unlock(&f->mutex);
    const step *s = step_at(f, f->n_dropped);
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (size_t k = 0; k < s->rows[r].at.n_pieces; k++)
            tokmap_i_pages_forget(range_of(f, &s->rows[r], k), f->o.io == TOKMAP_IO_POPULATE);
    tokmap_i_mutex_lock(&f->mutex);
    f->n_dropped++;
    return true;
}

/* Plans one more step. With `again`, plans the next step to hand out if it has failed, and it is
 * then read again. */
static bool plan_one(tokmap_i_fetch *f, bool again)
{
    const uint64_t i = again ? f->head : f->n_planned;
    const bool wanted = again ? step_at(f, i)->state == STEP_AGAIN
                              : !f->ended && f->n_rows > 0 && i <= f->n_dropped + f->n_ahead;
    if (f->restarted || !wanted)
        return false;
    const uint64_t position = f->first + i * f->stride;
    const uint32_t n_rows = f->n_rows;
    const bool reads = again && !is_async(f);
    tokmap_i_mutex_unlock(&f->mutex);
    tokmap_status status = plan_step(f, i, position, n_rows);
    if (!status && reads)
        status = finish_step(f, i);
    tokmap_i_mutex_lock(&f->mutex);
    settle_step(f, i, reads ? STEP_READY : STEP_PLANNED, status);
    f->n_planned += !again;
    return true;
}

static uint64_t n_mapped_steps(const tokmap_i_fetch *f)
{
    return MIN(MAPPED_STEPS, div_up(f->n_steps, 2));
}

static bool is_slow(const tokmap_i_fetch *f, const step *s, uint64_t ns)
{
    uint64_t n_tokens = 0;
    for (uint32_t r = 0; r < s->n_rows; r++) {
        const tokmap_i_fetch_row *row = &s->rows[r];
        const uint32_t token_bytes = f->o.datasets[row->dataset]->header.token_bytes;
        n_tokens += row->at.n_tokens * (uint64_t)MAX(token_bytes / TOKEN_BYTES, 1);
    }
    return tokmap_i_is_slow(ns, s->pieces.n, n_tokens);
}

static bool finish_next(tokmap_i_fetch *f)
{
    const uint64_t i = f->n_finished;
    const bool all = f->o.io == TOKMAP_IO_READ;
    if (f->restarted || i >= f->n_planned || (!all && i >= f->head + n_mapped_steps(f)))
        return false;
    f->n_finished++;
    if (step_at(f, i)->state != STEP_PLANNED)
        return true;
    tokmap_i_mutex_unlock(&f->mutex);
    const uint64_t since_ns = tokmap_i_now_ns();
    const tokmap_status status = finish_step(f, i);
    const bool slow = is_slow(f, step_at(f, i), tokmap_i_now_ns() - since_ns);
    f->n_fast = slow ? 0 : f->n_fast + 1;
    tokmap_i_mutex_lock(&f->mutex);
    step_at(f, i)->slow = slow;
    settle_step(f, i, STEP_READY, status);
    return true;
}

/* Whether the caller has just left `next`, and needs no step soon. Functions that read from a store
 * may need what the caller needs to go on, such as the lock of an interpreter. */
static bool is_quiet(const tokmap_i_fetch *f)
{
    return f->reads && !f->is_waiting && tokmap_i_now_ns() < f->quiet_until_ns;
}

/* Waits until until_ns: 0: not at all; UINT64_MAX: until there is a row. The ring knows only
 * these two. */
static bool take_row(tokmap_i_fetch *f, uint64_t until_ns, tokmap_i_ring_result *row,
                     tokmap_error *err)
{
    return f->reads ? tokmap_i_store_reads_take(f->reads, until_ns, row, err)
                    : tokmap_i_ring_take(f->ring, until_ns > 0, row, err);
}

/* Remembers how long a step of a store took to arrive. */
static void time_step(tokmap_i_fetch *f, const step *s)
{
    tokmap_i_latency_add(f->arrivals, tokmap_i_now_ns() - s->planned_ns);
    if (f->arrivals->n % TIMED_STEPS == 0)
        atomic_store(&f->slowest_ns, tokmap_i_latency_percentile(f->arrivals, 999));
}

static bool take_rows(tokmap_i_fetch *f, bool wait)
{
    tokmap_i_ring_result row;
    tokmap_error err;
    bool any = false, whole = false;
    const uint64_t n_started =
        f->reads ? tokmap_i_store_reads_n_started(f->reads) : tokmap_i_ring_n_started(f->ring);
    if (n_started == 0)
        return false;
    const uint64_t until_ns = !wait ? 0 : is_quiet(f) ? f->quiet_until_ns : UINT64_MAX;
    tokmap_i_mutex_unlock(&f->mutex);
    while (!whole && take_row(f, any ? 0 : until_ns, &row, &err)) {
        step *s = &f->steps[row.slot];
        any = true;
        s->rows[row.row].tokens = row.tokens;
        if (row.status && !s->status) {
            s->status = row.status;
            s->err = err;
        }
        whole = --s->n_left == 0;
    }
    if (whole && f->reads)
        time_step(f, &f->steps[row.slot]);
    tokmap_i_mutex_lock(&f->mutex);
    if (whole)
        settle_step(f, row.slot, STEP_READY, f->steps[row.slot].status);
    return any || f->reads; /* interrupted: there may be something to plan */
}

static void close_slots(tokmap_i_fetch *f, bool is_child)
{
    tokmap_i_store_reads_close(f->reads, is_child);
    tokmap_i_ring_close(f->ring);
    for (uint32_t k = 0; f->steps && k <= f->n_steps; k++)
        free(f->steps[k].pieces.list);
    free(f->steps);
    free(f->rows);
}

/* Makes the slots for n_steps steps in place of the old ones, which stay as they are after an
 * error. */
static tokmap_status open_slots(tokmap_i_fetch *f, uint32_t n_steps, tokmap_error *err)
{
    const uint32_t max_rows = f->o.max_rows;
    tokmap_i_fetch_options o = f->o;
    tokmap_i_fetch made = {.n_steps = n_steps};
    o.n_steps = n_steps;
    made.steps = calloc(n_steps + 1ull, sizeof *made.steps);
    made.rows = calloc((n_steps + 1ull) * max_rows, sizeof *made.rows);
    tokmap_status status = made.steps && made.rows ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status && o.io != TOKMAP_IO_POPULATE)
        status = tokmap_i_ring_open(&made.ring, &o, err);
    if (!status && o.io == TOKMAP_IO_STORE)
        status = tokmap_i_store_reads_open(&made.reads, &o, n_steps + 1, err);
    for (uint32_t k = 0; !status && k <= n_steps; k++)
        made.steps[k].rows = made.rows + (size_t)k * max_rows;
    if (status) {
        close_slots(&made, false);
        return status;
    }
    close_slots(f, false);
    f->steps = made.steps;
    f->rows = made.rows;
    f->ring = made.ring;
    f->reads = made.reads;
    f->n_steps = n_steps;
    f->n_ahead = o.first_steps ? MIN(o.first_steps, n_steps) : n_steps;
    return TOKMAP_OK;
}

static void begin_again(tokmap_i_fetch *f)
{
    tokmap_i_mutex_unlock(&f->mutex);
    if (f->reads)
        tokmap_i_store_reads_drain(f->reads);
    else if (is_async(f))
        tokmap_i_ring_drain(f->ring);
    tokmap_i_mutex_lock(&f->mutex);
    while (drop_step(f))
        continue;
    for (uint32_t k = 0; k <= f->n_steps; k++)
        f->steps[k].state = STEP_EMPTY;
    if (f->n_wanted != f->n_steps && open_slots(f, f->n_wanted, NULL))
        f->n_wanted = f->n_steps; /* no memory: goes on as it was */
    f->n_given_back = f->n_dropped = f->n_planned = f->n_finished = 0;
    f->ended = f->restarted = false;
    atomic_store(&f->hurry, f->stop);
}

static void wait_for_work(tokmap_i_fetch *f)
{
    f->idle = true;
    if (is_quiet(f))
        (void)tokmap_i_condition_wait_until(&f->work, &f->mutex, f->quiet_until_ns);
    else
        tokmap_i_condition_wait(&f->work, &f->mutex);
    f->idle = false;
}

static void *run_thread(void *context)
{
    tokmap_i_fetch *f = context;
    tokmap_i_thread_name("tokmap-fetch");
    tokmap_i_mutex_lock(&f->mutex);
    while (!f->stop) {
        if (f->restarted) {
            begin_again(f);
            continue;
        }
        bool did = false;
        if (!f->reads || f->asked) { /* a process that has used a store may not be able to fork */
            did = drop_step(f);
            did |= plan_one(f, true);
            for (uint32_t k = 0; k < PLANS_AT_ONCE && !is_quiet(f); k++)
                did |= plan_one(f, false);
            did |= is_async(f) ? take_rows(f, !did) : finish_next(f);
        }
        if (!did)
            wait_for_work(f);
    }
    begin_again(f);
    tokmap_i_mutex_unlock(&f->mutex);
    return NULL;
}

/* ---- The caller's side ---- */

/* Releases the lock before it wakes the thread, because the thread would need the lock at once. */
static void unlock_and_wake(tokmap_i_fetch *f, bool wake)
{
    const bool interrupts = wake && f->reads && !f->idle;
    wake &= f->idle;
    f->idle &= !wake;
    tokmap_i_mutex_unlock(&f->mutex);
    if (wake)
        tokmap_i_condition_signal(&f->work);
    if (interrupts)
        tokmap_i_store_reads_interrupt(f->reads);
}

static void return_step(tokmap_i_fetch *f)
{
    if (f->n_given_back < f->head) {
        step_at(f, f->head - 1)->state = STEP_EMPTY;
        f->n_given_back = f->head;
    }
}

static void announce_order(tokmap_i_fetch *f, bool random)
{
    f->expects = random;
    for (uint32_t i = 0; i < f->o.n_datasets; i++)
        tokmap_i_token_files_expect(f->o.datasets[i], f->o.io == TOKMAP_IO_POPULATE, random);
}

/* With the lock held, and no step handed out: drops all steps and begins at `first`. */
static void restart_at(tokmap_i_fetch *f, uint64_t first)
{
    f->head = 0;
    f->ns_of_head = 0;
    f->waits_for_head = f->has_tried = false;
    f->first = first;
    f->restarted = true;
    atomic_store(&f->hurry, true);
}

void tokmap_i_fetch_restart(tokmap_i_fetch *f, uint64_t first, uint64_t stride, uint32_t n_rows)
{
    if (!f->expects)
        announce_order(f, true);
    tokmap_i_mutex_lock(&f->mutex);
    return_step(f);
    f->stride = stride;
    f->n_rows = n_rows;
    restart_at(f, first);
    unlock_and_wake(f, true);
}

void tokmap_i_fetch_adapt(tokmap_i_fetch *f)
{
    f->look_ahead.n_steps = f->n_steps;
    f->adapts = tokmap_i_adapt(&f->look_ahead, f->head, tokmap_i_now_ns() - f->begun_ns);
    if (f->adapts)
        f->n_wanted = f->look_ahead.n_steps;
}

static bool is_settled(const tokmap_i_fetch *f)
{
    const step_state state = step_at(f, f->head)->state;
    return !f->restarted && (state == STEP_READY || state == STEP_FAILED || state == STEP_END);
}

/* Returns false when the time is up. */
static bool wait_for_head(tokmap_i_fetch *f, uint64_t until_ns)
{
    const uint64_t since_ns = tokmap_i_now_ns();
    bool is_time_up = false;
    f->is_waiting = true;
    if (f->idle)
        tokmap_i_condition_signal(&f->work);
    else if (f->reads)
        tokmap_i_store_reads_interrupt(f->reads);
    while (!is_settled(f) && !is_time_up) {
        if (until_ns == UINT64_MAX)
            tokmap_i_condition_wait(&f->settled, &f->mutex);
        else
            is_time_up = !tokmap_i_condition_wait_until(&f->settled, &f->mutex, until_ns);
    }
    f->is_waiting = false;
    f->waits_for_head = true;
    f->ns_of_head += tokmap_i_now_ns() - since_ns;
    return is_settled(f);
}

/* Waits until the next step has been read, or has failed since the caller began to wait for it.
 * Returns false when the time is up. */
static bool wait_for_step(tokmap_i_fetch *f, uint64_t until_ns)
{
    if (!is_settled(f)) {
        /* What fails now is not tried again if it is in a store, which has a deadline for a try. */
        f->has_tried |= f->reads != NULL;
        if (!wait_for_head(f, until_ns))
            return false;
    }
    step *s = step_at(f, f->head);
    if (s->state != STEP_FAILED || f->has_tried)
        return true;
    s->state = STEP_AGAIN;
    f->has_tried = true;
    return wait_for_head(f, until_ns);
}

/* Counts the wait for the step that is handed out. */
static void count_wait(tokmap_i_fetch *f)
{
    f->n_waits += f->waits_for_head;
    f->is_late = f->waits_for_head && step_at(f, f->head)->slow && f->head > f->n_steps;
    f->waited_ns += f->ns_of_head;
    tokmap_i_latency_add(&f->waits, f->ns_of_head);
    f->ns_of_head = 0;
    f->waits_for_head = f->has_tried = false;
}

bool tokmap_i_fetch_wait(tokmap_i_fetch *f, uint64_t timeout_ns)
{
    const uint64_t now_ns = tokmap_i_now_ns();
    tokmap_i_mutex_lock(&f->mutex);
    f->asked = true;
    const bool is_there = wait_for_step(f, now_ns + MIN(timeout_ns, UINT64_MAX - 1 - now_ns));
    tokmap_i_mutex_unlock(&f->mutex);
    return is_there;
}

/* Chooses how many steps of a store are read ahead, from the time that the caller took since the
 * last step. */
static void choose_ahead(tokmap_i_fetch *f)
{
    const uint64_t ns = tokmap_i_now_ns() - f->returned_ns;
    if (f->returned_ns > 0 && f->o.first_steps > 0) {
        f->step_ns = f->step_ns ? (7 * f->step_ns + ns) / 8 : ns;
        f->n_ahead = tokmap_i_steps_ahead(f->step_ns, atomic_load(&f->slowest_ns), f->n_steps);
    }
}

tokmap_status tokmap_i_fetch_next(tokmap_i_fetch *f, const tokmap_i_fetch_row **rows,
                                  tokmap_error *err)
{
    *rows = NULL;
    if (f->reads)
        choose_ahead(f);
    tokmap_i_mutex_lock(&f->mutex);
    return_step(f);
    f->asked = true;
    if (f->adapts)
        restart_at(f, f->first + f->head * f->stride);
    f->adapts = false;
    (void)wait_for_step(f, UINT64_MAX);
    count_wait(f);
    const step *s = step_at(f, f->head);
    const tokmap_status status = s->status;
    if (status) {
        if (err)
            *err = s->err;
    } else {
        *rows = s->rows;
        f->begun_ns = f->head == 0 ? tokmap_i_now_ns() : f->begun_ns;
        f->head++;
    }
    /* The thread is not woken for every free slot, because waking it is the only system call when
     * the step is ready. With POPULATE, it is also woken if half of the ready steps have been
     * used. */
    const uint64_t end = f->n_given_back + f->n_ahead + 1;
    const uint64_t n_free = end - MIN(end, f->n_planned);
    const uint64_t n_ready = f->n_finished - MIN(f->head, f->n_finished);
    const bool is_half_used = f->o.io == TOKMAP_IO_POPULATE && 2 * n_ready <= n_mapped_steps(f);
    f->returned_ns = f->reads ? tokmap_i_now_ns() : 0;
    f->quiet_until_ns = f->step_ns >= LONG_STEP_NS ? f->returned_ns + LEAVE_NS : 0;
    unlock_and_wake(f, is_half_used || n_free >= (f->reads ? 1 : MAX(1, f->n_steps / 4)));
    return status;
}

void tokmap_i_fetch_describe(const tokmap_i_fetch *f, tokmap_loader_info *info)
{
    info->look_ahead = f->n_ahead;
    info->bytes_read = atomic_load_explicit(&f->bytes_read, memory_order_relaxed);
    if (f->reads)
        info->bytes_read += tokmap_i_store_reads_bytes(f->reads);
    else if (f->ring)
        info->bytes_read += tokmap_i_ring_bytes_read(f->ring);
    info->n_waits = f->n_waits;
    info->waited_ns = f->waited_ns;
    info->wait_p50_ns = tokmap_i_latency_percentile(&f->waits, 500);
    info->wait_p99_ns = tokmap_i_latency_percentile(&f->waits, 990);
    info->wait_p999_ns = tokmap_i_latency_percentile(&f->waits, 999);
    info->wait_max_ns = f->waits.max_ns;
}

bool tokmap_i_fetch_is_late(const tokmap_i_fetch *f)
{
    return f->is_late;
}

uint64_t tokmap_i_fetch_bytes(const tokmap_i_fetch *f)
{
    const uint64_t step_bytes = sizeof *f->steps + f->o.max_rows * sizeof *f->rows;
    return sizeof *f + (f->n_steps + 1ull) * step_bytes +
           (f->ring ? tokmap_i_ring_bytes(f->ring) : 0);
}

/* ---- Open and close ---- */

tokmap_status tokmap_i_fetch_open(tokmap_i_fetch **out, const tokmap_i_fetch_options *o,
                                  tokmap_error *err)
{
    *out = NULL;
    if ((o->n_steps + 1ull) * o->max_rows > MAX_ROWS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "look_ahead: its steps have more than 2^26 rows");
    tokmap_i_fetch *f = calloc(1, sizeof *f);
    if (!f)
        return FAIL_MEMORY(err);
    f->o = *o;
    f->n_wanted = o->n_steps;
    f->look_ahead.most_steps = o->most_steps;
    tokmap_i_mutex_init(&f->mutex);
    tokmap_i_condition_init(&f->work);
    tokmap_i_condition_init(&f->settled);
    f->arrivals = o->io == TOKMAP_IO_STORE ? calloc(1, sizeof *f->arrivals) : NULL;
    tokmap_status status = o->io == TOKMAP_IO_STORE && !f->arrivals
                               ? FAIL_MEMORY(err)
                               : open_slots(f, o->n_steps, err);
    if (!status)
        status = CHECK_IO(err, tokmap_i_thread_start(&f->thread, run_thread, f),
                          "cannot start the read-ahead thread (TOKMAP_IO_MAP needs none)");
    f->started = !status;
    if (status)
        tokmap_i_fetch_close(f, false);
    else
        *out = f;
    return status;
}

void tokmap_i_fetch_close(tokmap_i_fetch *f, bool is_child)
{
    if (!f)
        return;
    if (f->started && !is_child) {
        tokmap_i_mutex_lock(&f->mutex);
        return_step(f);
        f->stop = true;
        atomic_store(&f->hurry, true);
        unlock_and_wake(f, true);
        tokmap_i_thread_join(f->thread);
    }
    /* A child has its own maps, but shares the descriptors. */
    if (f->expects && (!is_child || f->o.io == TOKMAP_IO_POPULATE))
        announce_order(f, false);
    if (!is_child) { /* in a child, the thread would still seem to use them */
        tokmap_i_mutex_free(&f->mutex);
        tokmap_i_condition_free(&f->work);
        tokmap_i_condition_free(&f->settled);
    }
    close_slots(f, is_child);
    free(f->arrivals);
    free(f);
}
