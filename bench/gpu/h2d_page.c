/* h2d_page.c - E1: copies from host memory to the device, of each size, from each kind of memory:
 * one alone, and 64 one behind the other. */
#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 3,
    N_SIZES = 11,
    BACK_TO_BACK = 64,
    MAX_ALONE = 300,
    LEAST_COPIES = 4,
    WAIT_US = 30
};
#define RING_BYTES (256 * MIB)
#define MOST_BYTES (2 * GIB) /* of one row of copies */

static const uint64_t sizes[N_SIZES] = {4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB,  2 * MIB,
                                        4 * MIB, 8 * MIB,  16 * MIB, 64 * MIB,  256 * MIB};

typedef struct measure {
    stream_timer timer;
    void *device;
    double us[MAX_ALONE], host_us[MAX_ALONE];
} measure;

typedef struct size_rows {
    figure rate, p50, p99, host, issue;
} size_rows;

static uint32_t copies_of(uint64_t size)
{
    const uint64_t n = MOST_BYTES / size;
    return n > BACK_TO_BACK ? BACK_TO_BACK : n < LEAST_COPIES ? LEAST_COPIES : (uint32_t)n;
}

static uint32_t copies_alone(uint64_t size)
{
    return size <= MIB ? MAX_ALONE : size <= 16 * MIB ? 100 : 20;
}

static bool copy_one(measure *m, const host_memory *from, uint64_t size, uint32_t i)
{
    const uint64_t at = i % (from->n_bytes / size) * size;
    return fine(cudaMemcpyAsync((uint8_t *)m->device + at, from->bytes + at, size,
                                cudaMemcpyHostToDevice, m->timer.stream),
                "cudaMemcpyAsync");
}

/* Device time of each copy, and from the call until the host knows that it is over. */
static bool copy_alone(measure *m, const host_memory *from, uint64_t size, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!timer_begin_later(&m->timer, WAIT_US) || !copy_one(m, from, size, i))
            return false;
        m->us[i] = timer_end(&m->timer);
        const uint64_t begun = now_ns();
        if (m->us[i] < 0 || !copy_one(m, from, size, i) ||
            !fine(cudaStreamSynchronize(m->timer.stream), "waiting for a copy"))
            return false;
        m->host_us[i] = (double)(now_ns() - begun) / 1e3;
    }
    return true;
}

/* What a call costs its thread while the queue is not full. */
static double issue_us(measure *m, const host_memory *from, uint64_t size)
{
    const uint32_t n = 32;
    const uint64_t begun = now_ns();
    for (uint32_t i = 0; i < n; i++)
        if (!fine(cudaMemcpyAsync(m->device, from->bytes, size, cudaMemcpyHostToDevice,
                                  m->timer.stream),
                  "cudaMemcpyAsync"))
            return -1;
    const double us = (double)(now_ns() - begun) / 1e3 / n;
    return fine(cudaStreamSynchronize(m->timer.stream), "waiting for copies") ? us : -1;
}

static bool measure_size(measure *m, const host_memory *from, uint64_t size, size_rows *r)
{
    const uint32_t n = copies_alone(size);
    if (copy_rate(&m->timer, from, m->device, size, 2) < 0)
        return false;
    const double rate = copy_rate(&m->timer, from, m->device, size, copies_of(size));
    if (rate < 0 || !copy_alone(m, from, size, n))
        return false;
    row_add(&r->rate, rate);
    row_add(&r->p50, percentile(m->us, n, 0.5));
    row_add(&r->p99, percentile(m->us, n, 0.99));
    row_add(&r->host, percentile(m->host_us, n, 0.5));
    if (size <= MIB)
        row_add(&r->issue, issue_us(m, from, size));
    return true;
}

static void name_rows(size_rows *r, const char *kind, uint64_t size)
{
    const char *text = size_text(size);
    r->rate = row_of("GB/s", "h2d back to back, %s, %s", kind, text);
    r->p50 = row_of("us", "h2d alone p50, %s, %s", kind, text);
    r->p99 = row_of("us", "h2d alone p99, %s, %s", kind, text);
    r->host = row_of("us", "h2d alone until the host knows, %s, %s", kind, text);
    r->issue = row_of("us", "h2d cost of the call, %s, %s", kind, text);
    figure *all[] = {&r->rate, &r->p50, &r->p99, &r->host, &r->issue};
    for (int i = 0; i < 5; i++)
        row_x(all[i], (double)size, "bytes");
    row_place(&r->rate, "gpu, copies to the device back to back", kind);
    row_place(&r->p50, "gpu, one copy to the device", kind);
    row_place(&r->p99, "gpu, one copy to the device", kind);
}

static void write_rows(const size_rows *r, uint64_t size)
{
    row_write(&r->rate);
    row_write(&r->p50);
    row_write(&r->p99);
    row_write(&r->host);
    if (size <= MIB)
        row_write(&r->issue);
}

/* The sizes from which on the link runs at so much of its peak. */
static void write_peak(const double *rates)
{
    double peak = 0;
    for (int i = 0; i < N_SIZES; i++)
        peak = rates[i] > peak ? rates[i] : peak;
    if (peak <= 0)
        return;
    figure r = row_of("GB/s", "h2d peak");
    row_add(&r, peak);
    row_place(&r, "gpu, peak of the link", "");
    row_write(&r);
    const double shares[] = {0.5, 0.95};
    for (int k = 0; k < 2; k++) {
        int i = 0;
        while (rates[i] < shares[k] * peak)
            i++;
        figure s = row_of("bytes", "h2d size for %g %% of the peak, back to back", 100 * shares[k]);
        row_add(&s, (double)sizes[i]);
        row_write(&s);
    }
}

static void measure_kind(measure *m, memory_kind kind, double *rates)
{
    static size_rows rows[N_SIZES];
    host_memory from;
    bool ok = memory_open(&from, kind, RING_BYTES);
    for (int i = 0; i < N_SIZES; i++)
        name_rows(&rows[i], memory_names[kind], sizes[i]);
    for (int round = 0; round < ROUNDS && ok; round++)
        for (int i = 0; i < N_SIZES && ok && (round == 0 || seconds_left() > 0); i++)
            ok = measure_size(m, &from, sizes[i], &rows[i]);
    for (int i = 0; i < N_SIZES; i++) {
        write_rows(&rows[i], sizes[i]);
        rates[i] = rows[i].rate.n_values ? row_median(&rows[i].rate) : 0;
    }
    memory_close(&from);
}

/* For E0: whoever reads the link's speed meanwhile reads what it is under load. */
static int hold_link(measure *m)
{
    host_memory from;
    bool ok = memory_open(&from, REGISTERED, 64 * MIB);
    while (ok && seconds_left() > 0)
        ok = copy_rate(&m->timer, &from, m->device, 16 * MIB, 64) > 0;
    memory_close(&from);
    return ok ? 0 : STATUS_FAILED;
}

int h2d_page(const options *o)
{
    /* The usual kind first, and the slowest one, which has to tell least, last. */
    static const memory_kind order[] = {REGISTERED, REGISTERED_SMALL, HOST_ALLOC, WRITE_COMBINED,
                                        PAGEABLE};
    static measure m;
    double rates[N_MEMORY_KINDS][N_SIZES] = {{0}};
    int code = STATUS_FAILED;
    if (timer_open(&m.timer) && fine(cudaMalloc(&m.device, RING_BYTES), "cudaMalloc")) {
        code = o->hold_link ? hold_link(&m) : 0;
        for (int i = 0; i < N_MEMORY_KINDS && !o->hold_link; i++) {
            measure_kind(&m, order[i], rates[order[i]]);
            if (order[i] == REGISTERED)
                write_peak(rates[REGISTERED]);
        }
        code = o->hold_link || rates[REGISTERED][0] > 0 ? code : STATUS_FAILED;
    }
    cudaFree(m.device);
    timer_close(&m.timer);
    return code;
}
