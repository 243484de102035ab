/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - copies to a GPU, if there is one: plain copies by size, which are the limit, and the
 * batches of a stage. `make bench-gpu` runs it and measures training steps. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/cli.h"
#include "core/load_data.h"
#include "pages/pages.h"
#include "system/platform_library.h"
#include "tokmap_stage.h"

enum {
    ROUNDS = 5,
    LENGTH = 4096,
    N_SIZES = 4,
    N_BATCHES = 3,
    REGISTER_PORTABLE = 1
};
static const uint64_t usual_ns = 300000000, trial_ns = 5000000;
static const size_t copy_sizes[N_SIZES] = {64 << 10, 1 << 20, 16 << 20, 256 << 20};
static const uint32_t batch_rows[N_BATCHES] = {16, 128, 1024}; /* 1/8, 1 and 8 MiB of tokens */

/* The driver's calls for plain copies, by names that do not change. */
typedef struct driver {
    int (*init)(unsigned flags);
    int (*get_device)(int *device, int ordinal);
    int (*retain_context)(void **context, int device);
    int (*set_context)(void *context);
    int (*wait)(void);
    int (*allocate)(uint64_t *address, size_t n_bytes);
    int (*free)(uint64_t address);
    int (*pin)(void *memory, size_t n_bytes, unsigned flags);
    int (*unpin)(void *memory);
    int (*copy)(uint64_t to, const void *from, size_t n_bytes, void *stream);
} driver;

static const char *const names[] = {"cuInit",
                                    "cuDeviceGet",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuCtxSetCurrent",
                                    "cuCtxSynchronize",
                                    "cuMemAlloc_v2",
                                    "cuMemFree_v2",
                                    "cuMemHostRegister_v2",
                                    "cuMemHostUnregister",
                                    "cuMemcpyHtoDAsync_v2"};
_Static_assert(sizeof names / sizeof *names == sizeof(driver) / sizeof(void (*)(void)), "all");

typedef struct gpu {
    driver d;
    const tokmap_dataset *ds;
    uint8_t *memory;
    uint64_t address, ns;
    bool pinned;
} gpu;

typedef struct gpu_rows {
    bench_row *copies[N_SIZES], *staged[N_BATCHES], *p50[N_BATCHES], *p99[N_BATCHES];
} gpu_rows;

static int failed(const char *what, int error)
{
    return cli_error(1, "gpu: %s: error %d of the driver", what, error);
}

/* ---- Copies ---- */

static int open_driver(gpu *g)
{
    const size_t n_bytes = copy_sizes[N_SIZES - 1];
    char why[256];
    void *library = tokmap_i_library_open("libcuda.so.1", why, sizeof why), *context;
    int device;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!library || !tokmap_i_library_find(library, names[i], (void **)&g->d + i))
            return cli_error(1, "gpu: the driver lacks a call of CUDA 4");
    int error;
    if ((error = g->d.init(0)) || (error = g->d.get_device(&device, 0)) ||
        (error = g->d.retain_context(&context, device)) || (error = g->d.set_context(context)) ||
        (error = g->d.allocate(&g->address, n_bytes)))
        return failed("opening device 0", error);
    g->memory = aligned_alloc(2 << 20, n_bytes);
    if (!g->memory)
        return cli_no_memory();
    madvise(g->memory, n_bytes, MADV_HUGEPAGE);
    memset(g->memory, 1, n_bytes);
    error = g->d.pin(g->memory, n_bytes, REGISTER_PORTABLE);
    g->pinned = error == 0;
    return error ? failed("pinning memory", error) : 0;
}

static void close_driver(gpu *g)
{
    if (g->pinned)
        g->d.unpin(g->memory);
    if (g->address)
        g->d.free(g->address);
    free(g->memory);
}

/* Consecutive copies of one size; below 0: failed. */
static double copy_gbs(const gpu *g, size_t n_bytes)
{
    uint64_t n_copied = 0, now;
    int error = g->d.wait();
    const uint64_t start = tokmap_i_now_ns();
    do {
        for (int i = 0; i < 16 && !error; i++)
            error = g->d.copy(g->address, g->memory, n_bytes, NULL);
        if (!error)
            error = g->d.wait();
        n_copied += 16 * n_bytes;
        now = tokmap_i_now_ns();
    } while (!error && now - start < g->ns);
    if (error)
        failed("copying", error);
    return error ? -1 : (double)n_copied / (double)(now - start);
}

/* ---- Batches ---- */

/* Takes batches and releases them at once, to measure the stage alone. */
static int take_batches(const gpu *g, tokmap_stage *s, tokmap_stage_info *info, double *gbs)
{
    tokmap_stage_batch b = {.struct_size = sizeof b};
    tokmap_error err = {0};
    tokmap_status status = TOKMAP_OK;
    const uint64_t start = tokmap_i_now_ns();
    while (!status && tokmap_i_now_ns() - start < g->ns) {
        status = tokmap_stage_next(s, &b, NULL, &err);
        if (!status)
            status = tokmap_stage_release(s, &b, NULL, &err);
    }
    const int error = g->d.wait();
    const uint64_t ns = tokmap_i_now_ns() - start;
    if (status || error)
        return cli_error(1, "gpu: %s", status ? err.text : "waiting for the device failed");
    tokmap_stage_get_info(s, info);
    const uint64_t row_bytes = (uint64_t)load_data_info(g->ds).token_bytes * (LENGTH + 1);
    *gbs = (double)(info->n_batches * info->n_rows * row_bytes) / (double)ns;
    return 0;
}

static int measure_batches(const gpu *g, const gpu_rows *r, int size)
{
    const tokmap_loader_options loader = {
        .sequence_length = LENGTH, .batch_rows = batch_rows[size], .seed = 1, .io = TOKMAP_IO_MAP};
    tokmap_loader *l = load_data_one_source(&g->ds, 1, loader);
    const tokmap_stage_options options = {.struct_size = sizeof options, .loader = l};
    tokmap_stage_info info = {.struct_size = sizeof info};
    tokmap_stage *s = NULL;
    tokmap_error err;
    double gbs = 0;
    int code = !l;
    if (l && tokmap_stage_open(&s, &options, &err))
        code = cli_error(1, "gpu: %s", err.text);
    code = code || take_batches(g, s, &info, &gbs);
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    bench_add_value(r->staged[size], gbs);
    bench_add_value(r->p50[size], (double)info.wait_p50_ns / 1e3);
    bench_add_value(r->p99[size], (double)info.wait_p99_ns / 1e3);
    return code;
}

/* ---- Page ---- */

static void add_rows(bench_report *report, gpu_rows *r)
{
    static const char *const p50[] = {"p50", "us"}, *const p99[] = {"p99", "us"};
    for (int i = 0; i < N_SIZES; i++) {
        r->copies[i] =
            bench_add_row(report, "GB/s", "host to device, %zu KiB", copy_sizes[i] >> 10);
        bench_set_group(r->copies[i], r->copies[i]->name, "gpu: over the bus");
    }
    for (int i = 0; i < N_BATCHES; i++) {
        const uint32_t kib = batch_rows[i] * LENGTH / 512;
        r->staged[i] = bench_add_row(report, "GB/s", "staged, %u KiB a batch", kib);
        bench_set_group(r->staged[i], r->staged[i]->name, "gpu: over the bus");
        r->p50[i] = bench_add_cell(report, p50, "next, %u KiB a batch", kib);
        r->p99[i] = bench_add_cell(report, p99, "next, %u KiB a batch", kib);
    }
}

static int measure(const gpu *g, const bench_options *options, bench_report *report)
{
    gpu_rows r;
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    add_rows(report, &r);
    for (uint32_t round = 0; round < n_rounds; round++) {
        for (int i = 0; i < N_SIZES; i++)
            if (bench_try_value(r.copies[i], copy_gbs(g, copy_sizes[i])))
                return 1;
        for (int i = 0; i < N_BATCHES; i++)
            if (measure_batches(g, &r, i))
                return 1;
    }
    const bench_row *peak = r.copies[N_SIZES - 1];
    for (int i = 0; i < N_BATCHES; i++)
        bench_set_rate_limit(r.staged[i], peak, 1);
    bench_set_goal(bench_add_ratio(report, r.staged[N_BATCHES - 1], peak,
                                   "largest staged batches / largest copies"),
                   BENCH_AT_LEAST, 0.95);
    return 0;
}

static int run_gpu(const bench_options *options, bench_report *report)
{
    tokmap_error err;
    uint32_t n_devices;
    gpu g = {.memory = NULL};
    if (tokmap_stage_count_devices(&n_devices, &err)) {
        cli_warn("gpu: %s: left out", err.text);
        return 0;
    }
    int code =
        load_data_open(options, 0, &g.ds) || (load_data_fits(g.ds) && load_data_warm_up(g.ds));
    if (!code) {
        g.ns = load_data_is_trial(g.ds) ? trial_ns : usual_ns;
        code = open_driver(&g) || measure(&g, options, report);
    }
    close_driver(&g);
    load_data_close(&g.ds, 1);
    return code;
}

const bench_page gpu_page = {
    .name = "gpu",
    .help = "copies to a GPU, and batches staged on it; left out if there is none",
    .takes = {"load-mib", "data"},
    .in_all = true,
    .run = run_gpu,
};
