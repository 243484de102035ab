/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/fake_driver.h"

/* ---- Calls ---- */

static bool fake_is_of_context(fake_call call)
{
    return call == FAKE_PUSH || call == FAKE_POP || call == FAKE_EXCHANGE || call == FAKE_RETAIN ||
           call == FAKE_RELEASE_CONTEXT;
}

static bool fake_fails(fake_call call)
{
    return (fake.broken & FAKE_BIT(call)) ||
           (fake.n_calls >= fake.fail_from && fake.n_calls < fake.fail_to &&
            !(fake.context_works && fake_is_of_context(call)));
}

/* Every call begins with this, and ends with fake_leave. */
static int fake_enter(fake_call call)
{
    static const uint32_t takes = FAKE_BIT(FAKE_RETAIN) | FAKE_BIT(FAKE_CREATE_STREAM) |
                                  FAKE_BIT(FAKE_CREATE_EVENT) | FAKE_BIT(FAKE_ALLOCATE) |
                                  FAKE_BIT(FAKE_REGISTER) | FAKE_BIT(FAKE_LOAD);
    if (fake.hook)
        fake.hook(call);
    pthread_mutex_lock(&fake.mutex);
    fake.n_calls++;
    fake_tick();
    if (fake.is_open && (takes & FAKE_BIT(call)))
        fake_breach("something is taken after open: call kind %d", (int)call);
    if (fake_fails(call)) {
        fake.failed |= FAKE_BIT(call);
        return FAKE_INJECTED;
    }
    if (call == FAKE_FIND || fake_is_of_context(call))
        return 0;
    if (fake_device() >= 0 && fake_thread.mode != TOKMAP_I_CAPTURE_RELAXED &&
        !(fake.failed & (FAKE_BIT(FAKE_PUSH) | FAKE_BIT(FAKE_POP) | FAKE_BIT(FAKE_EXCHANGE))))
        fake_breach("a call that could break a capture in another thread: kind %d", (int)call);
    if (fake_device() >= 0)
        return 0;
    if (!(fake.failed & (FAKE_BIT(FAKE_PUSH) | FAKE_BIT(FAKE_EXCHANGE))))
        fake_breach("a call without the device's context: kind %d", (int)call);
    return FAKE_NO_CONTEXT;
}

static int fake_leave(int error)
{
    pthread_mutex_unlock(&fake.mutex);
    return error;
}

static int fake_get_error_name(int error, const char **name)
{
    *name = error == FAKE_INJECTED ? "CUDA_ERROR_INJECTED" : "CUDA_ERROR_OTHER";
    return 0;
}

static int fake_get_error_text(int error, const char **text)
{
    *text = NULL; /* as for an error that the driver has no words for */
    return error;
}

static int fake_count_devices(int *n)
{
    *n = FAKE_DEVICES;
    return fake_leave(fake_enter(FAKE_FIND));
}

static int fake_get_device(int *device, int ordinal)
{
    *device = ordinal;
    return fake_leave(fake_enter(FAKE_FIND));
}

static int fake_get_attribute(int *value, int attribute, int device)
{
    (void)device;
    (void)attribute;
    *value = 0;
    return fake_leave(fake_enter(FAKE_FIND));
}

static int fake_retain(void **context, int device)
{
    const int error = fake_enter(FAKE_RETAIN);
    if (!error) {
        fake.n_retained[device]++;
        *context = (void *)(uintptr_t)(0xC0 + device);
    }
    return fake_leave(error);
}

static int fake_release_context(int device)
{
    const int error = fake_enter(FAKE_RELEASE_CONTEXT);
    if (!error && fake.n_retained[device]-- == 0)
        fake_breach("the primary context is released more often than it was retained");
    return fake_leave(error);
}

static int fake_push(void *context)
{
    const int error = fake_enter(FAKE_PUSH);
    if (!error && fake_thread.n == FAKE_MAX_STACK)
        fake_breach("contexts are pushed and never popped");
    else if (!error) {
        fake_thread.stack[fake_thread.n++] = context;
        fake.n_pushed++;
    }
    return fake_leave(error);
}

static int fake_pop(void **context)
{
    const int error = fake_enter(FAKE_POP);
    if (!error && fake_thread.n == 0)
        fake_breach("a context is popped that was not pushed");
    else if (!error) {
        *context = fake_thread.stack[--fake_thread.n];
        fake.n_pushed--;
    }
    return fake_leave(error);
}

static int fake_exchange(int *mode)
{
    const int error = fake_enter(FAKE_EXCHANGE);
    if (error && *mode != TOKMAP_I_CAPTURE_RELAXED)
        fake.failed_to_restore = true;
    if (!error) {
        const int was = fake_thread.mode;
        fake_thread.mode = *mode;
        *mode = was;
    }
    return fake_leave(error);
}

/* With the mutex held. */
static tokmap_i_stream fake_new_stream(bool of_test, int device)
{
    int k = FAKE_DEVICES;
    while (k < FAKE_STREAMS && fake.streams[k].alive)
        k++;
    if (k == FAKE_STREAMS)
        abort();
    fake.streams[k].alive = true;
    fake.streams[k].of_test = of_test;
    fake.streams[k].device = device;
    return (void *)(uintptr_t)(0x5000 + k);
}

static int fake_create_stream(tokmap_i_stream *stream, unsigned flags)
{
    const int error = fake_enter(FAKE_CREATE_STREAM);
    if (flags != TOKMAP_I_STREAM_NON_BLOCKING)
        fake_breach("the stage's stream is not what it should be");
    if (!error)
        *stream = fake_new_stream(false, fake_device());
    return fake_leave(error);
}

static int fake_destroy_stream(tokmap_i_stream stream)
{
    const int error = fake_enter(FAKE_DESTROY_STREAM);
    if (!error) {
        fake_stream *s = &fake.streams[fake_stream_index(stream)];
        if (s->head < s->n_ops && !fake.failed)
            fake_breach("a stream is destroyed with work in it");
        fake_wait_all((int)(s - fake.streams));
        s->alive = false;
    }
    return fake_leave(error);
}

int fake_wait_stream(tokmap_i_stream stream)
{
    const int error = fake_enter(FAKE_WAIT_STREAM);
    if (!error)
        fake_wait_all(fake_stream_index(stream));
    return fake_leave(error);
}

/* The default stream cannot be asked while one that it would wait for is captured. */
static int fake_is_capturing(tokmap_i_stream stream, int *status)
{
    int error = fake_enter(FAKE_IS_CAPTURING);
    for (int k = 0; !error && !stream && k < FAKE_STREAMS; k++)
        if (fake.streams[k].capturing && fake.streams[k].device == fake_device())
            error = FAKE_CAPTURE_IMPLICIT;
    if (!error)
        *status = fake.streams[fake_stream_index(stream)].capturing;
    return fake_leave(error);
}

static int fake_stream_wait(tokmap_i_stream stream, tokmap_i_event event, unsigned flags)
{
    const int error = fake_enter(FAKE_STREAM_WAIT);
    const uint32_t serial = error ? 0 : fake_event_of(event)->last;
    if (flags)
        fake_breach("a wait with flags");
    if (!error && fake.streams[fake_stream_index(stream)].capturing)
        fake_breach("a captured stream waits for an event");
    if (serial)
        fake_add(fake_stream_index(stream), &(fake_op){.kind = FAKE_OP_WAIT, .serial = serial});
    return fake_leave(error);
}

static int fake_create_event(tokmap_i_event *event, unsigned flags)
{
    int i = 0;
    const int error = fake_enter(FAKE_CREATE_EVENT);
    if (!(flags & TOKMAP_I_EVENT_NO_TIMING))
        fake_breach("an event with timing");
    while (!error && i < FAKE_EVENTS && fake.events[i].alive)
        i++;
    if (i == FAKE_EVENTS)
        abort();
    if (!error) {
        fake.events[i] = (fake_event){.alive = true};
        *event = (void *)(uintptr_t)(0x9000 + i);
    }
    return fake_leave(error);
}

static int fake_destroy_event(tokmap_i_event event)
{
    const int error = fake_enter(FAKE_DESTROY_EVENT);
    if (!error)
        fake_event_of(event)->alive = false;
    return fake_leave(error);
}

int fake_record(tokmap_i_event event, tokmap_i_stream stream)
{
    const int error = fake_enter(FAKE_RECORD);
    if (!error)
        fake_event_of(event)->last = fake_add_record(fake_stream_index(stream));
    return fake_leave(error);
}

static int fake_query(tokmap_i_event event)
{
    int error = fake_enter(FAKE_QUERY);
    if (!error && fake.records[fake_event_of(event)->last] != FAKE_OVER)
        error = TOKMAP_I_DRIVER_NOT_READY;
    return fake_leave(error);
}

static int fake_wait_event(tokmap_i_event event)
{
    const int error = fake_enter(FAKE_WAIT_EVENT);
    if (!error)
        fake_wait_record(fake_event_of(event)->last);
    return fake_leave(error);
}

/* With the mutex held. */
static fake_region *fake_new_memory(size_t n_bytes)
{
    uint8_t *real = aligned_alloc(64, round_up(n_bytes, 64));
    memset(real, FAKE_POISON, n_bytes);
    return fake_new_region(real, n_bytes, FAKE_DEVICE_BIT);
}

static int fake_allocate(tokmap_i_address *address, size_t n_bytes)
{
    const int error = fake_enter(FAKE_ALLOCATE);
    if (!error)
        *address = fake_new_memory(n_bytes)->address;
    return fake_leave(error);
}

/* As the real one, it waits for the device. */
static int fake_free(tokmap_i_address address)
{
    const int error = fake_enter(FAKE_FREE);
    fake_region *r = error ? NULL : fake_find(address, 1);
    if (!error && (!r || r->is_host || r->address != address))
        fake_breach("memory is freed that was not taken");
    else if (!error) {
        fake.n_frees_in_use += fake_in_use(r);
        for (int k = 0; k < FAKE_STREAMS; k++)
            fake_wait_all(k);
        free(r->real);
        r->alive = false;
    }
    return fake_leave(error);
}

static int fake_register(void *memory, size_t n_bytes, unsigned flags)
{
    const int error = fake_enter(FAKE_REGISTER);
    if (flags != TOKMAP_I_REGISTER_PORTABLE)
        fake_breach("memory is not registered for all devices");
    if (!error)
        fake_new_region(memory, n_bytes, FAKE_HOST_BIT);
    return fake_leave(error);
}

static int fake_unregister(void *memory)
{
    const int error = fake_enter(FAKE_UNREGISTER);
    fake_region *r = error ? NULL : fake_registered(memory, 1);
    if (!error && (!r || r->real != memory))
        fake_breach("memory is unregistered that was not registered");
    else if (!error) {
        if (fake_in_use(r))
            fake_breach("memory is unregistered while an operation reads it");
        r->alive = false;
    }
    return fake_leave(error);
}

int fake_copy_in(tokmap_i_address to, const void *from, size_t n_bytes, tokmap_i_stream stream)
{
    const int error = fake_enter(FAKE_COPY_IN);
    const bool pinned = fake_registered(from, n_bytes) != NULL;
    if (!error && fake_at(to, n_bytes)) {
        fake_op op = {.kind = FAKE_OP_COPY_IN, .to = to, .host = from, .n_bytes = n_bytes};
        op.hash = fake_hash(0, from, n_bytes);
        if (!pinned) {
            op.host = NULL;
            op.staged = malloc(n_bytes);
            memcpy(op.staged, from, n_bytes);
        }
        fake.n_pageable += !pinned;
        fake.n_copied++;
        fake_add(fake_stream_index(stream), &op);
    }
    return fake_leave(error);
}

static int fake_load(void **module, const void *text, unsigned n_options, int *options,
                     void **values)
{
    const int entered = fake_enter(FAKE_LOAD), error = entered ? entered : fake.load_error;
    if (n_options != 2 || options[0] != TOKMAP_I_COMPILE_LOG ||
        options[1] != TOKMAP_I_COMPILE_LOG_BYTES)
        fake_breach("the module is loaded without a log");
    else if (error)
        snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas says no");
    if (!strstr(text, "tokmap_expand"))
        fake_breach("the module has no kernel");
    fake.n_modules += !error;
    *module = (void *)(uintptr_t)0xD0;
    return fake_leave(error);
}

static int fake_unload(void *module)
{
    const int error = fake_enter(FAKE_UNLOAD);
    if (module != (void *)(uintptr_t)0xD0 || (!error && fake.n_modules-- == 0))
        fake_breach("a module is unloaded that was not loaded");
    return fake_leave(error);
}

static int fake_function(void **function, void *module, const char *name)
{
    const int error = fake_enter(FAKE_FUNCTION);
    if (!error && (module != (void *)(uintptr_t)0xD0 || strcmp(name, "tokmap_expand") != 0))
        fake_breach("there is no function %s", name);
    *function = (void *)(uintptr_t)0xE0;
    return fake_leave(error);
}

static int fake_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       tokmap_i_stream stream, void **parameters, void **extra)
{
    const int error = fake_enter(FAKE_LAUNCH);
    const fake_op op = {.kind = FAKE_OP_LAUNCH, .job = *(tokmap_i_expand_job *)parameters[0]};
    if (function != (void *)(uintptr_t)0xE0 || grid_x != op.job.n_rows * op.job.n_tiles ||
        grid_y != 1 || grid_z != 1 || block_x != TOKMAP_I_BLOCK_THREADS || block_y != 1 ||
        block_z != 1 || shared_bytes != 0 || extra)
        fake_breach("a launch of the wrong shape");
    if (!error) {
        fake_add(fake_stream_index(stream), &op);
        fake.n_launched++;
    }
    return fake_leave(error);
}

const tokmap_i_driver fake_driver = {.get_error_name = fake_get_error_name,
                                     .get_error_text = fake_get_error_text,
                                     .count_devices = fake_count_devices,
                                     .get_device = fake_get_device,
                                     .get_attribute = fake_get_attribute,
                                     .retain_context = fake_retain,
                                     .release_context = fake_release_context,
                                     .push_context = fake_push,
                                     .pop_context = fake_pop,
                                     .exchange_capture_mode = fake_exchange,
                                     .create_stream = fake_create_stream,
                                     .destroy_stream = fake_destroy_stream,
                                     .wait_stream = fake_wait_stream,
                                     .is_capturing = fake_is_capturing,
                                     .stream_wait = fake_stream_wait,
                                     .create_event = fake_create_event,
                                     .destroy_event = fake_destroy_event,
                                     .record = fake_record,
                                     .query = fake_query,
                                     .wait_event = fake_wait_event,
                                     .allocate = fake_allocate,
                                     .free = fake_free,
                                     .register_host = fake_register,
                                     .unregister_host = fake_unregister,
                                     .copy_to_device = fake_copy_in,
                                     .load_module = fake_load,
                                     .unload_module = fake_unload,
                                     .get_function = fake_function,
                                     .launch = fake_launch};

/* ---- For tests ---- */

void fake_begin(fake_policy policy, uint64_t seed)
{
    for (int i = 0; i < FAKE_REGIONS; i++)
        if (fake.regions[i].alive && !fake.regions[i].is_host)
            free(fake.regions[i].real);
    for (int k = 0; k < FAKE_STREAMS; k++) {
        for (size_t i = fake.streams[k].head; i < fake.streams[k].n_ops; i++)
            free(fake.streams[k].ops[i].staged);
        free(fake.streams[k].ops);
    }
    free(fake.records);
    const size_t after = sizeof fake.mutex; /* which is first, and may have been used */
    memset((char *)&fake + after, 0, sizeof fake - after);
    memset(&fake_thread, 0, sizeof fake_thread);
    fake.policy = policy;
    fake.random = seed * 2 + 1;
    fake.record_capacity = 1024;
    fake.records = malloc(fake.record_capacity);
    fake.records[fake.n_records++] = FAKE_OVER;
    for (int k = 0; k < FAKE_DEVICES; k++)
        fake.streams[k] = (fake_stream){.alive = true, .of_test = true, .device = k};
}

void fake_check(void)
{
    pthread_mutex_lock(&fake.mutex);
    char breach[sizeof fake.breach];
    memcpy(breach, fake.breach, sizeof breach);
    pthread_mutex_unlock(&fake.mutex);
    if (breach[0])
        CHECK_FAIL("%s", breach);
}

void fake_check_leaks(void)
{
    int n_streams = 0, n_events = 0, n_memory = 0, n_pinned = 0;
    for (int k = 0; k < FAKE_STREAMS; k++)
        n_streams += fake.streams[k].alive && !fake.streams[k].of_test;
    for (int i = 0; i < FAKE_EVENTS; i++)
        n_events += fake.events[i].alive;
    for (int i = 0; i < FAKE_REGIONS; i++) {
        n_memory += fake.regions[i].alive && !fake.regions[i].of_test && !fake.regions[i].is_host;
        n_pinned += fake.regions[i].alive && fake.regions[i].is_host;
    }
    CHECK_INT(n_streams, 0);
    CHECK_INT(n_events, 0);
    CHECK_INT(n_memory, 0);
    CHECK_INT(n_pinned, 0);
    CHECK_INT(fake.n_modules, 0);
    for (int d = 0; d < FAKE_DEVICES; d++)
        CHECK_INT(fake.n_retained[d], 0);
}

tokmap_i_stream fake_stream_open(int device)
{
    pthread_mutex_lock(&fake.mutex);
    tokmap_i_stream stream = fake_new_stream(true, device);
    pthread_mutex_unlock(&fake.mutex);
    return stream;
}

int fake_number(tokmap_i_stream stream)
{
    return stream ? (int)((uintptr_t)stream - 0x5000) : 0;
}

void fake_add_call(tokmap_i_stream stream, void (*call)(void *), void *context)
{
    pthread_mutex_lock(&fake.mutex);
    fake_add(fake_number(stream),
             &(fake_op){.kind = FAKE_OP_CALL, .call = call, .context = context});
    pthread_mutex_unlock(&fake.mutex);
}

void fake_join(tokmap_i_stream from, tokmap_i_stream to)
{
    pthread_mutex_lock(&fake.mutex);
    const uint32_t serial = fake_add_record(fake_number(from));
    fake_add(fake_number(to), &(fake_op){.kind = FAKE_OP_WAIT, .serial = serial});
    pthread_mutex_unlock(&fake.mutex);
}

bool fake_can_step(int k)
{
    pthread_mutex_lock(&fake.mutex);
    const bool can = fake_can_run(k);
    pthread_mutex_unlock(&fake.mutex);
    return can;
}

void fake_step(int k)
{
    pthread_mutex_lock(&fake.mutex);
    if (fake_can_run(k))
        fake_run(k);
    pthread_mutex_unlock(&fake.mutex);
}

void fake_progress(uint32_t n)
{
    pthread_mutex_lock(&fake.mutex);
    for (uint32_t i = 0; i < n && fake_run_any(); i++)
        continue;
    pthread_mutex_unlock(&fake.mutex);
}

tokmap_i_address fake_take(size_t n_bytes)
{
    pthread_mutex_lock(&fake.mutex);
    fake_region *r = fake_new_memory(n_bytes);
    r->of_test = true;
    pthread_mutex_unlock(&fake.mutex);
    return r->address;
}
