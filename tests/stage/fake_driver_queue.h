/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver_queue.h - what fake_driver.h is made of: memory, streams, events, and a policy that
 * decides when an operation is done.
 *
 * The default streams do not wait for the others, as those are non-blocking ones. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "support/check.h"
#include "stage/driver.h"
#include "stage/expand.h"

#define FAKE_DEVICE_BIT (1ull << 62)
#define FAKE_HOST_BIT (1ull << 61)

enum {
    FAKE_DEVICES = 2,
    FAKE_STREAMS = 24, /* the first ones are the default streams of the devices */
    FAKE_EVENTS = 512,
    FAKE_REGIONS = 640,
    FAKE_MAX_STACK = 16,
    FAKE_POISON = 0xA5,
    FAKE_OVER = 255,       /* in fake.records */
    FAKE_NO_CONTEXT = 201, /* errors, as the driver counts them */
    FAKE_CAPTURE_IMPLICIT = 906,
    FAKE_INJECTED = 719
};

typedef enum fake_call {
    FAKE_FIND, /* devices, attributes */
    FAKE_RETAIN,
    FAKE_RELEASE_CONTEXT,
    FAKE_PUSH,
    FAKE_POP,
    FAKE_EXCHANGE,
    FAKE_CREATE_STREAM,
    FAKE_DESTROY_STREAM,
    FAKE_WAIT_STREAM,
    FAKE_IS_CAPTURING,
    FAKE_STREAM_WAIT,
    FAKE_CREATE_EVENT,
    FAKE_DESTROY_EVENT,
    FAKE_RECORD,
    FAKE_QUERY,
    FAKE_WAIT_EVENT,
    FAKE_ALLOCATE,
    FAKE_FREE,
    FAKE_REGISTER,
    FAKE_UNREGISTER,
    FAKE_COPY_IN,
    FAKE_LOAD,
    FAKE_UNLOAD,
    FAKE_FUNCTION,
    FAKE_LAUNCH
} fake_call;
#define FAKE_BIT(call) (1u << (call))

typedef enum fake_policy {
    FAKE_LAZY,   /* only what a host that waits needs, and what the test steps */
    FAKE_RANDOM, /* some of it at every call */
    FAKE_EAGER   /* all at once */
} fake_policy;

typedef enum fake_op_kind {
    FAKE_OP_WAIT,
    FAKE_OP_RECORD,
    FAKE_OP_COPY_IN,
    FAKE_OP_LAUNCH,
    FAKE_OP_CALL /* the test's own */
} fake_op_kind;

typedef struct fake_op {
    fake_op_kind kind;
    uint32_t serial;     /* of a record */
    tokmap_i_address to; /* a copy */
    const uint8_t *host; /* pinned */
    uint8_t *staged;     /* a copy of memory that is not */
    size_t n_bytes;
    uint64_t hash; /* of pinned memory, when the copy was queued */
    tokmap_i_expand_job job;
    void (*call)(void *context);
    void *context;
} fake_op;

typedef struct fake_stream {
    bool alive, capturing, of_test;
    int device;
    fake_op *ops;
    size_t n_ops, head, capacity;
} fake_stream;

typedef struct fake_event {
    bool alive;
    uint32_t last; /* its last record; 0: none, which is over */
} fake_event;

/* Memory of the device, or registered memory of the host. */
typedef struct fake_region {
    bool alive, of_test, is_host;
    uint8_t *real;
    size_t n_bytes;
    tokmap_i_address address;
} fake_region;

extern struct fake_state {
    pthread_mutex_t mutex;
    fake_policy policy;
    uint64_t random;
    char breach[512];
    atomic_bool is_open; /* nothing may be taken any more */

    fake_stream streams[FAKE_STREAMS];
    fake_event events[FAKE_EVENTS];
    fake_region regions[FAKE_REGIONS];
    uint8_t *records; /* for each serial its stream, or OVER */
    uint32_t n_records, record_capacity;
    int n_retained[FAKE_DEVICES], n_modules, n_pushed;

    /* What fails; tests change it while the stage's thread is at work. */
    atomic_uint_fast64_t n_calls;            /* counted from 1, */
    atomic_uint_fast64_t fail_from, fail_to; /* and the one after the last that fails */
    atomic_bool context_works;               /* what has to do with contexts does not fail */
    atomic_uint broken;                      /* kinds of calls that fail, as bits */
    atomic_uint failed;                      /* kinds that were made to fail */
    atomic_bool failed_to_restore;           /* a thread's capture mode */
    void (*hook)(fake_call call);            /* before a call, without the mutex */

    int load_error; /* of load_module, with a log */
    uint64_t n_pageable, n_copied, n_launched, n_frees_in_use;
} fake;

/* Of each thread, as the driver has it. */
extern _Thread_local struct fake_thread_state {
    void *stack[FAKE_MAX_STACK];
    int n, mode;
} fake_thread;

__attribute__((format(printf, 1, 2))) void fake_breach(const char *format, ...);

/* ---- Memory ---- */

fake_region *fake_find(tokmap_i_address address, size_t n_bytes);
/* What the device sees at an address; NULL, and a breach: nothing. */
uint8_t *fake_at(tokmap_i_address address, size_t n_bytes);
fake_region *fake_registered(const void *memory, size_t n_bytes);
fake_region *fake_new_region(uint8_t *real, size_t n_bytes, uint64_t bit);
uint64_t fake_hash(uint64_t h, const uint8_t *p, size_t n_bytes);

/* ---- Doing what was queued ---- */

bool fake_can_run(int k);
/* Does the next operation of a stream. */
void fake_run(int k);
bool fake_run_any(void);
void fake_wait_record(uint32_t serial);
void fake_wait_all(int k);
void fake_tick(void);

/* ---- Queueing ---- */

int fake_device(void);
int fake_stream_index(tokmap_i_stream stream);
fake_event *fake_event_of(tokmap_i_event event);
void fake_add(int k, const fake_op *op);
uint32_t fake_add_record(int k);
bool fake_in_use(const fake_region *r);
