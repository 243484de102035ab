/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/fake_driver_queue.h"

#include <stdarg.h>

struct fake_state fake = {.mutex = PTHREAD_MUTEX_INITIALIZER, .random = 1};
_Thread_local struct fake_thread_state fake_thread;

void fake_breach(const char *format, ...)
{
    va_list args;
    if (fake.breach[0])
        return;
    va_start(args, format);
    vsnprintf(fake.breach, sizeof fake.breach, format, args);
    va_end(args);
}

static uint32_t fake_any(uint32_t n)
{
    fake.random = fake.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((fake.random >> 33) % n);
}

/* ---- Memory ---- */

fake_region *fake_find(tokmap_i_address address, size_t n_bytes)
{
    for (int i = 0; i < FAKE_REGIONS; i++) {
        fake_region *r = &fake.regions[i];
        if (r->alive && address >= r->address && address - r->address < r->n_bytes)
            return n_bytes <= r->n_bytes - (address - r->address) ? r : NULL;
    }
    return NULL;
}

uint8_t *fake_at(tokmap_i_address address, size_t n_bytes)
{
    fake_region *r = fake_find(address, n_bytes);
    if (r)
        return r->real + (address - r->address);
    fake_breach("the device reaches for %zu bytes at 0x%" PRIx64 ", where it has nothing", n_bytes,
                address);
    return NULL;
}

fake_region *fake_registered(const void *memory, size_t n_bytes)
{
    const uint8_t *p = memory;
    for (int i = 0; i < FAKE_REGIONS; i++) {
        fake_region *r = &fake.regions[i];
        if (r->alive && r->is_host && p >= r->real && p + n_bytes <= r->real + r->n_bytes)
            return r;
    }
    return NULL;
}

fake_region *fake_new_region(uint8_t *real, size_t n_bytes, uint64_t bit)
{
    for (int i = 0; i < FAKE_REGIONS; i++) {
        fake_region *r = &fake.regions[i];
        if (r->alive)
            continue;
        *r = (fake_region){.alive = true,
                           .real = real,
                           .n_bytes = n_bytes,
                           .is_host = bit == FAKE_HOST_BIT,
                           .address = (uintptr_t)real ^ bit};
        return r;
    }
    abort();
}

uint64_t fake_hash(uint64_t h, const uint8_t *p, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* The image of a job, as the device sees it. */
static const uint8_t *fake_image(const tokmap_i_expand_job *job)
{
    const size_t table_bytes = job->n_rows * sizeof(tokmap_i_image_row);
    const tokmap_i_image_row *rows = (const tokmap_i_image_row *)fake_at(job->image, table_bytes);
    size_t extent = MAX(table_bytes, job->boundaries + 4 * (size_t)job->n_boundaries);
    for (uint32_t r = 0; rows && r < job->n_rows; r++) {
        extent = MAX(extent, rows[r].tokens + (uint64_t)rows[r].n_tokens * rows[r].token_bytes);
        if (rows[r].flags & TOKMAP_I_ROW_MASKED)
            extent = MAX(extent, rows[r].mask + (job->length + 7ull) / 8);
    }
    return rows ? fake_at(job->image, extent) : NULL;
}

/* ---- Doing what was queued ---- */

static bool fake_translate(tokmap_i_address *address, size_t n_bytes)
{
    if (*address)
        *address = (uintptr_t)fake_at(*address, n_bytes);
    return !fake.breach[0];
}

static void fake_launch_now(const fake_op *op)
{
    tokmap_i_expand_job job = op->job;
    const size_t n = (size_t)job.n_rows * job.length;
    const uint8_t *image = fake_image(&job);
    if (fake.breach[0] || !fake_translate(&job.inputs, n * job.input_bytes) ||
        !fake_translate(&job.labels, n * job.label_bytes) ||
        !fake_translate(&job.position_ids, n * 4) || !fake_translate(&job.document_ids, n * 4) ||
        !fake_translate(&job.cu_seqlens, (size_t)job.n_cu * 4))
        return;
    job.image = (uintptr_t)image;
    tokmap_i_expand(&job);
}

static void fake_copy_now(const fake_op *op)
{
    uint8_t *to = fake_at(op->to, op->n_bytes);
    const uint8_t *from = op->staged ? op->staged : op->host;
    if (!op->staged) {
        if (!fake_registered(op->host, op->n_bytes))
            fake_breach("memory that was pinned for a copy is not any more");
        else if (fake_hash(0, op->host, op->n_bytes) != op->hash)
            fake_breach("host memory was written while a copy that reads it was under way");
    }
    if (to && from && !fake.breach[0])
        memcpy(to, from, op->n_bytes);
}

bool fake_can_run(int k)
{
    const fake_stream *s = &fake.streams[k];
    if (s->head == s->n_ops)
        return false;
    const fake_op *op = &s->ops[s->head];
    return op->kind != FAKE_OP_WAIT || fake.records[op->serial] == FAKE_OVER;
}

void fake_run(int k)
{
    fake_stream *s = &fake.streams[k];
    fake_op op = s->ops[s->head++];
    if (s->head == s->n_ops)
        s->head = s->n_ops = 0;
    if (op.kind == FAKE_OP_RECORD)
        fake.records[op.serial] = FAKE_OVER;
    else if (op.kind == FAKE_OP_LAUNCH)
        fake_launch_now(&op);
    else if (op.kind == FAKE_OP_CALL)
        op.call(op.context);
    else if (op.kind != FAKE_OP_WAIT)
        fake_copy_now(&op);
    free(op.staged);
}

bool fake_run_any(void)
{
    int runnable[FAKE_STREAMS], n = 0;
    for (int k = 0; k < FAKE_STREAMS; k++)
        if (fake_can_run(k))
            runnable[n++] = k;
    if (n > 0)
        fake_run(runnable[fake_any((uint32_t)n)]);
    return n > 0;
}

static void fake_hang(const char *what)
{
    fprintf(stderr, "fake driver: a host waits for %s that nothing will ever reach\n", what);
    abort();
}

/* What a record needs, and no more. */
static void fake_finish(uint32_t serial, int depth)
{
    if (depth > FAKE_STREAMS)
        fake_hang("a circle of events");
    while (fake.records[serial] != FAKE_OVER) {
        const int k = fake.records[serial];
        if (fake.streams[k].head == fake.streams[k].n_ops)
            fake_hang("an event");
        if (!fake_can_run(k))
            fake_finish(fake.streams[k].ops[fake.streams[k].head].serial, depth + 1);
        fake_run(k);
    }
}

void fake_wait_record(uint32_t serial)
{
    while (fake.policy != FAKE_LAZY && fake.records[serial] != FAKE_OVER)
        if (!fake_run_any())
            fake_hang("an event");
    fake_finish(serial, 0);
}

void fake_wait_all(int k)
{
    while (fake.streams[k].head < fake.streams[k].n_ops) {
        if (!fake_can_run(k))
            fake_finish(fake.streams[k].ops[fake.streams[k].head].serial, 0);
        fake_run(k);
    }
}

void fake_tick(void)
{
    const uint32_t n = fake.policy == FAKE_EAGER    ? UINT32_MAX
                       : fake.policy == FAKE_RANDOM ? fake_any(4)
                                                    : 0;
    for (uint32_t i = 0; i < n && fake_run_any(); i++)
        continue;
}

/* ---- Queueing ---- */

int fake_device(void)
{
    const uintptr_t top =
        fake_thread.n > 0 ? (uintptr_t)fake_thread.stack[fake_thread.n - 1] - 0xC0 : UINTPTR_MAX;
    return top < FAKE_DEVICES && fake.n_retained[top] > 0 ? (int)top : -1;
}

int fake_stream_index(tokmap_i_stream stream)
{
    const uintptr_t k = stream ? (uintptr_t)stream - 0x5000 : (uintptr_t)MAX(fake_device(), 0);
    if (k >= FAKE_STREAMS || !fake.streams[k].alive) {
        fake_breach("a stream is used that is not, or not any more");
        return 0;
    }
    if (fake_device() >= 0 && fake.streams[k].device != fake_device())
        fake_breach("a stream is used in the context of another device");
    return (int)k;
}

fake_event *fake_event_of(tokmap_i_event event)
{
    const uintptr_t i = (uintptr_t)event - 0x9000;
    if (i < FAKE_EVENTS && fake.events[i].alive)
        return &fake.events[i];
    fake_breach("an event is used that is not, or not any more");
    return &fake.events[0];
}

void fake_add(int k, const fake_op *op)
{
    fake_stream *s = &fake.streams[k];
    if (s->capturing)
        fake_breach("work was put on a stream that is being captured");
    if (s->n_ops == s->capacity && s->head > 0) {
        memmove(s->ops, s->ops + s->head, (s->n_ops - s->head) * sizeof *s->ops);
        s->n_ops -= s->head;
        s->head = 0;
    }
    if (s->n_ops == s->capacity) {
        s->capacity = 2 * s->capacity + 64;
        s->ops = realloc(s->ops, s->capacity * sizeof *s->ops);
    }
    s->ops[s->n_ops++] = *op;
}

uint32_t fake_add_record(int k)
{
    if (fake.n_records == fake.record_capacity) {
        fake.record_capacity = 2 * fake.record_capacity + 1024;
        fake.records = realloc(fake.records, fake.record_capacity);
    }
    const uint32_t serial = fake.n_records++;
    fake.records[serial] = (uint8_t)k;
    fake_add(k, &(fake_op){.kind = FAKE_OP_RECORD, .serial = serial});
    return serial;
}

static bool fake_op_uses(const fake_op *op, const fake_region *r)
{
    const tokmap_i_address used[] = {op->to,
                                     op->job.image,
                                     op->job.inputs,
                                     op->job.labels,
                                     op->job.position_ids,
                                     op->job.document_ids,
                                     op->job.cu_seqlens};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        if (used[i] && used[i] >= r->address && used[i] - r->address < r->n_bytes)
            return true;
    return op->host && op->host >= r->real && op->host < r->real + r->n_bytes;
}

bool fake_in_use(const fake_region *r)
{
    for (int k = 0; k < FAKE_STREAMS; k++)
        for (size_t i = fake.streams[k].head; i < fake.streams[k].n_ops; i++)
            if (fake_op_uses(&fake.streams[k].ops[i], r))
                return true;
    return false;
}
