/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - the best that this machine can do: copies, copies of rows from random places, first
 * touches of memory, and reads of a device past the page cache. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 5,
    N_SIZES = 3,
    HUGE_PAGE = 2 << 20,
    SEQUENTIAL_BYTES = 1 << 20,
    LARGEST_ROW = 16384,
    MAX_FIGURES = 40
};
static const uint64_t most_gathered = 256 << 20;
static const uint64_t usual_ns = 300000000, trial_ns = 10000000; /* of reads of a device */
static const uint32_t row_sizes[N_SIZES] = {2048, 8192, LARGEST_ROW};
static const uint32_t read_sizes[N_SIZES] = {4096, 8192, 16384}, depths[N_SIZES] = {1, 32, 128};

typedef enum memory_kind {
    SMALL_PAGES,
    HUGE_PAGES,
    FILE_MAP, /* in the page cache */
    N_KINDS
} memory_kind;
static const char *const kind_names[N_KINDS] = {"4 KiB pages", "huge pages", "file map"};

typedef struct limits limits;

/* What is measured in each round, and how. */
typedef struct figure {
    double (*measure)(limits *l, const struct figure *f);
    memory_kind kind;
    uint32_t n_bytes, n_at_once; /* of a row or a read; reads at once, 0: not of the device */
    bool at_random;
    bench_row *row;
} figure;

struct limits {
    const load_data *data;
    uint64_t n_bytes; /* of each buffer and of the file, a multiple of HUGE_PAGE */
    uint8_t *from[N_KINDS], *to[2];
    uint8_t *batch;
    uint64_t seed, device_ns;
    figure figures[MAX_FIGURES];
    uint32_t n_figures;
};

/* ---- Memory ---- */

/* Aligned to huge pages, so that the advice can have an effect. */
static uint8_t *new_memory(uint64_t n_bytes, memory_kind kind, int value)
{
    uint8_t *memory = aligned_alloc(HUGE_PAGE, n_bytes);
    if (!memory)
        bench_fail("out of memory");
    madvise(memory, n_bytes, kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return memset(memory, value, n_bytes);
}

static const uint8_t *map_file(const limits *l)
{
    const void *map;
    bench_check_errno(tokmap_i_map(l->data->file.fd, l->n_bytes, &map), l->data->info.token_path);
    return map;
}

static double copy_gbs(limits *l, const figure *f)
{
    const uint64_t start = tokmap_i_now_ns();
    memcpy(l->to[f->kind], l->from[f->kind], l->n_bytes);
    return (double)l->n_bytes / bench_ns_since(start);
}

/* Copies rows from random places into a batch that is reused. */
static double gather_gbs(limits *l, const figure *f)
{
    const uint64_t wanted = l->n_bytes < most_gathered ? l->n_bytes : most_gathered;
    const uint64_t n_rows = wanted / f->n_bytes, n_places = (l->n_bytes - f->n_bytes) / 2;
    uint64_t *places = bench_memory(n_rows * sizeof *places);
    for (uint64_t i = 0; i < n_rows; i++)
        places[i] = bench_random(&l->seed) % n_places * 2;
    const uint8_t *from = l->from[f->kind];
    const size_t row_bytes = f->n_bytes;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_rows; i++)
        memcpy(l->batch + i % LOAD_DATA_ROWS * row_bytes, from + places[i], row_bytes);
    const double ns = bench_ns_since(start);
    free(places);
    return (double)(n_rows * row_bytes) / ns;
}

/* ns for the first write to each page of fresh memory. */
static double fault_ns(limits *l, const figure *f)
{
    const uint64_t n_pages = (l->n_bytes / 4 / HUGE_PAGE + 1) * (HUGE_PAGE / f->n_bytes);
    const uint64_t n_bytes = n_pages * f->n_bytes;
    void *map;
    bench_check_errno(tokmap_i_memory_take(n_bytes + HUGE_PAGE, &map), "fresh memory");
    volatile uint8_t *memory =
        (uint8_t *)map + (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;
    madvise((void *)(uintptr_t)memory, n_bytes,
            f->kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t at = 0; at < n_bytes; at += f->n_bytes)
        memory[at] = 1;
    const double ns = bench_ns_since(start);
    tokmap_i_memory_give_back(map, n_bytes + HUGE_PAGE);
    return ns / (double)n_pages;
}

/* ns for the first touch of a page of a fresh map of a file that is in the page cache. */
static double touch_ns(limits *l, const figure *f)
{
    const uint64_t n_pages = l->n_bytes / DEVICE_BLOCK;
    const uint64_t n_touched = f->at_random ? n_pages / 16 : n_pages;
    const volatile uint8_t *map = map_file(l);
    if (f->at_random)
        madvise((void *)(uintptr_t)map, l->n_bytes, MADV_RANDOM);
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_touched; i++) {
        const uint64_t page = f->at_random ? bench_random(&l->seed) % n_pages : i;
        bench_keep(map[page * DEVICE_BLOCK]);
    }
    const double ns = bench_ns_since(start);
    tokmap_i_unmap((const void *)(uintptr_t)map, l->n_bytes);
    return ns / (double)n_touched;
}

/* ---- The device: GB/s in order, reads/s at random ---- */

static double device_figure(limits *l, const figure *f)
{
    const device_reads reads = {f->n_bytes, f->n_at_once, !f->at_random, bench_random(&l->seed),
                                l->device_ns};
    const double rate = device_rate(&l->data->file, &reads);
    return f->at_random ? rate : rate * f->n_bytes / 1e9;
}

/* ---- Figures ---- */

static void add(limits *l, bench_row *row, figure f)
{
    if (l->n_figures == MAX_FIGURES)
        abort();
    f.row = row;
    l->figures[l->n_figures++] = f;
}

static void add_memory(limits *l, bench_report *report)
{
    for (memory_kind kind = SMALL_PAGES; kind < FILE_MAP; kind++) {
        if (!l->from[kind])
            continue;
        bench_row *row = bench_add_row(report, "GB/s", "memcpy, one thread, %s", kind_names[kind]);
        bench_set_group(row, kind_names[kind], "memcpy, one thread");
        add(l, row, (figure){copy_gbs, .kind = kind});
    }
    for (int i = 0; i < N_KINDS * N_SIZES; i++) {
        const memory_kind kind = i / N_SIZES;
        const uint32_t n_bytes = row_sizes[i % N_SIZES], kib = n_bytes / 1024;
        if (!l->from[kind])
            continue;
        bench_row *row =
            bench_add_row(report, "GB/s", "gather, %u KiB rows, %s", kib, kind_names[kind]);
        bench_set_group(row, kind_names[kind], "gather of rows of %u KiB", kib);
        add(l, row, (figure){gather_gbs, .kind = kind, .n_bytes = n_bytes});
    }
    add(l, bench_add_row(report, "ns", "page fault, fresh 4 KiB page"),
        (figure){fault_ns, .kind = SMALL_PAGES, .n_bytes = DEVICE_BLOCK});
    if (l->from[HUGE_PAGES])
        add(l, bench_add_row(report, "ns", "page fault, fresh huge page"),
            (figure){fault_ns, .kind = HUGE_PAGES, .n_bytes = HUGE_PAGE});
    add(l, bench_add_row(report, "ns", "first touch of a file map, in order"), (figure){touch_ns});
    add(l, bench_add_row(report, "ns", "first touch of it, at random"),
        (figure){touch_ns, .at_random = true});
}

static void add_device(limits *l, bench_report *report)
{
    static const char *const systems[N_SIZES] = {"qd 1", "qd 32", "qd 128"};
    for (int d = 0; d < N_SIZES; d++) {
        bench_row *row = bench_add_row(report, "GB/s", "O_DIRECT, 1 MiB in order, %s", systems[d]);
        bench_set_group(row, systems[d], "device, sequential reads of 1 MiB");
        add(l, row, (figure){device_figure, .n_bytes = SEQUENTIAL_BYTES, .n_at_once = depths[d]});
    }
    for (int i = 0; i < N_SIZES * N_SIZES; i++) {
        const int d = i % N_SIZES;
        const uint32_t n_bytes = read_sizes[i / N_SIZES], kib = n_bytes / 1024;
        bench_row *row =
            bench_add_row(report, "reads/s", "O_DIRECT, %u KiB at random, %s", kib, systems[d]);
        bench_set_group(row, systems[d], "device, random reads of %u KiB", kib);
        add(l, row,
            (figure){device_figure, .n_bytes = n_bytes, .n_at_once = depths[d], .at_random = true});
    }
}

/* ---- Page ---- */

static void make_buffers(limits *l)
{
    l->batch = bench_memory(LOAD_DATA_ROWS * LARGEST_ROW);
    for (memory_kind kind = SMALL_PAGES; kind < FILE_MAP; kind++) {
        l->from[kind] = new_memory(l->n_bytes, kind, 1);
        l->to[kind] = new_memory(l->n_bytes, kind, 2);
    }
    /* The system may be configured to make none, and then a figure for them would be wrong. */
    if (bench_system_number("/proc/self/smaps_rollup", "AnonHugePages:") <= 0) {
        cli_warn("this system gives no huge pages: left out");
        free(l->from[HUGE_PAGES]);
        l->from[HUGE_PAGES] = NULL;
    }
    l->from[FILE_MAP] = (uint8_t *)(uintptr_t)map_file(l);
    load_data_warm_up(l->data->ds);
}

void bench_limits(const bench_options *options, bench_report *report)
{
    /* No more than an eighth of the memory in each of five places. */
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t mib = options->load_mib ? options->load_mib : LOAD_DATA_USUAL_MIB;
    const uint64_t n = mib << 20 < memory / 8 ? mib << 20 : memory / 8;
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    limits l = {.n_bytes = n < 4 * (uint64_t)HUGE_PAGE ? 4 * (uint64_t)HUGE_PAGE
                                                       : n / HUGE_PAGE * HUGE_PAGE,
                .seed = 1};
    bench_options own = *options;
    own.load_mib = (l.n_bytes + HUGE_PAGE) >> 20; /* its documents do not end at page boundaries */
    own.data = NULL;
    load_data data = load_data_open(&own, 0);
    l.data = &data;
    l.device_ns = data.is_trial ? trial_ns : usual_ns;
    make_buffers(&l);
    add_memory(&l, report);
    if (data.file.direct_fd >= 0)
        add_device(&l, report);
    else
        cli_warn("%s: no device below the file system, or no O_DIRECT (see --dir): left out",
                 data.info.token_path);
    touch_ns(&l, &(figure){touch_ns});
    /* Memory first, and then the device, which leaves the page cache as it was. */
    for (uint32_t i = 0; i < 2 * n_rounds; i++) {
        for (uint32_t k = 0; k < l.n_figures; k++) {
            const figure *f = &l.figures[k];
            if ((f->n_at_once > 0) == (i >= n_rounds))
                bench_add_value(f->row, f->measure(&l, f));
        }
    }
    for (int kind = 0; kind < FILE_MAP; kind++) {
        free(l.from[kind]);
        free(l.to[kind]);
    }
    tokmap_i_unmap(l.from[FILE_MAP], l.n_bytes);
    free(l.batch);
    load_data_close(&data);
}
