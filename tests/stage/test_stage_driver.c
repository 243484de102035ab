/* SPDX-License-Identifier: Apache-2.0 */
/* The stage as a guest in a process and a driver that others use, too: contexts, captures, forks,
 * tensors that outlive it, and a driver that refuses. */

#include "stage/fake_driver_case.h"
#include "support/must.h"

static stage_case c;
static tokmap_stage_batch b;
static tokmap_error err;

/* The caller's thread has a context and a capture mode of its own. */
static void begin(fake_policy policy, uint64_t seed)
{
    fake_begin(policy, seed);
    case_begin_caller();
}

static void end(void)
{
    case_settle();
    case_close_stage(&c);
    case_check_caller();
    fake_check();
    fake_check_leaks();
    CHECK_INT(fake.n_pushed, 0);
}

static void start(fake_policy policy, uint64_t seed)
{
    case_open();
    memset(&c, 0, sizeof c);
    begin(policy, seed);
}

static void start_stage(fake_policy policy, uint64_t seed, tokmap_stage_options o)
{
    start(policy, seed);
    case_open_stage(&c, o);
}

static void finish(void)
{
    end();
    close_corpus();
}

static void pass(tokmap_i_stream stream)
{
    case_next(&c, &b, stream);
    case_release(&c, &b, stream);
}

/* ---- Contexts and streams ---- */

TEST(the_callers_context_and_capture_mode_come_back_after_every_call)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    start_stage(FAKE_RANDOM, 3, (tokmap_stage_options){0});
    case_check_caller();
    const tokmap_stage_batch memory = case_memory(&c);
    for (int i = 0; i < 50; i++) {
        case_next(&c, &b, NULL);
        case_check_caller();
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
        case_check_caller();
        case_release(&c, &b, NULL);
        case_check_caller();
        t->deleter(t);
        case_check_caller();
        CHECK_INT(case_try_fill(&c, &memory, NULL, &err), TOKMAP_OK);
        case_check_caller();
        CHECK_INT(tokmap_stage_save(c.stage, state, &err), TOKMAP_OK);
        CHECK_INT(tokmap_stage_restore(c.stage, state, &err), TOKMAP_OK);
        CHECK_INT(tokmap_stage_seek(c.stage, c.position, &err), TOKMAP_OK);
        case_check_caller();
    }
    finish();
}

TEST(two_devices_have_their_own_stages_and_contexts)
{
    static stage_case two[FAKE_DEVICES];
    tokmap_i_stream streams[FAKE_DEVICES];
    start(FAKE_RANDOM, 4);
    for (int d = 0; d < FAKE_DEVICES; d++) {
        fake.is_open = false;
        case_open_stage(&two[d], (tokmap_stage_options){.device = d, .no_thread = d});
        streams[d] = fake_stream_open(d);
    }
    for (int i = 0; i < 100; i++) {
        const int d = i * 7 / 3 % FAKE_DEVICES;
        case_next(&two[d], &b, streams[d]);
        case_release(&two[d], &b, streams[d]);
        case_check_caller();
    }
    case_settle();
    case_close_stage(&two[0]);
    c = two[1];
    finish();
}

/* A loader for a stage that cannot be opened. */
static void begin_without_stage(void)
{
    start(FAKE_LAZY, 1);
    c.loader = case_loader(CASE_ROWS);
}

TEST(a_device_that_is_not_there_is_named)
{
    begin_without_stage();
    CHECK_INT(case_try_stage(&c, (tokmap_stage_options){.device = 2}, &err), TOKMAP_ERR_DEVICE);
    CHECK_STR(err.text, "there is no device 2: the driver has 2");
    case_check_caller();
    fake_check();
    fake_check_leaks();
    tokmap_loader_close(c.loader);
    close_corpus();
}

static void open_with_bad_options(void)
{
    static const tokmap_stage_options bad[] = {
        {.n_slots = 65},         {.n_slots = 100000},         {.n_host_slots = 100000},
        {.input_bytes = 5},      {.label_bytes = 2},          {.device = -2},
        {.n_slots = UINT32_MAX}, {.n_host_slots = UINT32_MAX}};
    begin(FAKE_LAZY, 1);
    c.loader = case_loader(CASE_ROWS);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(case_try_stage(&c, bad[i], &err), TOKMAP_ERR_ARGUMENT);
    CHECK_EQ(fake.n_calls, 0);
    tokmap_loader_close(c.loader);
}

/* In a child, which may crash. */
static void check_in_child(void (*work)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    must_end(child);
}

TEST(refused_options_leave_the_driver_alone)
{
    case_open();
    check_in_child(open_with_bad_options);
    close_corpus();
}

TEST(a_stream_that_is_captured_is_refused_and_not_touched)
{
    tokmap_stage_batch other;
    case_open();
    for (int32_t no_thread = 0; no_thread < 2; no_thread++) {
        begin(FAKE_RANDOM, 5);
        case_open_stage(&c, (tokmap_stage_options){.no_thread = no_thread});
        const tokmap_stage_batch memory = case_memory(&c);
        tokmap_i_stream stream = fake_stream_open(0), free_stream = fake_stream_open(0);
        case_next(&c, &b, free_stream);
        case_use(&c, &b, free_stream);
        fake.streams[fake_number(stream)].capturing = true;
        CHECK_INT(case_try_next(&c, &other, stream, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "captured");
        CHECK_INT(tokmap_stage_release(c.stage, &b, stream, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_INT(case_try_fill(&c, &memory, stream, &err), TOKMAP_ERR_ARGUMENT);
        case_check_caller();
        fake.streams[fake_number(stream)].capturing = false;
        case_release(&c, &b, free_stream);
        pass(stream);
        end();
    }
    close_corpus();
}

/* The driver calls that an error of its own: the default stream would wait for the captured one. */
TEST(the_default_stream_is_refused_while_another_is_captured)
{
    start_stage(FAKE_LAZY, 5, (tokmap_stage_options){.no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    fake.streams[fake_number(stream)].capturing = true;
    CHECK_REFUSED(case_try_next(&c, &b, NULL, &err), TOKMAP_ERR_ARGUMENT, err, "captured");
    fake.streams[fake_number(stream)].capturing = false;
    pass(NULL);
    finish();
}

/* Whoever collects garbage does so at any time. */
TEST(a_tensor_that_is_deleted_during_a_capture_puts_nothing_into_the_graph)
{
    start_stage(FAKE_LAZY, 5, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    case_next(&c, &b, stream);
    dlpack *t = case_export(&c, &b, TOKMAP_STAGE_LABELS, stream);
    case_release(&c, &b, stream);
    case_use(&c, &b, stream);
    fake.streams[fake_number(stream)].capturing = true;
    t->deleter(t);
    fake_check();
    fake.streams[fake_number(stream)].capturing = false;
    for (int i = 0; i < 8; i++) /* the slot came back */
        pass(stream);
    finish();
}

static uint64_t n_queued(void)
{
    tokmap_i_mutex_lock(&c.stage->mutex);
    const uint64_t n = c.stage->n_queued;
    tokmap_i_mutex_unlock(&c.stage->mutex);
    return n;
}

/* Released before the stage has asked the stream again: then the slot may hold another batch. */
TEST(no_batch_is_lost_whose_slot_had_a_tensor_that_was_deleted_during_a_capture)
{
    start_stage(FAKE_LAZY, 5, (tokmap_stage_options){.n_slots = 2});
    tokmap_i_stream stream = fake_stream_open(0);
    for (int round = 0; round < 8; round++) {
        case_next(&c, &b, stream);
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_LABELS, stream);
        fake.streams[fake_number(stream)].capturing = true;
        t->deleter(t);
        fake_check();
        fake.streams[fake_number(stream)].capturing = false;
        const uint64_t n = n_queued();
        case_release(&c, &b, stream);
        for (int i = 0; i < 100 && n_queued() == n; i++) /* it may not be, and that is right */
            usleep(1000);
        for (int i = 0; i < 3; i++)
            pass(stream);
    }
    finish();
}

/* ---- Tensors ---- */

/* Ordinary code in PyTorch: a batch that is taken under a side stream's guard. */
TEST(a_batch_stays_until_the_other_stream_has_used_its_tensors)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0), other = fake_stream_open(0);
    for (int round = 0; round < 6; round++) {
        case_next(&c, &b, stream);
        dlpack *here = case_export(&c, &b, TOKMAP_STAGE_INPUTS, other);
        dlpack *there = case_export(&c, &b, TOKMAP_STAGE_LABELS, other);
        case_use(&c, &b, other);
        case_release(&c, &b, stream);
        (round & 1 ? here : there)->deleter(round & 1 ? here : there);
        (round & 1 ? there : here)->deleter(round & 1 ? there : here);
        for (int i = 0; i < 3; i++) /* the other stream has not come to it yet */
            pass(stream);
    }
    finish();
}

/* JAX takes each array in another of its streams. */
TEST(a_batch_stays_until_every_stream_has_used_its_tensor)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    tokmap_i_stream others[3] = {fake_stream_open(0), fake_stream_open(0), NULL};
    for (uint32_t round = 0; round < 24; round++) {
        dlpack *t[3];
        case_next(&c, &b, stream);
        for (uint32_t k = 0; k < 3; k++)
            t[k] = case_export(&c, &b, 1u << k, others[k]);
        if (round % 2)
            case_release(&c, &b, stream);
        for (uint32_t k = 0; k < 3; k++) { /* each of them is once the first and once the last */
            const uint32_t i = (round + (round % 4 < 2 ? k : 3 - k)) % 3;
            case_use(&c, &b, others[i]);
            t[i]->deleter(t[i]);
        }
        if (round % 2 == 0)
            case_release(&c, &b, stream);
        for (int i = 0; i < 3; i++) /* the other streams have not come to it yet */
            pass(stream);
    }
    finish();
}

/* One tensor's stream is captured when it is deleted, the other's is not. */
TEST(a_slot_waits_for_a_tensor_whose_stream_was_captured_and_for_the_others)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    tokmap_i_stream others[2] = {fake_stream_open(0), fake_stream_open(0)};
    for (uint32_t round = 0; round < 8; round++) {
        dlpack *t[2];
        case_next(&c, &b, stream);
        for (uint32_t k = 0; k < 2; k++)
            t[k] = case_export(&c, &b, 1u << k, others[k]);
        case_release(&c, &b, stream);
        for (uint32_t k = 0; k < 2; k++)
            case_use(&c, &b, others[k]);
        bool *capturing = &fake.streams[fake_number(others[round % 2])].capturing;
        *capturing = true;
        for (uint32_t k = 0; k < 2; k++)
            t[k ^ (round / 2 & 1)]->deleter(t[k ^ (round / 2 & 1)]);
        fake_check();
        CHECK_REFUSED(case_try_next(&c, &b, stream, &err), TOKMAP_ERR_ARGUMENT, err, "are held");
        *capturing = false;
        for (int i = 0; i < 3; i++)
            pass(stream);
    }
    finish();
}

TEST(a_stage_is_closed_with_a_tensor_that_was_deleted_during_a_capture)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    case_next(&c, &b, stream);
    dlpack *t = case_export(&c, &b, TOKMAP_STAGE_LABELS, stream);
    case_release(&c, &b, stream);
    fake.streams[fake_number(stream)].capturing = true;
    t->deleter(t);
    fake.streams[fake_number(stream)].capturing = false;
    finish();
}

static dlpack *deleted_at_close;
static tokmap_i_stream captured_at_close;

static void *delete_while_captured(void *unused)
{
    bool *capturing = &fake.streams[fake_number(captured_at_close)].capturing;
    *capturing = true;
    deleted_at_close->deleter(deleted_at_close);
    *capturing = false;
    return unused;
}

static void delete_at_pop(fake_call call)
{
    pthread_t thread;
    if (call != FAKE_POP)
        return;
    fake.hook = NULL;
    CHECK_INT(pthread_create(&thread, NULL, delete_while_captured, NULL), 0);
    pthread_join(thread, NULL);
}

/* A sanitizer sees if it is freed twice or never. */
TEST(a_tensor_is_deleted_during_a_capture_while_its_stage_is_closed)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    case_next(&c, &b, stream);
    deleted_at_close = case_export(&c, &b, TOKMAP_STAGE_LABELS, stream);
    captured_at_close = stream;
    case_release(&c, &b, stream);
    case_settle();
    fake.hook = delete_at_pop;
    case_close_stage(&c);
    CHECK(fake.hook == NULL);
    deleted_at_close = NULL;
    b = (tokmap_stage_batch){0};
    tokmap_stage_close(NULL);
    fake_check();
    fake_check_leaks();
    close_corpus();
}

TEST(a_stream_that_gives_back_a_tensor_may_take_another)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    case_next(&c, &b, NULL);
    for (int i = 0; i < 5; i++) {
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, stream);
        case_use(&c, &b, stream);
        t->deleter(t);
    }
    tokmap_stage_tensor more = {
        .struct_size = sizeof more, .output = TOKMAP_STAGE_INPUTS, .stream = (void *)2};
    CHECK_INT(tokmap_stage_export(c.stage, &b, &more, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "CU_STREAM_PER_THREAD");
    CHECK(more.managed == NULL);
    CHECK_INT(tokmap_stage_release(c.stage, &b, (void *)2, &err), TOKMAP_ERR_ARGUMENT);
    case_release(&c, &b, NULL);
    for (int i = 0; i < 4; i++) { /* another stream for another batch */
        case_next(&c, &b, NULL);
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, i % 2 ? NULL : stream);
        case_use(&c, &b, i % 2 ? NULL : stream);
        t->deleter(t);
        case_release(&c, &b, NULL);
    }
    finish();
}

TEST(open_says_why_the_kernel_cannot_be_compiled)
{
    begin_without_stage();
    fake.load_error = TOKMAP_I_DRIVER_NO_COMPILER;
    CHECK_INT(case_try_stage(&c, (tokmap_stage_options){.n_slots = 2}, &err), TOKMAP_ERR_DEVICE);
    CHECK_SAYS(err.text, "libnvidia-ptxjitcompiler.so.1");
    fake.load_error = 218;
    CHECK_INT(case_try_stage(&c, (tokmap_stage_options){.n_slots = 2}, &err), TOKMAP_ERR_DEVICE);
    CHECK_SAYS(err.text, "ptxas says no: error 218");
    fake.load_error = 0;
    case_check_caller();
    fake_check_leaks();
    tokmap_loader_close(c.loader);
    close_corpus();
}

TEST(open_has_run_the_kernel_once)
{
    start_stage(FAKE_LAZY, 1, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    CHECK_INT(fake.n_launched, 1);
    CHECK(!fake_can_step(fake_number(c.stage->stream)));
    finish();
}

/* It waits for the kernel that read the slot, and not for the use of what that wrote. */
TEST(a_copy_does_not_wait_for_the_release_of_its_slot)
{
    start_stage(FAKE_LAZY, 1, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    const int stage = fake_number(c.stage->stream);
    for (int i = 0; i < 2; i++)
        pass(stream);
    CHECK_EQ(fake.n_copied, 1 + 3); /* one by open; the third batch takes the slot of the first */
    const fake_stream *mine = &fake.streams[fake_number(stream)], *its = &fake.streams[stage];
    while (fake_can_step(stage))
        fake_step(stage);
    CHECK_INT(its->ops[its->head].kind, FAKE_OP_WAIT);
    while (mine->ops[mine->head].kind != FAKE_OP_CALL) /* until the first look */
        fake_step(fake_number(stream));
    while (fake_can_step(stage))
        fake_step(stage);
    CHECK_EQ(its->n_ops - its->head, 0);
    finish();
}

static void free_what_is_the_parents(void)
{
    const uint64_t n_calls = fake.n_calls;
    tokmap_stage_close(NULL);
    CHECK_EQ(fake.n_calls, n_calls);
}

/* A call of the driver there might wait for the device. */
TEST(a_tensor_is_deleted_after_close_without_a_call_of_the_driver)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.no_thread = 1});
    tokmap_i_stream stream = fake_stream_open(0);
    case_next(&c, &b, stream);
    dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, stream);
    case_release(&c, &b, stream);
    case_settle();
    case_close_stage(&c);
    fake.streams[fake_number(stream)].alive = false;
    const uint64_t n_calls = fake.n_calls;
    t->deleter(t);
    check_in_child(free_what_is_the_parents);
    CHECK_EQ(fake.n_calls, n_calls);
    CHECK_INT(fake.n_retained[0], 1);
    tokmap_stage_close(NULL);
    fake_check();
    fake_check_leaks();
    case_check_caller();
    close_corpus();
}

TEST(open_frees_a_closed_stage_whose_tensors_are_deleted)
{
    start(FAKE_RANDOM, 6);
    for (int i = 0; i < 4; i++) {
        case_open_stage(&c, (tokmap_stage_options){.no_thread = 1});
        CHECK_INT(fake.n_retained[0], 1);
        case_next(&c, &b, NULL);
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
        case_release(&c, &b, NULL);
        case_settle();
        case_close_stage(&c);
        t->deleter(t);
    }
    tokmap_stage_close(NULL);
    fake_check();
    fake_check_leaks();
    close_corpus();
}

static atomic_uint kinds; /* of calls, as bits */

static void note_kind(fake_call call)
{
    atomic_fetch_or(&kinds, FAKE_BIT(call));
}

TEST(a_deleter_records_an_event_and_the_host_never_waits)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.no_thread = 1});
    for (int i = 0; i < 2; i++) {
        case_next(&c, &b, NULL);
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
        case_release(&c, &b, NULL);
        fake.broken = i ? FAKE_BIT(FAKE_RECORD) : 0;
        kinds = 0;
        fake.hook = note_kind;
        t->deleter(t);
        fake.hook = NULL;
        fake.broken = 0;
        CHECK_EQ(kinds, FAKE_BIT(FAKE_PUSH) | FAKE_BIT(FAKE_EXCHANGE) |
                            FAKE_BIT(FAKE_IS_CAPTURING) | FAKE_BIT(FAKE_STREAM_WAIT) |
                            FAKE_BIT(FAKE_RECORD) | FAKE_BIT(FAKE_POP));
    }
    finish();
}

TEST(a_slot_comes_back_although_its_event_failed_when_the_tensor_was_deleted)
{
    start_stage(FAKE_LAZY, 6, (tokmap_stage_options){.n_slots = 2, .no_thread = 1});
    case_next(&c, &b, NULL);
    dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
    case_release(&c, &b, NULL);
    fake.broken = FAKE_BIT(FAKE_RECORD);
    t->deleter(t);
    fake.broken = 0;
    for (int i = 0; i < 4; i++)
        pass(NULL);
    finish();
}

static atomic_int gate;

static void *delete_at_the_gate(void *tensor)
{
    dlpack *t = tensor;
    while (gate == 0)
        sched_yield();
    t->deleter(t);
    return NULL;
}

TEST(two_threads_delete_the_last_tensors_of_a_closed_stage)
{
    pthread_t threads[2];
    start(FAKE_LAZY, 6);
    for (int i = 0; i < 50; i++) {
        case_open_stage(&c, (tokmap_stage_options){.no_thread = 1});
        case_next(&c, &b, NULL);
        dlpack *first = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
        dlpack *second = case_export(&c, &b, TOKMAP_STAGE_LABELS, NULL);
        case_release(&c, &b, NULL);
        case_settle();
        case_close_stage(&c);
        gate = 0;
        pthread_create(&threads[0], NULL, delete_at_the_gate, first);
        pthread_create(&threads[1], NULL, delete_at_the_gate, second);
        gate = 1;
        while (fake.n_retained[0] > 0) /* while they delete, too */
            tokmap_stage_close(NULL);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
    }
    fake_check();
    fake_check_leaks();
    close_corpus();
}

/* ---- Forks ---- */

static void use_in_child(dlpack *t)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_stage_info info = {.struct_size = sizeof info};
    tokmap_stage_tensor tensor = {.struct_size = sizeof tensor, .output = TOKMAP_STAGE_INPUTS};
    const uint64_t n_calls = fake.n_calls;
    CHECK_REFUSED(tokmap_stage_next(c.stage, &b, NULL, &err), TOKMAP_ERR_FORKED, err, "parent");
    CHECK_INT(tokmap_stage_release(c.stage, &b, NULL, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_fill(c.stage, &b, NULL, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_save(c.stage, state, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_restore(c.stage, state, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_seek(c.stage, 0, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_export(c.stage, &b, &tensor, &err), TOKMAP_ERR_FORKED);
    CHECK_INT(tokmap_stage_get_info(c.stage, &info), TOKMAP_ERR_FORKED);
    tokmap_stage_close(c.stage);
    if (t)
        t->deleter(t);
    CHECK_EQ(fake.n_calls, n_calls);
}

static void fork_with(int32_t no_thread, bool with_tensor)
{
    begin(FAKE_RANDOM, 8);
    case_open_stage(&c, (tokmap_stage_options){.no_thread = no_thread});
    case_next(&c, &b, NULL);
    dlpack *t = with_tensor ? case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL) : NULL;
    pthread_mutex_lock(&fake.mutex); /* the stage's thread is not within a call */
    const pid_t child = fork();
    pthread_mutex_unlock(&fake.mutex);
    if (child == 0) {
        use_in_child(t);
        _exit(0);
    }
    must_end(child);
    case_release(&c, &b, NULL);
    if (t)
        t->deleter(t);
    for (int i = 0; i < 20; i++)
        pass(NULL);
    end();
}

TEST(a_forked_child_is_told_so_and_may_delete_a_tensor_and_the_parent_goes_on)
{
    case_open();
    for (int32_t i = 0; i < 4; i++)
        fork_with(i % 2, i / 2);
    close_corpus();
}

/* ---- Expansion ---- */

TEST(a_batch_whose_kernel_cannot_be_started_is_asked_for_again)
{
    start_stage(FAKE_LAZY, 9, (tokmap_stage_options){.no_thread = 1});
    const tokmap_stage_batch memory = case_memory(&c);
    for (int i = 0; i < 6; i++) {
        fake.broken = FAKE_BIT(FAKE_LAUNCH);
        CHECK_INT(i & 1 ? case_try_fill(&c, &memory, NULL, &err)
                        : case_try_next(&c, &b, NULL, &err),
                  TOKMAP_ERR_DEVICE);
        CHECK_SAYS(err.text, "starting the kernel");
        fake.broken = 0;
        pass(NULL);
    }
    finish();
}

/* In a caller's graph the time between two steps is what fill takes of its stream. */
TEST(a_batch_is_one_launch_in_the_callers_stream)
{
    start_stage(FAKE_LAZY, 9, (tokmap_stage_options){.no_thread = 1});
    const tokmap_stage_batch all = case_memory(&c);
    tokmap_i_stream stream = fake_stream_open(0);
    for (int i = 0; i < 12; i++) {
        tokmap_stage_batch memory = all;
        memory.labels = i & 1 ? memory.labels : NULL;
        if (i % 3)
            CHECK_INT(case_try_fill(&c, &memory, stream, &err), TOKMAP_OK);
        else
            pass(stream);
        CHECK_EQ(fake.n_launched, 2 + i); /* the first was open's */
        uint32_t n_launches = 0, n_copies = 0;
        const fake_stream *s = &fake.streams[fake_number(stream)];
        for (size_t k = s->head; k < s->n_ops; k++) {
            n_launches += s->ops[k].kind == FAKE_OP_LAUNCH;
            n_copies += s->ops[k].kind == FAKE_OP_COPY_IN;
        }
        CHECK_EQ(n_launches, 1);
        CHECK_EQ(n_copies, 0);
        case_settle();
    }
    finish();
}

/* ---- Calls that take their time ---- */

static pthread_t caller;

static void copy_slowly(fake_call call)
{
    int closed = 0;
    if (call == FAKE_COPY_IN && !pthread_equal(pthread_self(), caller) &&
        atomic_compare_exchange_strong(&gate, &closed, 1)) {
        while (gate == 1)
            usleep(100);
    }
}

/* A copy from memory that is not pinned waits for its stream. */
TEST(nobody_waits_while_a_copy_is_queued_in_another_thread)
{
    start(FAKE_EAGER, 9);
    caller = pthread_self();
    gate = 2;
    fake.hook = copy_slowly; /* while no other thread can read it */
    case_open_stage(&c, (tokmap_stage_options){.n_slots = 8});
    while (n_queued() < 7)
        usleep(100);
    case_next(&c, &b, NULL);
    gate = 0;
    case_release(&c, &b, NULL);
    for (int i = 0; i < 5; i++) {
        case_next(&c, &b, NULL);
        dlpack *t = case_export(&c, &b, TOKMAP_STAGE_INPUTS, NULL);
        t->deleter(t);
        CHECK_INT(tokmap_stage_wait(c.stage, &b, NULL, NULL), TOKMAP_OK);
        case_release(&c, &b, NULL);
        for (int k = 0; i == 0 && gate == 0 && k < 10000; k++)
            usleep(100); /* the thread is in the copy, or all of it was queued by the caller */
    }
    gate = 2;
    end();
    fake.hook = NULL;
    close_corpus();
}

/* ---- Close ---- */

/* All that was queued before release has been done when memory goes. */
TEST(close_waits_for_what_callers_queued_before_release)
{
    case_open();
    for (int32_t no_thread = 0; no_thread < 2; no_thread++) {
        begin(FAKE_LAZY, 9);
        case_open_stage(&c, (tokmap_stage_options){.no_thread = no_thread});
        tokmap_i_stream stream = fake_stream_open(0);
        for (int i = 0; i < 3; i++)
            pass(stream);
        case_close_stage(&c);
        CHECK_EQ(fake.n_frees_in_use, 0);
        fake_check();
        fake_check_leaks();
        case_check_caller();
    }
    close_corpus();
}

static atomic_bool edit_is_bad;

enum {
    BAD_SAMPLE = 5 * CASE_ROWS
};

static void edit_badly(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    (void)context;
    if (edit_is_bad && batch->first_sample == BAD_SAMPLE)
        rows[1].n_tokens++;
}

TEST(an_error_comes_in_its_place_and_is_tried_again)
{
    case_open();
    for (int32_t no_thread = 0; no_thread < 2; no_thread++) {
        begin(FAKE_RANDOM, 14);
        edit_is_bad = true;
        case_open_stage(&c, (tokmap_stage_options){.no_thread = no_thread, .edit = edit_badly});
        for (int i = 0; i < 10; i++) {
            for (int k = 0; k < 3 && edit_is_bad && c.position == BAD_SAMPLE; k++) {
                CHECK_INT(case_try_next(&c, &b, NULL, &err), TOKMAP_ERR_ARGUMENT);
                CHECK_SAYS(err.text, "edit: row 1 ");
            }
            edit_is_bad = c.position < BAD_SAMPLE;
            pass(NULL);
        }
        end();
    }
    close_corpus();
}

/* ---- A driver that refuses ---- */

TEST(memory_that_cannot_be_pinned_is_copied_all_the_same_and_that_is_said_once)
{
    case_open();
    for (int32_t v = 0; v < 6; v++) {
        begin((fake_policy)(v / 2), 11);
        fake.broken = FAKE_BIT(FAKE_REGISTER);
        case_watch();
        c.loader = case_loader(CASE_ROWS);
        CHECK_INT(case_try_stage(&c, (tokmap_stage_options){.no_thread = v & 1}, &err), TOKMAP_OK);
        for (int i = 0; i < 20; i++)
            pass(NULL);
        CHECK_EQ(c.n_logs, 1);
        CHECK_SAYS(c.log, "batches are copied from memory that is not pinned");
        tokmap_stage_info info = {.struct_size = sizeof info};
        tokmap_stage_get_info(c.stage, &info);
        CHECK_INT(info.pinned, 0);
        end(); /* and the thread that counts */
        CHECK_EQ(fake.n_pageable, fake.n_copied);
    }
    close_corpus();
}

TEST(a_batch_that_cannot_be_queued_ends_the_stage_and_a_state_is_saved_all_the_same)
{
    case_open();
    for (int32_t v = 0; v < 2; v++) {
        uint8_t state[TOKMAP_STATE_BYTES];
        tokmap_status status = TOKMAP_OK;
        begin(FAKE_RANDOM, 12);
        case_open_stage(&c, (tokmap_stage_options){.no_thread = v});
        pass(NULL);
        fake.broken = FAKE_BIT(FAKE_COPY_IN);
        for (int i = 0; i < 12 && !status; i++) {
            status = case_try_next(&c, &b, NULL, &err);
            if (!status)
                case_release(&c, &b, NULL);
        }
        fake.broken = 0;
        CHECK_INT(status, TOKMAP_ERR_DEVICE);
        CHECK_REFUSED(case_try_next(&c, &b, NULL, &err), TOKMAP_ERR_DEVICE, err, "copying a batch");
        CHECK_EQ(c.n_logs, 1);
        CHECK_SAYS(c.log, "the stage has stopped");
        CHECK_INT(tokmap_stage_save(c.stage, state, &err), TOKMAP_OK);
        end();
    }
    close_corpus();
}
