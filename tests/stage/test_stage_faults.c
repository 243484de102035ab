/* SPDX-License-Identifier: Apache-2.0 */
/* The stage with a driver in which the n-th call fails, for every n: batches stay exact and in
 * order, or there is a clear error; nothing crashes, hangs or leaks, and a state can be saved that
 * another stage goes on from. */
#include "stage/fake_driver_case.h"

enum {
    N_TRIES = 4,
    ROOM = 8,
    FOR_EVER = 1 << 30
};

/* What is done: n, m: next in one stream or the other; r, l: release the first or the last batch;
 * f: fill; e, d: export and delete a tensor; s: seek; v, w: save and restore; p: the device goes on
 * a little. */
static const char script[] = "nrnmrlpfnernmdlprnspnrmrvnwnrmplfnpmrenldpnr";

typedef struct run {
    stage_case c;
    tokmap_i_stream streams[2];
    tokmap_stage_batch memory;
    tokmap_stage_batch held[ROOM];
    uint32_t n_held;
    dlpack *tensor;
    tokmap_stage_batch of_tensor;
    uint8_t saved[TOKMAP_STATE_BYTES];
    uint64_t saved_position;
    bool gave_up;
    uint64_t close_call;
} run;

static tokmap_status do_next(run *t, int stream, tokmap_error *err)
{
    const tokmap_status status = case_try_next(&t->c, &t->held[t->n_held], t->streams[stream], err);
    t->n_held += status == TOKMAP_OK;
    return status;
}

static tokmap_status do_release(run *t, uint32_t i, int stream, tokmap_error *err)
{
    if (t->n_held == 0)
        return TOKMAP_OK;
    case_use(&t->c, &t->held[i], t->streams[stream]);
    const tokmap_status status =
        tokmap_stage_release(t->c.stage, &t->held[i], t->streams[stream], err);
    if (!status) {
        t->n_held--;
        memmove(&t->held[i], &t->held[i + 1], (t->n_held - i) * sizeof t->held[0]);
    }
    return status;
}

static tokmap_status do_export(run *t, int stream, tokmap_error *err)
{
    if (t->tensor || t->n_held == 0)
        return TOKMAP_OK;
    t->of_tensor = t->held[t->n_held - 1];
    tokmap_stage_tensor wanted = {
        .struct_size = sizeof wanted, .output = TOKMAP_STAGE_LABELS, .stream = t->streams[stream]};
    const tokmap_status status = tokmap_stage_export(t->c.stage, &t->of_tensor, &wanted, err);
    t->tensor = wanted.managed;
    return status;
}

static void do_delete(run *t)
{
    if (t->tensor)
        t->tensor->deleter(t->tensor);
    t->tensor = NULL;
}

static tokmap_status do_move(run *t, char what, tokmap_error *err)
{
    const uint64_t to = what == 's' ? 301 : t->saved_position;
    const tokmap_status status = what == 'v'   ? tokmap_stage_save(t->c.stage, t->saved, err)
                                 : what == 's' ? tokmap_stage_seek(t->c.stage, to, err)
                                               : tokmap_stage_restore(t->c.stage, t->saved, err);
    if (!status && what == 'v')
        t->saved_position = t->c.position;
    else if (!status)
        t->c.position = to;
    return status;
}

/* All in streams that are joined, so that any of them may be used in the next try. */
static tokmap_status do_step(run *t, char what, int attempt, tokmap_error *err)
{
    const int stream = (what == 'm') ^ (attempt & 1);
    fake_join(t->streams[!stream], t->streams[stream]);
    switch (what) {
    case 'n':
    case 'm':
        return do_next(t, stream, err);
    case 'r':
        return do_release(t, 0, stream, err);
    case 'l':
        return do_release(t, t->n_held - 1, stream, err);
    case 'f':
        return case_try_fill(&t->c, &t->memory, t->streams[stream], err);
    case 'e':
        return do_export(t, stream, err);
    case 'd':
        fake_join(t->streams[1], t->streams[0]);
        fake_join(t->streams[0], t->streams[1]);
        do_delete(t);
        return TOKMAP_OK;
    case 'p':
        fake_progress(3);
        return TOKMAP_OK;
    default:
        return do_move(t, what, err);
    }
}

static void check_error(tokmap_status status, const tokmap_error *err)
{
    if (status != TOKMAP_ERR_DEVICE)
        CHECK_FAIL("status %d: %s", (int)status, err->text);
    CHECK_INT(err->status, status);
    CHECK(strstr(err->text, "device 0: ") != NULL && strlen(err->text) > 20);
}

/* Every step is tried again when it fails; when that is in vain, the rest is left. */
static void run_script(run *t)
{
    for (const char *what = script; *what && !t->gave_up; what++) {
        tokmap_error err = {0};
        tokmap_status status = TOKMAP_ERR_DEVICE;
        for (int attempt = 0; attempt < N_TRIES && status; attempt++) {
            status = do_step(t, *what, attempt, &err);
            case_check_caller();
            fake_check();
            if (status)
                check_error(status, &err);
        }
        t->gave_up = status != TOKMAP_OK;
    }
}

static bool may_leak(const run *t)
{
    static const uint32_t giving_back =
        FAKE_BIT(FAKE_DESTROY_STREAM) | FAKE_BIT(FAKE_DESTROY_EVENT) | FAKE_BIT(FAKE_FREE) |
        FAKE_BIT(FAKE_UNREGISTER) | FAKE_BIT(FAKE_UNLOAD) | FAKE_BIT(FAKE_RELEASE_CONTEXT);
    const uint32_t entering = FAKE_BIT(FAKE_PUSH) | FAKE_BIT(FAKE_EXCHANGE);
    return fake.failed & giving_back || fake.fail_to >= FOR_EVER ||
           (fake.failed & entering && fake.fail_to > t->close_call);
}

/* The state that was saved last, in a stage where everything works. */
static void go_on_elsewhere(const uint8_t *state, uint64_t position)
{
    stage_case c;
    tokmap_stage_batch b;
    tokmap_error err;
    fake_begin(FAKE_EAGER, 1);
    case_open_stage(&c, (tokmap_stage_options){.no_thread = 1});
    CHECK_OK(tokmap_stage_restore(c.stage, state, &err), err);
    c.position = position;
    for (int i = 0; i < 3; i++) {
        case_next(&c, &b, NULL);
        case_release(&c, &b, NULL);
    }
    case_settle();
    case_close_stage(&c);
}

static void close_run(run *t)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    const uint64_t position = t->c.position;
    CHECK_INT(tokmap_stage_save(t->c.stage, state, &err), TOKMAP_OK);
    do_delete(t);
    case_check_caller();
    case_settle();
    t->close_call = fake.n_calls;
    fake.is_open = false;
    case_close_stage(&t->c);
    case_check_caller();
    fake_check();
    if (!may_leak(t))
        fake_check_leaks();
    if (t->gave_up)
        go_on_elsewhere(state, position);
}

typedef struct plan {
    tokmap_stage_options options;
    uint64_t from, n; /* calls that fail */
    bool context_works;
    fake_policy policy;
} plan;

/* One run; true: the script went to its end. */
static bool run_plan(const plan *p)
{
    static run t;
    tokmap_error err = {0};
    t = (run){0};
    case_watch();
    fake_begin(p->policy, p->from);
    case_begin_caller();
    fake.context_works = p->context_works;
    fake.fail_from = p->from;
    fake.fail_to = p->n ? p->from + p->n : 0;
    t.streams[0] = fake_stream_open(0);
    t.streams[1] = fake_stream_open(0);
    t.memory = case_memory(&(stage_case){.options = {.input_bytes = 4, .label_bytes = 8}});
    t.c.loader = case_loader(CASE_ROWS);
    const tokmap_status status = case_try_stage(&t.c, p->options, &err);
    case_check_caller();
    fake_check();
    if (status) {
        check_error(status, &err);
        CHECK(t.c.stage == NULL);
        if (!may_leak(&t))
            fake_check_leaks();
        CHECK_EQ(tokmap_loader_position(t.c.loader), 0);
        tokmap_loader_close(t.c.loader);
        return false;
    }
    t.c.n_logs = 0;
    run_script(&t);
    if (p->options.no_thread) /* a thread may be about to */
        CHECK_INT(t.c.n_logs, t.c.stage->lost.status != TOKMAP_OK);
    const bool went_on = !t.gave_up;
    close_run(&t);
    return went_on;
}

/* ---- Sweeps ---- */

typedef struct sweep {
    plan p;
    uint64_t n_runs, n_went_on, n_failed;
    bool went_on; /* the last run */
    char first[600];
} sweep;

static void run_swept_plan(void *context)
{
    sweep *w = context;
    w->went_on = run_plan(&w->p);
}

/* A run that fails does not keep the others from being made; but a thread that is left behind
 * would. */
static bool collect(sweep *w)
{
    w->went_on = false;
    if (!check_part(run_swept_plan, w)) {
        if (w->n_failed++ == 0)
            snprintf(w->first, sizeof w->first, "%.400s", check_why());
        printf("note calls %" PRIu64 " + %" PRIu64 " fail: %s\n", w->p.from, w->p.n, check_why());
    }
    if (w->n_failed > 0 && !w->p.options.no_thread)
        CHECK_FAIL("%s", w->first);
    return w->went_on;
}

/* Calls n, n + stride, ... fail, and some after them, as long as there are so many. */
static void sweep_calls(sweep *w, uint64_t stride)
{
    w->p.n = 0;
    w->p.from = 1;
    CHECK(run_plan(&w->p));
    const uint64_t n_calls = fake.n_calls;
    CHECK(n_calls > 200);
    static const uint64_t lengths[] = {1, 2, 3, 4, FOR_EVER};
    for (size_t k = 0; k < 6; k++) {
        w->p.context_works = k == 5;
        w->p.n = lengths[MIN(k, 4)];
        for (w->p.from = 1 + k % stride; w->p.from <= n_calls; w->p.from += stride) {
            if (collect(w))
                w->n_went_on++;
            w->n_runs++;
        }
    }
}

static void sweep_all(bool thread, uint64_t stride)
{
    static sweep w;
    w = (sweep){0};
    case_open();
    w.p.policy = thread ? FAKE_RANDOM : FAKE_LAZY;
    w.p.options = (tokmap_stage_options){.n_slots = 6, .n_host_slots = 2, .no_thread = !thread};
    sweep_calls(&w, stride);
    close_corpus();
    printf("note %" PRIu64 " runs, of which %" PRIu64 " went on to their end\n", w.n_runs,
           w.n_went_on);
    CHECK(w.n_went_on > w.n_runs / 20 && w.n_went_on < w.n_runs);
    if (w.n_failed > 0)
        CHECK_FAIL("%" PRIu64 " runs failed, the first: %s", w.n_failed, w.first);
}

TEST(any_call_may_fail_without_a_thread)
{
    sweep_all(false, check_sanitized() ? 5 : 1);
}

TEST(any_call_may_fail_with_a_thread)
{
    sweep_all(true, check_long() ? 1 : check_sanitized() ? 11 : 3);
}

/* ---- A loss while the next batch is queued ---- */

static struct gate {
    atomic_int n_copies;   /* begun, of batches */
    atomic_bool open;      /* for the second copy and those after it; for waits for events */
    atomic_bool fails;     /* events and waits */
    atomic_bool is_waited; /* the stage's thread waits for an event */
    atomic_uint n_logs;
    atomic_bool overlap; /* a line was logged during another one */
} gate;

static int gate_copy(tokmap_i_address to, const void *from, size_t n_bytes, tokmap_i_stream stream)
{
    if (atomic_fetch_add(&gate.n_copies, 1) > 0)
        while (!atomic_load(&gate.open))
            sched_yield();
    return fake_copy_in(to, from, n_bytes, stream);
}

static int gate_record(tokmap_i_event event, tokmap_i_stream stream)
{
    return atomic_load(&gate.fails) ? 700 : fake_record(event, stream);
}

static int gate_wait_stream(tokmap_i_stream stream)
{
    return atomic_load(&gate.fails) ? 700 : fake_wait_stream(stream);
}

static bool is_queueing(tokmap_stage *s)
{
    tokmap_i_mutex_lock(&s->mutex);
    const bool queueing = s->queueing;
    tokmap_i_mutex_unlock(&s->mutex);
    return queueing;
}

/* fill cannot tell when its kernel has read the slot: that batch is the last one. */
TEST(what_is_queued_during_a_loss_does_not_come_after_it)
{
    stage_case c;
    tokmap_stage_batch b, memory;
    tokmap_error err;
    case_open();
    fake_begin(FAKE_EAGER, 1);
    tokmap_i_driver driver = fake_driver;
    driver.copy_to_device = gate_copy;
    driver.record = gate_record;
    driver.wait_stream = gate_wait_stream;
    case_driver = &driver;
    atomic_store(&gate.n_copies, -1); /* open makes one */
    case_open_stage(&c, (tokmap_stage_options){.n_slots = 4, .n_host_slots = 2});
    memory = case_memory(&c);
    while (atomic_load(&gate.n_copies) < 2)
        sched_yield();
    atomic_store(&gate.fails, true);
    CHECK_INT(case_try_fill(&c, &memory, NULL, &err), TOKMAP_ERR_DEVICE);
    atomic_store(&gate.fails, false);
    atomic_store(&gate.open, true);
    while (is_queueing(c.stage))
        sched_yield();
    CHECK_INT(case_try_fill(&c, &memory, NULL, &err), TOKMAP_OK);
    CHECK_INT(case_try_next(&c, &b, NULL, &err), TOKMAP_ERR_DEVICE);
    case_settle();
    case_close_stage(&c);
    case_driver = &fake_driver;
    close_corpus();
}

/* ---- Two losses at the same time ---- */

static int gate_wait_event(tokmap_i_event event)
{
    (void)event;
    atomic_store(&gate.is_waited, true);
    while (!atomic_load(&gate.open))
        sched_yield();
    return 700;
}

/* The first line takes until the stage's thread logs another one, or should have. Relaxed, so that
 * ThreadSanitizer sees no order between the two. */
static void gate_log(void *context, const char *text)
{
    stage_case *c = context;
    if (atomic_fetch_add_explicit(&gate.n_logs, 1, memory_order_relaxed) == 0) {
        atomic_store(&gate.open, true);
        for (int i = 0; i < 100; i++) {
            usleep(1000);
            if (atomic_load_explicit(&gate.n_logs, memory_order_relaxed) > 1)
                atomic_store(&gate.overlap, true);
        }
    }
    snprintf(c->log, sizeof c->log, "%s", text);
}

TEST(lines_are_logged_one_after_another)
{
    stage_case c;
    tokmap_stage_batch memory;
    tokmap_error err;
    case_open();
    fake_begin(FAKE_EAGER, 1);
    tokmap_i_driver driver = fake_driver;
    driver.wait_event = gate_wait_event;
    driver.record = gate_record;
    driver.wait_stream = gate_wait_stream;
    case_driver = &driver;
    atomic_store(&gate.open, false);
    case_open_stage(&c, (tokmap_stage_options){.n_slots = 4, .n_host_slots = 1, .log = gate_log});
    memory = case_memory(&c);
    while (!atomic_load(&gate.is_waited))
        sched_yield();
    atomic_store(&gate.fails, true);
    CHECK_INT(case_try_fill(&c, &memory, NULL, &err), TOKMAP_ERR_DEVICE);
    atomic_store(&gate.fails, false);
    case_settle();
    case_close_stage(&c);
    CHECK(atomic_load(&gate.n_logs) == 2 && !atomic_load(&gate.overlap));
    CHECK_SAYS(c.log, "waiting for a copy: error 700");
    case_driver = &fake_driver;
    close_corpus();
}
