/* slices_page.c - E2: 64 slices of random places in host memory to the device. By a copy each, by
 * one call for all copies, gathered and copied at once, or read by a kernel of so many blocks.
 * Then whole batches, copied or read by the stage's kernel: where AUTO has to change over. */
#include "gpubench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

enum {
    ROUNDS = 2,
    N_SIZES = 4,
    TRIALS = 60,
    N_BLOCKS = 6,
    N_WAYS = 3 + 2 * N_BLOCKS,
    N_BATCHES = 9,
    LENGTH = 4096,
    WAIT_US = 100
};
#define SOURCE_BYTES (512 * MIB)
#define DEVICE_BYTES (128 * MIB)

static const uint32_t slice_bytes[N_SIZES] = {4 << 10, 8 << 10, 16 << 10, 64 << 10};
static const uint32_t blocks[N_BLOCKS] = {1, 2, 4, 8, 16, 32};

typedef struct measure {
    stream_timer timer;
    host_memory source, slot;
    uint8_t *device;
    slices at; /* source: the host's address */
    uint64_t seed;
} measure;

/* ---- Ways: each puts the slices into the stream ---- */

static bool copy_each(measure *m, uint32_t param)
{
    (void)param;
    for (uint32_t i = 0; i < m->at.n; i++)
        if (!fine(cudaMemcpyAsync(m->device + (size_t)i * m->at.n_bytes,
                                  m->source.bytes + m->at.offsets[i], m->at.n_bytes,
                                  cudaMemcpyHostToDevice, m->timer.stream),
                  "cudaMemcpyAsync"))
            return false;
    return true;
}

#if CUDART_VERSION >= 13000
static bool copy_batch(measure *m, uint32_t param)
{
    void *to[MAX_SLICES];
    const void *from[MAX_SLICES];
    size_t sizes[MAX_SLICES], first = 0;
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    (void)param;
    for (uint32_t i = 0; i < m->at.n; i++) {
        to[i] = m->device + (size_t)i * m->at.n_bytes;
        from[i] = m->source.bytes + m->at.offsets[i];
        sizes[i] = m->at.n_bytes;
    }
    return fine(cudaMemcpyBatchAsync(to, from, sizes, m->at.n, &how, &first, 1, m->timer.stream),
                "cudaMemcpyBatchAsync");
}
#else /* the call has other arguments there */
static bool copy_batch(measure *m, uint32_t param)
{
    (void)m;
    (void)param;
    return fine(cudaErrorNotSupported, "cudaMemcpyBatchAsync before CUDA 13");
}
#endif

static bool gather_and_copy(measure *m, uint32_t param)
{
    (void)param;
    for (uint32_t i = 0; i < m->at.n; i++)
        memcpy(m->slot.bytes + (size_t)i * m->at.n_bytes, m->source.bytes + m->at.offsets[i],
               m->at.n_bytes);
    return fine(cudaMemcpyAsync(m->device, m->slot.bytes, (size_t)m->at.n * m->at.n_bytes,
                                cudaMemcpyHostToDevice, m->timer.stream),
                "cudaMemcpyAsync");
}

/* The same slices by the address that the device knows them by. */
static slices as_device_sees(const measure *m)
{
    slices s = m->at;
    s.source = m->source.device;
    return s;
}

static bool pull(measure *m, uint32_t n_blocks)
{
    const slices s = as_device_sees(m);
    return fine(kernel_pull(&s, m->device, n_blocks, m->timer.stream), "starting the kernel");
}

static bool pull_expand(measure *m, uint32_t n_blocks)
{
    const slices s = as_device_sees(m);
    const token_outputs to = {(int32_t *)m->device, (int64_t *)(m->device + DEVICE_BYTES / 2)};
    return fine(kernel_pull_expand(&s, &to, n_blocks, m->timer.stream), "starting the kernel");
}

typedef struct way {
    char name[48];
    bool (*start)(measure *m, uint32_t param);
    uint32_t param;
} way;

static void list_ways(way *ways)
{
    ways[0] = (way){"a copy each", copy_each, 0};
    ways[1] = (way){"one call for all copies", copy_batch, 0};
    ways[2] = (way){"gathered, one copy", gather_and_copy, 0};
    for (int i = 0; i < N_BLOCKS; i++) {
        way *a = &ways[3 + i], *b = &ways[3 + N_BLOCKS + i];
        *a = (way){"", pull, blocks[i]};
        *b = (way){"", pull_expand, blocks[i]};
        snprintf(a->name, sizeof a->name, "a kernel of %u blocks", blocks[i]);
        snprintf(b->name, sizeof b->name, "a kernel of %u blocks that expands, too", blocks[i]);
    }
}

/* ---- Slices ---- */

typedef struct slice_rows {
    figure gpu, cpu;
} slice_rows;

static void choose_places(measure *m)
{
    for (uint32_t i = 0; i < m->at.n; i++)
        m->at.offsets[i] = random_next(&m->seed) % (SOURCE_BYTES - m->at.n_bytes - 16) & ~1ull;
}

static bool measure_way(measure *m, const way *w, slice_rows *r)
{
    double gpu[TRIALS], cpu[TRIALS];
    for (int i = -5; i < TRIALS; i++) {
        choose_places(m);
        if (!timer_begin(&m->timer))
            return false;
        const uint64_t begun = now_ns();
        if (!w->start(m, w->param))
            return false;
        const double us = (double)(now_ns() - begun) / 1e3, all = timer_end(&m->timer);
        if (all < 0)
            return false;
        if (i >= 0) {
            gpu[i] = all;
            cpu[i] = us;
        }
    }
    row_add(&r->gpu, percentile(gpu, TRIALS, 0.5));
    row_add(&r->cpu, percentile(cpu, TRIALS, 0.5));
    return true;
}

static void measure_slices(measure *m, uint32_t n_bytes)
{
    way ways[N_WAYS];
    slice_rows rows[N_WAYS];
    bool works[N_WAYS];
    list_ways(ways);
    m->at.n_bytes = n_bytes;
    for (int w = 0; w < N_WAYS; w++) {
        works[w] = true;
        rows[w].gpu =
            row_of("us", "slices until they are there, %s, %s", ways[w].name, size_text(n_bytes));
        rows[w].cpu = row_of("us", "slices, CPU, %s, %s", ways[w].name, size_text(n_bytes));
        row_x(&rows[w].gpu, n_bytes, "bytes");
        row_x(&rows[w].cpu, n_bytes, "bytes");
        row_place(&rows[w].gpu, "gpu, 64 slices to the device", ways[w].name);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int w = 0; w < N_WAYS; w++)
            works[w] = works[w] && measure_way(m, &ways[w], &rows[w]);
    for (int w = 0; w < N_WAYS; w++) {
        row_write(&rows[w].gpu);
        row_write(&rows[w].cpu);
    }
}

/* ---- Batches ---- */

/* The stage's own kernel, in our stream by expand_in_next: on the image in the device's memory, or
 * reading the host's. Median, or below 0. */
static double kernel_us(const options *o, uint32_t n_rows, tokmap_cuda_delivery delivery,
                        stream_timer *t)
{
    const feed_options fo = {.data = o->large,
                             .loader = {.sequence_length = LENGTH,
                                        .batch_rows = n_rows,
                                        .seed = n_rows,
                                        .io = TOKMAP_IO_MAP},
                             .stage = {.outputs = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS,
                                       .delivery = delivery,
                                       .expand_in_next = 1}};
    double us[TRIALS];
    feed f;
    bool ok = feed_open(&f, &fo);
    for (int i = -5; i < TRIALS && ok; i++) {
        /* The next batch is prepared meanwhile, and copied. */
        usleep(300 + n_rows * LENGTH / 2000);
        ok = timer_begin_later(t, WAIT_US) && feed_step(&f, t->stream);
        const double all = ok ? timer_end(t) : -1;
        ok = ok && all >= 0;
        us[i < 0 ? 0 : i] = all;
    }
    ok = ok && feed_kept_way(&f, delivery);
    feed_close(&f);
    return ok ? percentile(us, TRIALS, 0.5) : -1;
}

static double copy_us(measure *m, uint64_t n_bytes)
{
    double us[TRIALS];
    for (int i = 0; i < TRIALS; i++) {
        if (!timer_begin_later(&m->timer, WAIT_US) ||
            !fine(cudaMemcpyAsync(m->device, m->source.bytes + (size_t)i % 8 * n_bytes, n_bytes,
                                  cudaMemcpyHostToDevice, m->timer.stream),
                  "cudaMemcpyAsync"))
            return -1;
        us[i] = timer_end(&m->timer);
        if (us[i] < 0)
            return -1;
    }
    return percentile(us, TRIALS, 0.5);
}

static void measure_batches(measure *m, const options *o)
{
    double largest = 0;
    bool pull_is_faster = true;
    for (int i = 0; i < N_BATCHES; i++) {
        const uint64_t n_bytes = 32 * KIB << i; /* to 8 MiB */
        const uint32_t n_rows = (uint32_t)(n_bytes / 2 / LENGTH);
        figure push = row_of("us", "batch by a copy and the kernel, %s", size_text(n_bytes));
        figure pulled = row_of("us", "batch by the kernel alone, %s", size_text(n_bytes));
        for (int round = 0; round < ROUNDS; round++) {
            const double copy = copy_us(m, n_bytes);
            const double after = kernel_us(o, n_rows, TOKMAP_CUDA_PUSH, &m->timer);
            row_add(&push, copy >= 0 && after >= 0 ? copy + after : NAN);
            const double alone = kernel_us(o, n_rows, TOKMAP_CUDA_PULL, &m->timer);
            row_add(&pulled, alone >= 0 ? alone : NAN);
        }
        row_x(&push, (double)n_bytes, "bytes");
        row_x(&pulled, (double)n_bytes, "bytes");
        row_place(&push, "gpu, a batch to the device", "tokmap, push");
        row_place(&pulled, "gpu, a batch to the device", "tokmap, pull");
        row_write(&push);
        row_write(&pulled);
        pull_is_faster = pull_is_faster && push.n_values && pulled.n_values &&
                         row_median(&pulled) <= row_median(&push);
        largest = pull_is_faster ? (double)n_bytes : largest;
    }
    figure best = row_of("bytes", "batch: pull is no slower than push up to");
    row_add(&best, largest);
    row_write(&best);
}

int slices_page(const options *o)
{
    static measure m;
    void *device = NULL;
    m = (measure){.seed = 1, .at = {.n = MAX_SLICES}};
    const bool ok = timer_open(&m.timer) && memory_open(&m.source, REGISTERED, SOURCE_BYTES) &&
                    memory_open(&m.slot, REGISTERED, 8 * MIB) &&
                    fine(cudaMalloc(&device, DEVICE_BYTES), "cudaMalloc");
    m.device = device;
    if (ok && feed_warm_up(o->large)) {
        measure_batches(&m, o);
        for (int i = 0; i < N_SIZES; i++)
            measure_slices(&m, slice_bytes[i]);
    }
    cudaFree(device);
    memory_close(&m.source);
    memory_close(&m.slot);
    timer_close(&m.timer);
    return ok ? 0 : STATUS_FAILED;
}
