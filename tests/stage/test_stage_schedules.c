/* SPDX-License-Identifier: Apache-2.0 */
/* The stage against the order of things: whatever a device does when, each batch is what it should
 * be at the moment when the caller's stream comes to it, and nobody waits for ever. All short
 * schedules are walked through; long ones are random. */
#include "stage/fake_driver_case.h"

/* ---- All short schedules ---- */

enum {
    MAX_DEPTH = 16,
    MAX_ACTIONS = 8
};

typedef enum action {
    NEXT_A,
    NEXT_B,
    RELEASE_FIRST,
    RELEASE_LAST,
    STEP_STAGE,
    STEP_A,
    STEP_B
} action;

typedef struct walk {
    stage_case c;
    tokmap_i_stream streams[2]; /* the caller's */
    tokmap_stage_batch held[TOKMAP_I_STAGE_MAX_SLOTS];
    tokmap_i_stream used[TOKMAP_I_STAGE_MAX_SLOTS];
    uint32_t n_held;
    int choices[MAX_DEPTH], widths[MAX_DEPTH]; /* the schedule, and how many ways there were */
    uint64_t n_schedules;
} walk;

static int list_actions(const walk *w, action *actions)
{
    int n = 0;
    if (w->n_held + 1 < w->c.options.n_slots) {
        actions[n++] = NEXT_A;
        if (w->c.position > 0) /* the two are alike until one was used */
            actions[n++] = NEXT_B;
    }
    if (w->n_held > 0)
        actions[n++] = RELEASE_FIRST;
    if (w->n_held > 1)
        actions[n++] = RELEASE_LAST;
    if (fake_can_step(fake_number(w->c.stage->stream)))
        actions[n++] = STEP_STAGE;
    if (fake_can_step(fake_number(w->streams[0])))
        actions[n++] = STEP_A;
    if (fake_can_step(fake_number(w->streams[1])))
        actions[n++] = STEP_B;
    return n;
}

static void walk_release(walk *w, uint32_t i)
{
    case_release(&w->c, &w->held[i], w->used[i]);
    w->n_held--;
    memmove(&w->held[i], &w->held[i + 1], (w->n_held - i) * sizeof w->held[0]);
    memmove(&w->used[i], &w->used[i + 1], (w->n_held - i) * sizeof w->used[0]);
}

static void act(walk *w, action a)
{
    if (a == NEXT_A || a == NEXT_B) {
        w->used[w->n_held] = w->streams[a == NEXT_B];
        case_next(&w->c, &w->held[w->n_held], w->used[w->n_held]);
        w->n_held++;
    } else if (a == RELEASE_FIRST || a == RELEASE_LAST) {
        walk_release(w, a == RELEASE_FIRST ? 0 : w->n_held - 1);
    } else {
        fake_step(fake_number(a == STEP_STAGE ? w->c.stage->stream : w->streams[a == STEP_B]));
    }
}

/* One schedule from its start; afterwards nothing is queued, held or prepared, as at its start. */
static void run_schedule(walk *w, int depth)
{
    tokmap_error err;
    for (int i = 0; i < depth; i++) {
        action actions[MAX_ACTIONS];
        w->widths[i] = list_actions(w, actions);
        CHECK(w->widths[i] > 0);
        act(w, actions[w->choices[i]]);
    }
    while (w->n_held > 0)
        walk_release(w, w->n_schedules % 3 ? 0 : w->n_held - 1);
    if (w->n_schedules % 2)
        case_settle();
    CHECK_INT(tokmap_stage_seek(w->c.stage, 0, &err), TOKMAP_OK);
    w->c.position = 0;
    case_settle();
    w->n_schedules++;
}

/* The next one in the order of a dictionary; false: that was the last. */
static bool next_schedule(walk *w, int depth)
{
    while (depth > 0 && w->choices[depth - 1] + 1 == w->widths[depth - 1])
        w->choices[--depth] = 0;
    if (depth > 0)
        w->choices[depth - 1]++;
    return depth > 0;
}

static uint64_t walk_all(tokmap_stage_options o, int depth)
{
    static walk w;
    w = (walk){0};
    fake_begin(FAKE_LAZY, 1);
    o.no_thread = 1;
    case_open_stage(&w.c, o);
    w.streams[0] = fake_stream_open(0);
    w.streams[1] = fake_stream_open(0);
    do
        run_schedule(&w, depth);
    while (next_schedule(&w, depth));
    case_close_stage(&w.c);
    fake_check();
    fake_check_leaks();
    return w.n_schedules;
}

/* `least` schedules, so that a walk that ends early does not pass. */
static void walk_slots(uint32_t n_slots, uint32_t n_host_slots, uint64_t least)
{
    const int usual = n_slots == 2 ? 10 : 9;
    const int depth = usual - (check_sanitized() ? 2 : 0);
    case_open();
    const uint64_t n =
        walk_all((tokmap_stage_options){.n_slots = n_slots, .n_host_slots = n_host_slots}, depth);
    close_corpus();
    printf("note %" PRIu64 " schedules of %d actions, %u slots and %u in pinned memory\n", n, depth,
           n_slots, n_host_slots);
    CHECK(depth < usual || n >= least);
}

TEST(two_slots_and_one_host_slot_in_every_order)
{
    walk_slots(2, 1, 16000);
}

TEST(two_slots_and_two_host_slots_in_every_order)
{
    walk_slots(2, 2, 6900);
}

TEST(three_slots_and_one_host_slot_in_every_order)
{
    walk_slots(3, 1, 138000);
}

TEST(three_slots_and_two_host_slots_in_every_order)
{
    walk_slots(3, 2, 50000);
}

/* ---- Random ones ---- */

enum {
    N_STREAMS = 4, /* of the caller; the first is the default stream */
    MAX_TENSORS = 6,
    MAX_BATCHES = 8,
    MAX_SAVED = 4
};

typedef struct lent_batch {
    bool held;
    tokmap_stage_batch b;
    int next_stream, use_stream;
    dlpack *tensors[MAX_TENSORS];
    tokmap_i_stream tensor_streams[MAX_TENSORS]; /* in which these are used */
    uint32_t n_tensors;
} lent_batch;

typedef struct saved_state {
    uint8_t bytes[TOKMAP_STATE_BYTES];
    uint64_t position;
} saved_state;

typedef struct storm {
    stage_case c;
    tokmap_i_stream streams[N_STREAMS];
    tokmap_stage_batch memory[N_STREAMS]; /* of the caller, for fill */
    lent_batch lent[MAX_BATCHES];
    uint32_t n_lent;
    saved_state saved[MAX_SAVED];
    uint64_t n_steps;
} storm;

/* Of all storms of a test: what they came across. */
static struct {
    uint64_t n_steps, n_batches, n_stages, n_refused, n_moved, n_copied, n_pageable;
} seen;

static void forget_lent(storm *t, uint32_t i)
{
    if (t->lent[i].held || t->lent[i].n_tensors > 0)
        return;
    t->lent[i] = t->lent[--t->n_lent];
}

static void storm_next(storm *t)
{
    tokmap_error err;
    lent_batch *l = &t->lent[t->n_lent];
    const bool has_room = t->n_lent + 1 < t->c.options.n_slots;
    *l = (lent_batch){.held = true, .next_stream = (int)check_below(N_STREAMS)};
    const tokmap_status status = case_try_next(&t->c, &l->b, t->streams[l->next_stream], &err);
    if (has_room && status)
        CHECK_FAIL("%s", err.text);
    CHECK_INT(status, has_room ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT);
    l->use_stream = l->next_stream;
    if (has_room && check_below(3) == 0) { /* the step runs in another one */
        l->use_stream = (int)check_below(N_STREAMS);
        fake_join(t->streams[l->next_stream], t->streams[l->use_stream]);
        case_use(&t->c, &l->b, t->streams[l->use_stream]);
    }
    t->n_lent += has_room;
    seen.n_batches += has_room;
    seen.n_refused += !has_room;
}

static void storm_release(storm *t)
{
    const uint32_t i = check_below(t->n_lent + 1);
    if (i == t->n_lent || !t->lent[i].held)
        return;
    lent_batch *l = &t->lent[i];
    const int stream = check_below(2) ? (int)check_below(N_STREAMS) : l->use_stream;
    if (stream != l->use_stream)
        fake_join(t->streams[l->use_stream], t->streams[stream]);
    case_release(&t->c, &l->b, t->streams[stream]);
    l->held = false;
    forget_lent(t, i);
}

static void storm_fill(storm *t)
{
    tokmap_error err;
    const uint32_t k = check_below(N_STREAMS);
    const bool has_room = t->n_lent + 1 < t->c.options.n_slots;
    const tokmap_status status = case_try_fill(&t->c, &t->memory[k], t->streams[k], &err);
    if (has_room && status)
        CHECK_FAIL("%s", err.text);
    CHECK_INT(status, has_room ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT);
}

static void storm_export(storm *t)
{
    const uint32_t i = check_below(t->n_lent + 1);
    if (i == t->n_lent || !t->lent[i].held || t->lent[i].n_tensors == MAX_TENSORS)
        return;
    lent_batch *l = &t->lent[i];
    tokmap_i_stream stream = t->streams[check_below(N_STREAMS)];
    l->tensor_streams[l->n_tensors] = stream;
    l->tensors[l->n_tensors++] =
        case_export(&t->c, &l->b, 1u << check_below(TOKMAP_I_STAGE_OUTPUTS), stream);
}

static void *delete_in_thread(void *tensor)
{
    dlpack *t = tensor;
    t->deleter(t);
    return NULL;
}

static void delete_tensor(dlpack *tensor)
{
    pthread_t thread;
    if (check_below(8) > 0) {
        tensor->deleter(tensor);
        return;
    }
    CHECK_INT(pthread_create(&thread, NULL, delete_in_thread, tensor), 0);
    pthread_join(thread, NULL);
}

/* Uses one of the tensors of a batch a last time, in its stream, and deletes it. */
static void use_and_delete(storm *t, lent_batch *l)
{
    const uint32_t k = check_below(l->n_tensors--);
    dlpack *tensor = l->tensors[k];
    case_use(&t->c, &l->b, l->tensor_streams[k]);
    l->tensors[k] = l->tensors[l->n_tensors];
    l->tensor_streams[k] = l->tensor_streams[l->n_tensors];
    delete_tensor(tensor);
}

static void storm_delete(storm *t)
{
    const uint32_t i = check_below(t->n_lent + 1);
    if (i == t->n_lent || t->lent[i].n_tensors == 0)
        return;
    use_and_delete(t, &t->lent[i]);
    forget_lent(t, i);
}

static void storm_move(storm *t)
{
    tokmap_error err;
    saved_state *s = &t->saved[check_below(MAX_SAVED)];
    const uint32_t kind = check_below(3);
    if (kind == 0) {
        t->c.position = check_below(CASE_SAMPLES / 2);
        CHECK_INT(tokmap_stage_seek(t->c.stage, t->c.position, &err), TOKMAP_OK);
    } else if (kind == 1) {
        CHECK_INT(tokmap_stage_save(t->c.stage, s->bytes, &err), TOKMAP_OK);
        s->position = t->c.position;
    } else if (s->bytes[0]) {
        CHECK_INT(tokmap_stage_restore(t->c.stage, s->bytes, &err), TOKMAP_OK);
        t->c.position = s->position;
    }
    CHECK_EQ(tokmap_stage_position(t->c.stage), t->c.position);
    seen.n_moved++;
}

static void storm_begin_stage(storm *t, bool thread)
{
    const uint32_t n_slots = 2 + check_below(4);
    fake.broken = check_below(4) == 0 ? FAKE_BIT(FAKE_REGISTER) : 0;
    fake.policy = check_below(5) == 0 ? FAKE_EAGER : check_below(2) ? FAKE_RANDOM : FAKE_LAZY;
    case_open_stage(&t->c, (tokmap_stage_options){.n_slots = n_slots,
                                                  .n_host_slots = 1 + check_below(4),
                                                  .no_thread = !thread});
    seen.n_stages++;
}

/* Tensors live on, and are deleted when the stage is closed. */
static void storm_end_stage(storm *t)
{
    for (uint32_t i = 0; i < t->n_lent; i++)
        if (t->lent[i].held)
            case_release(&t->c, &t->lent[i].b, t->streams[t->lent[i].use_stream]);
    case_close_stage(&t->c);
    for (uint32_t i = 0; i < t->n_lent; i++)
        while (t->lent[i].n_tensors > 0)
            use_and_delete(t, &t->lent[i]);
    t->n_lent = 0;
    tokmap_stage_close(NULL);
    fake_check();
    fake_check_leaks();
}

static void storm_step(storm *t)
{
    const uint32_t kind = check_below(64);
    if (kind < 20)
        storm_next(t);
    else if (kind < 42)
        storm_release(t);
    else if (kind < 47)
        storm_fill(t);
    else if (kind < 49)
        storm_export(t);
    else if (kind < 56)
        storm_delete(t);
    else if (kind < 58)
        storm_move(t);
    else
        fake_progress(check_below(12));
    if (t->c.position + 64 > CASE_SAMPLES) {
        t->c.position = check_below(CASE_SAMPLES / 2);
        CHECK_INT(tokmap_stage_seek(t->c.stage, t->c.position, NULL), TOKMAP_OK);
    }
    if (t->n_steps % 16 == 0)
        fake_check();
    t->n_steps++;
}

static void run_storm(uint64_t seed, bool thread, uint64_t n_steps)
{
    static storm t;
    t = (storm){0};
    fake_begin(FAKE_RANDOM, seed);
    fake_thread.stack[fake_thread.n++] = (void *)(uintptr_t)0x77; /* the caller's own context */
    for (int k = 1; k < N_STREAMS; k++)
        t.streams[k] = fake_stream_open(0);
    for (int k = 0; k < N_STREAMS; k++)
        t.memory[k] = case_memory(&(stage_case){.options = {.input_bytes = 4, .label_bytes = 8}});
    while (t.n_steps < n_steps) {
        const uint64_t end = t.n_steps + 200 + check_below(1800);
        storm_begin_stage(&t, thread);
        while (t.n_steps < end)
            storm_step(&t);
        storm_end_stage(&t);
        CHECK_INT(fake_thread.n, 1);
        CHECK_INT(fake_thread.mode, 0);
    }
    case_settle();
    CHECK_INT(fake.n_pushed, 0);
    seen.n_steps += t.n_steps;
    seen.n_copied += fake.n_copied;
    seen.n_pageable += fake.n_pageable;
}

static void run_storms(bool thread)
{
    const uint64_t n_seeds = check_long() ? 4 : 2, n_steps = check_long() ? 40000 : 3400;
    memset(&seen, 0, sizeof seen);
    case_n_looks = 0;
    case_open();
    for (uint64_t seed = 1; seed <= n_seeds; seed++)
        run_storm(seed + 10 * thread, thread, n_steps);
    close_corpus();
    printf("note %" PRIu64 " steps: %" PRIu64 " batches, %" PRIu64 " looks at them, %" PRIu64
           " stages\n",
           seen.n_steps, seen.n_batches, (uint64_t)case_n_looks, seen.n_stages);
    CHECK(seen.n_batches > seen.n_steps / 8 && case_n_looks > 2 * seen.n_batches);
    CHECK(seen.n_refused > 0 && seen.n_moved > 0);
    CHECK(seen.n_copied > seen.n_pageable && seen.n_pageable > 0);
}

TEST(random_steps_are_exact_without_a_thread)
{
    run_storms(false);
}

TEST(random_steps_are_exact_with_a_thread)
{
    run_storms(true);
}
