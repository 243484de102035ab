/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - copies to a GPU, if there is one: plain copies by size, which are the limit, and the
 * batches of a stage. `make bench-gpu` runs it and measures training steps. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "pages/pages.h"
#include "stage/driver.h"
#include "tokmap_stage.h"

enum {
    ROUNDS = 5,
    LENGTH = 4096,
    N_SIZES = 4,
    N_BATCHES = 3
};
static const uint64_t usual_ns = 300000000, trial_ns = 5000000;
static const size_t copy_sizes[N_SIZES] = {64 << 10, 1 << 20, 16 << 20, 256 << 20};
static const uint32_t batch_rows[N_BATCHES] = {16, 128, 1024}; /* 1/8, 1 and 8 MiB of tokens */

typedef struct gpu {
    const tokmap_i_driver *d;
    const load_data *data;
    uint8_t *memory;
    tokmap_i_address address;
    uint64_t ns;
} gpu;

static void check(const char *what, int error)
{
    if (error)
        bench_fail("gpu: %s: error %d of the driver", what, error);
}

/* ---- Copies ---- */

static void open_driver(gpu *g)
{
    const size_t n_bytes = copy_sizes[N_SIZES - 1];
    void *context;
    int device;
    bench_check(tokmap_i_driver_find(&g->d, &bench_error));
    check("finding device 0", g->d->get_device(&device, 0));
    check("opening device 0", g->d->retain_context(&context, device));
    check("opening device 0", g->d->push_context(context));
    check("taking memory of the device", g->d->allocate(&g->address, n_bytes));
    g->memory = aligned_alloc(2 << 20, n_bytes);
    if (!g->memory)
        bench_fail("out of memory");
    madvise(g->memory, n_bytes, MADV_HUGEPAGE);
    memset(g->memory, 1, n_bytes);
    check("pinning memory", g->d->register_host(g->memory, n_bytes, TOKMAP_I_REGISTER_PORTABLE));
}

/* Measures consecutive copies of one size. */
static double copy_gbs(const gpu *g, size_t n_bytes)
{
    uint64_t n_copied = 0;
    check("copying", g->d->wait_stream(NULL));
    const uint64_t start = tokmap_i_now_ns();
    do {
        for (int i = 0; i < 16; i++)
            check("copying", g->d->copy_to_device(g->address, g->memory, n_bytes, NULL));
        check("copying", g->d->wait_stream(NULL));
        n_copied += 16 * n_bytes;
    } while (bench_ns_since(start) < (double)g->ns);
    return (double)n_copied / bench_ns_since(start);
}

/* Measures one thread that reads rows from random places into pinned memory, as a stage does. */
static double read_gbs(const gpu *g)
{
    enum {
        ROWS = 1024
    };
    const uint64_t row_bytes = (uint64_t)g->data->info.token_bytes * (LENGTH + 1);
    const uint64_t n_places = (g->data->file.n_bytes - row_bytes) / 2;
    uint64_t n_read = 0, seed = 1;
    const uint64_t start = tokmap_i_now_ns();
    do {
        for (uint64_t r = 0; r < ROWS; r++, n_read += row_bytes) {
            const off_t offset = (off_t)(bench_random(&seed) % n_places * 2);
            if (pread(g->data->file.fd, g->memory + r * row_bytes, row_bytes, offset) !=
                (ssize_t)row_bytes)
                bench_fail("gpu: cannot read the tokens");
        }
    } while (bench_ns_since(start) < (double)g->ns);
    return (double)n_read / bench_ns_since(start);
}

/* ---- Batches ---- */

/* Takes batches and releases them at once, to measure the stage alone. */
static void measure_batches(const gpu *g, uint32_t n_rows, bench_row *const *r)
{
    const tokmap_loader_options loader = {
        .sequence_length = LENGTH, .batch_rows = n_rows, .io = TOKMAP_IO_MAP};
    tokmap_loader *l = load_data_one_source(&g->data->ds, 1, loader);
    const tokmap_stage_options options = {.struct_size = sizeof options, .loader = l};
    tokmap_stage_info info = {.struct_size = sizeof info};
    tokmap_stage_batch b = {.struct_size = sizeof b};
    tokmap_stage *s;
    bench_check(tokmap_stage_open(&s, &options, &bench_error));
    const uint64_t start = tokmap_i_now_ns();
    while (bench_ns_since(start) < (double)g->ns) {
        bench_check(tokmap_stage_next(s, &b, NULL, &bench_error));
        bench_check(tokmap_stage_release(s, &b, NULL, &bench_error));
    }
    check("waiting for the device", g->d->wait_stream(NULL));
    const double ns = bench_ns_since(start);
    tokmap_stage_get_info(s, &info);
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    const uint64_t row_bytes = (uint64_t)g->data->info.token_bytes * (LENGTH + 1);
    bench_add_value(r[0], (double)(info.n_batches * info.n_rows * row_bytes) / ns);
    bench_add_value(r[1], (double)info.wait_p50_ns / 1e3);
    bench_add_value(r[2], (double)info.wait_p99_ns / 1e3);
}

/* ---- Page ---- */

void bench_gpu(const bench_options *options, bench_report *report)
{
    static const char *const waits[][2] = {{"p50", "us"}, {"p99", "us"}};
    bench_row *copies[N_SIZES];
    bench_row *batches[N_BATCHES][3]; /* staged, and the percentiles of waits */
    tokmap_error err;
    uint32_t n_devices;
    if (tokmap_stage_count_devices(&n_devices, &err)) {
        cli_warn("gpu: %s: left out", err.text);
        return;
    }
    for (int i = 0; i < N_SIZES; i++) {
        copies[i] = bench_add_row(report, "GB/s", "host to device, %zu KiB", copy_sizes[i] >> 10);
        bench_set_group(copies[i], copies[i]->name, "gpu: over the bus");
    }
    bench_row *reads = bench_add_row(report, "GB/s", "rows read by one thread");
    bench_set_group(reads, reads->name, "gpu: over the bus");
    for (int i = 0; i < N_BATCHES; i++) {
        const uint32_t kib = batch_rows[i] * LENGTH / 512;
        batches[i][0] = bench_add_row(report, "GB/s", "staged, %u KiB a batch", kib);
        bench_set_group(batches[i][0], batches[i][0]->name, "gpu: over the bus");
        for (int k = 0; k < 2; k++)
            batches[i][k + 1] = bench_add_cell(report, waits[k], "next, %u KiB a batch", kib);
    }
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    gpu g = {.data = &data, .ns = data.is_trial ? trial_ns : usual_ns};
    if (data.fits)
        load_data_warm_up(data.ds);
    open_driver(&g);
    for (uint32_t round = 0; round < bench_rounds(options, ROUNDS); round++) {
        for (int i = 0; i < N_SIZES; i++)
            bench_add_value(copies[i], copy_gbs(&g, copy_sizes[i]));
        bench_add_value(reads, read_gbs(&g));
        for (int i = 0; i < N_BATCHES; i++)
            measure_batches(&g, batch_rows[i], batches[i]);
    }
    for (int i = 0; i < N_BATCHES; i++)
        bench_set_limit(batches[i][0], copies[N_SIZES - 1], 1);
    bench_set_goal(bench_add_ratio(report, batches[N_BATCHES - 1][0], copies[N_SIZES - 1],
                                   "largest staged batches / largest copies"),
                   BENCH_AT_LEAST, 0.95);
    for (int i = 0; i < N_BATCHES; i++)
        bench_add_ratio(report, batches[i][0], reads, "staged, %u KiB / rows read by one thread",
                        batch_rows[i] * LENGTH / 512);
    g.d->unregister_host(g.memory);
    g.d->free(g.address);
    free(g.memory);
    load_data_close(&data);
}
