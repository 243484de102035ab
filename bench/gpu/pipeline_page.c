/* pipeline_page.c - E5: a loader and a stage with nothing behind them, in bytes over the bus,
 * beside plain copies of the same size in the same round. */
#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ROUNDS = 3,
    N_SIZES = 3,
    N_WAYS = 9,
    LENGTH = 8192
};
#define RING_BYTES (256 * MIB)

static const uint64_t sizes[N_SIZES] = {4 * MIB, 8 * MIB, 16 * MIB};

typedef struct measure {
    const options *o;
    stream_timer timer;
    host_memory ring;
    void *device;
    double round_seconds;
    double best[ROUNDS]; /* share of the peak, of the best way so far */
    double best_median;
    char best_name[160];
} measure;

typedef struct result {
    double gb_per_s, tokens_per_s, cores;
} result;

static bool run(const measure *m, feed *f, double seconds, result *out)
{
    tokmap_cuda_info info = {.struct_size = sizeof info};
    uint64_t n = 0;
    tokmap_cuda_get_info(f->stage, &info);
    const uint64_t begun = now_ns(), tokens = info.n_tokens, bytes = info.bytes_moved;
    const double processor = processor_seconds();
    bool ok = true;
    for (; ok && ((double)(now_ns() - begun) / 1e9 < seconds || n < 32); n++)
        ok = feed_step(f, m->timer.stream);
    ok = ok && fine(cudaStreamSynchronize(m->timer.stream), "waiting for the stream");
    const double took = (double)(now_ns() - begun) / 1e9;
    tokmap_cuda_get_info(f->stage, &info);
    /* Bytes that were moved ahead of the first step are made up for by those ahead of the last. */
    *out =
        (result){(double)(info.bytes_moved - bytes) / took / 1e9,
                 (double)(info.n_tokens - tokens) / took, (processor_seconds() - processor) / took};
    return ok;
}

static double peak(measure *m, uint64_t size)
{
    const uint32_t n = (uint32_t)(1 * GIB / size);
    double rate = copy_rate(&m->timer, &m->ring, m->device, size, n);
    for (int i = 0; i < 2 && rate > 0; i++) {
        const double again = copy_rate(&m->timer, &m->ring, m->device, size, n);
        rate = again > rate ? again : rate;
    }
    return rate;
}

typedef struct way {
    tokmap_cuda_delivery delivery;
    uint32_t n_copiers;
} way;

typedef struct way_rows {
    figure rate, peak, share, tokens, cores;
    char name[80];
} way_rows;

static void name_rows(way_rows *r, const way *w, uint64_t size)
{
    const char *text = size_text(size);
    if (w->delivery == TOKMAP_CUDA_DIRECT)
        snprintf(r->name, sizeof r->name, "direct");
    else
        snprintf(r->name, sizeof r->name, "%s, copiers %u", delivery_name(w->delivery),
                 w->n_copiers);
    r->rate = row_of("GB/s", "loader to the device, %s, %s", r->name, text);
    r->peak = row_of("GB/s", "h2d peak beside %s, %s", r->name, text);
    r->share = row_of("x", "loader to the device / peak, %s, %s", r->name, text);
    r->tokens = row_of("tokens/s", "loader to the device, tokens, %s, %s", r->name, text);
    r->cores = row_of("x", "processors in use, %s, %s", r->name, text);
    row_x(&r->rate, (double)size, "bytes");
    row_place(&r->rate, "gpu, loader alone", "tokmap");
    snprintf(r->rate.system, sizeof r->rate.system, "tokmap, %s", r->name);
}

static bool measure_way(measure *m, const way *w, uint64_t size, way_rows *r)
{
    const feed_options fo = {.data = m->o->large,
                             .loader = {.sequence_length = LENGTH,
                                        .batch_rows = (uint32_t)(size / 2 / LENGTH),
                                        .seed = size + w->n_copiers,
                                        .io = TOKMAP_IO_MAP},
                             .stage = {.outputs = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS,
                                       .delivery = w->delivery,
                                       .n_copiers = w->n_copiers}};
    feed f;
    result got;
    bool ok = feed_open(&f, &fo) && run(m, &f, 0.05, &got); /* warms up */
    for (int i = 0; i < ROUNDS && ok; i++) {
        const double limit = peak(m, size);
        ok = limit > 0 && run(m, &f, m->round_seconds, &got);
        if (!ok)
            break;
        row_add(&r->peak, limit);
        row_add(&r->rate, got.gb_per_s);
        row_add(&r->share, got.gb_per_s / limit);
        row_add(&r->tokens, got.tokens_per_s);
        row_add(&r->cores, got.cores);
    }
    ok = ok && feed_kept_way(&f, w->delivery);
    feed_close(&f);
    return ok;
}

static void keep_best(measure *m, const way_rows *r)
{
    if (r->share.n_values < ROUNDS || row_median(&r->share) <= m->best_median)
        return;
    m->best_median = row_median(&r->share);
    snprintf(m->best_name, sizeof m->best_name, "%s", r->rate.name);
    for (int i = 0; i < ROUNDS; i++)
        m->best[i] = r->share.values[i];
}

static void measure_and_write(measure *m, const way *w, uint64_t size)
{
    static way_rows r;
    name_rows(&r, w, size);
    const bool in_time = seconds_left() > 0;
    if (!in_time || !measure_way(m, w, size, &r)) {
        row_left_out(in_time ? last_problem() : "no time was left", "%s", r.rate.name);
        return;
    }
    row_limit(&r.rate, &r.peak);
    const figure *all[] = {&r.rate, &r.peak, &r.share, &r.tokens, &r.cores};
    for (int i = 0; i < 5; i++)
        row_write(all[i]);
    keep_best(m, &r);
}

static void measure_all(measure *m)
{
    /* What tells most first: time may run out. */
    static const way ways[N_WAYS] = {
        {TOKMAP_CUDA_PUSH, 1}, {TOKMAP_CUDA_PUSH, 4}, {TOKMAP_CUDA_DIRECT, 1},
        {TOKMAP_CUDA_PULL, 4}, {TOKMAP_CUDA_PUSH, 8}, {TOKMAP_CUDA_PUSH, 2},
        {TOKMAP_CUDA_PULL, 1}, {TOKMAP_CUDA_PULL, 8}, {TOKMAP_CUDA_PULL, 2}};
    for (int w = 0; w < N_WAYS; w++)
        for (int i = N_SIZES - 1; i >= 0; i--)
            measure_and_write(m, &ways[w], sizes[i]);
    figure best = row_of("x", "loader to the device / peak, the best way");
    for (int i = 0; i < ROUNDS && m->best_median > 0; i++)
        row_add(&best, m->best[i]);
    row_goal(&best, AT_LEAST, 0.95);
    fprintf(stderr, "gpubench: the best way: %s\n", m->best_name);
    row_write(&best);
}

int pipeline_page(const options *o)
{
    static measure m;
    m = (measure){.o = o};
    bool ok = timer_open(&m.timer) && memory_open(&m.ring, REGISTERED, RING_BYTES) &&
              fine(cudaMalloc(&m.device, RING_BYTES), "cudaMalloc") && feed_warm_up(o->large);
    /* Opening and peaks take about half of it. */
    m.round_seconds = (seconds_left() > 1 ? seconds_left() : 1) / (N_WAYS * N_SIZES * ROUNDS) / 2;
    if (ok)
        measure_all(&m);
    cudaFree(m.device);
    memory_close(&m.ring);
    timer_close(&m.timer);
    return ok ? 0 : STATUS_FAILED;
}
