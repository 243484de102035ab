/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - the best that this machine can do: copies, copies of rows from random places, first
 * touches of memory, and reads of a device past the page cache. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/device.h"
#include "core/load_data.h"
#include "pages/pages.h"

enum {
    ROUNDS = 5,
    BATCH_ROWS = 32,
    N_ROW_SIZES = 3,
    N_DEPTHS = 3,
    N_READ_SIZES = 3,
    HUGE_PAGE = 2 << 20,
    SEQUENTIAL_BYTES = 1 << 20,
    LARGEST_ROW = 16384
};
static const uint64_t usual_bytes = (uint64_t)1 << 30, most_gathered = 256 << 20;
static const uint64_t usual_ns = 300000000, trial_ns = 10000000; /* of reads of a device */
static const uint32_t row_sizes[N_ROW_SIZES] = {2048, 8192, 16384};
static const uint32_t read_sizes[N_READ_SIZES] = {4096, 8192, 16384};
static const uint32_t depths[N_DEPTHS] = {1, 32, 128};

typedef enum memory_kind {
    SMALL_PAGES,
    HUGE_PAGES,
    FILE_MAP, /* in the page cache */
    N_KINDS
} memory_kind;
static const char *const kind_names[N_KINDS] = {"4 KiB pages", "huge pages", "file map"};

typedef struct limits {
    const tokmap_dataset *ds;
    device_file file;
    uint64_t n_bytes; /* of each buffer and of the file, a multiple of HUGE_PAGE */
    uint8_t *from[N_KINDS], *to[2];
    uint8_t *batch;
    uint64_t seed, device_ns;
} limits;

/* ---- Memory ---- */

/* Aligned to huge pages, so that the advice can have an effect; NULL: out of memory. */
static uint8_t *new_memory(uint64_t n_bytes, memory_kind kind)
{
    uint8_t *memory = aligned_alloc(HUGE_PAGE, n_bytes);
    if (memory)
        madvise(memory, n_bytes, kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return memory;
}

static double copy_gbs(limits *l, memory_kind kind)
{
    const uint64_t start = tokmap_i_now_ns();
    memcpy(l->to[kind], l->from[kind], l->n_bytes);
    return (double)l->n_bytes / (double)(tokmap_i_now_ns() - start);
}

/* Copies rows from random places into a batch that is reused. */
static double gather_gbs(limits *l, memory_kind kind, size_t row_bytes)
{
    const uint64_t wanted = l->n_bytes < most_gathered ? l->n_bytes : most_gathered;
    const uint64_t n_rows = wanted / row_bytes, n_places = (l->n_bytes - row_bytes) / 2;
    uint64_t *places = malloc(n_rows * sizeof *places);
    if (!places)
        return -1;
    for (uint64_t i = 0; i < n_rows; i++)
        places[i] = bench_random(&l->seed) % n_places * 2;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_rows; i++)
        memcpy(l->batch + i % BATCH_ROWS * row_bytes, l->from[kind] + places[i], row_bytes);
    const double ns = (double)(tokmap_i_now_ns() - start);
    free(places);
    return (double)(n_rows * row_bytes) / ns;
}

/* ---- Page faults ---- */

/* ns for the first write to each page of fresh memory. */
static double anonymous_fault_ns(const limits *l, memory_kind kind)
{
    const uint64_t n_bytes = l->n_bytes / 4 / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE;
    const uint64_t page = kind == HUGE_PAGES ? HUGE_PAGE : DEVICE_BLOCK;
    uint8_t *map =
        mmap(NULL, n_bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    volatile uint8_t *memory = map + (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;
    madvise((void *)(uintptr_t)memory, n_bytes,
            kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t at = 0; at < n_bytes; at += page)
        memory[at] = 1;
    const double ns = (double)(tokmap_i_now_ns() - start);
    munmap(map, n_bytes + HUGE_PAGE);
    const uint64_t n_pages = n_bytes / page;
    return ns / (double)n_pages;
}

/* ns for the first touch of a page of a fresh map of a file that is in the page cache. */
static double map_touch_ns(limits *l, bool at_random)
{
    const uint64_t n_pages = l->n_bytes / DEVICE_BLOCK;
    const uint64_t n_touched = at_random ? n_pages / 16 : n_pages;
    const volatile uint8_t *map = mmap(NULL, l->n_bytes, PROT_READ, MAP_SHARED, l->file.fd, 0);
    uint8_t sum = 0;
    if (map == MAP_FAILED)
        return -1;
    if (at_random)
        madvise((void *)(uintptr_t)map, l->n_bytes, MADV_RANDOM);
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_touched; i++)
        sum =
            (uint8_t)(sum + map[(at_random ? bench_random(&l->seed) % n_pages : i) * DEVICE_BLOCK]);
    const double ns = (double)(tokmap_i_now_ns() - start) + (sum == 0) * 1e-9; /* keeps the sum */
    munmap((void *)(uintptr_t)map, l->n_bytes);
    return ns / (double)n_touched;
}

/* ---- Rounds ---- */

/* NULL: what this machine does not have. */
typedef struct limits_rows {
    bench_row *copy[2], *gather[N_KINDS][N_ROW_SIZES];
    bench_row *fault, *huge_fault, *touch_in_order, *touch_at_random;
    bench_row *random[N_READ_SIZES][N_DEPTHS], *sequential[N_DEPTHS];
} limits_rows;

static int measure_memory(limits *l, const limits_rows *r)
{
    int code = 0;
    for (int kind = 0; kind < N_KINDS && !code; kind++) {
        if (!l->from[kind])
            continue;
        if (kind != FILE_MAP)
            code = bench_try_value(r->copy[kind], copy_gbs(l, (memory_kind)kind));
        for (int i = 0; i < N_ROW_SIZES && !code; i++)
            code =
                bench_try_value(r->gather[kind][i], gather_gbs(l, (memory_kind)kind, row_sizes[i]));
    }
    return code || bench_try_value(r->fault, anonymous_fault_ns(l, SMALL_PAGES)) ||
           (r->huge_fault && bench_try_value(r->huge_fault, anonymous_fault_ns(l, HUGE_PAGES))) ||
           bench_try_value(r->touch_in_order, map_touch_ns(l, false)) ||
           bench_try_value(r->touch_at_random, map_touch_ns(l, true));
}

static int measure_device(limits *l, const limits_rows *r)
{
    int code = 0;
    for (int d = 0; d < N_DEPTHS && !code; d++) {
        const device_reads in_order = {SEQUENTIAL_BYTES, depths[d], true, 0, l->device_ns};
        code = bench_try_value(r->sequential[d],
                               device_rate(&l->file, &in_order) * SEQUENTIAL_BYTES / 1e9);
        for (int i = 0; i < N_READ_SIZES && !code; i++) {
            const device_reads random = {read_sizes[i], depths[d], false, bench_random(&l->seed),
                                         l->device_ns};
            code = bench_try_value(r->random[i][d], device_rate(&l->file, &random));
        }
    }
    return code;
}

static void add_memory_rows(const limits *l, bench_report *report, limits_rows *r)
{
    for (int kind = 0; kind < 2; kind++) {
        if (!l->from[kind])
            continue;
        r->copy[kind] = bench_add_row(report, "GB/s", "memcpy, one thread, %s", kind_names[kind]);
        bench_set_group(r->copy[kind], kind_names[kind], "memcpy, one thread");
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        for (int i = 0; i < N_ROW_SIZES && l->from[kind]; i++) {
            const uint32_t kib = row_sizes[i] / 1024;
            r->gather[kind][i] =
                bench_add_row(report, "GB/s", "gather, %u KiB rows, %s", kib, kind_names[kind]);
            bench_set_group(r->gather[kind][i], kind_names[kind], "gather of rows of %u KiB", kib);
        }
    }
    r->fault = bench_add_row(report, "ns", "page fault, fresh 4 KiB page");
    if (l->from[HUGE_PAGES])
        r->huge_fault = bench_add_row(report, "ns", "page fault, fresh huge page");
    r->touch_in_order = bench_add_row(report, "ns", "first touch of a file map, in order");
    r->touch_at_random = bench_add_row(report, "ns", "first touch of it, at random");
}

static void add_device_rows(bench_report *report, limits_rows *r)
{
    static const char *const systems[N_DEPTHS] = {"qd 1", "qd 32", "qd 128"};
    for (int d = 0; d < N_DEPTHS; d++) {
        r->sequential[d] =
            bench_add_row(report, "GB/s", "O_DIRECT, 1 MiB in order, %s", systems[d]);
        bench_set_group(r->sequential[d], systems[d], "device, sequential reads of 1 MiB");
    }
    for (int i = 0; i < N_READ_SIZES * N_DEPTHS; i++) {
        const int d = i % N_DEPTHS;
        const uint32_t kib = read_sizes[i / N_DEPTHS] / 1024;
        bench_row *row =
            bench_add_row(report, "reads/s", "O_DIRECT, %u KiB at random, %s", kib, systems[d]);
        bench_set_group(row, systems[d], "device, random reads of %u KiB", kib);
        r->random[i / N_DEPTHS][d] = row;
    }
}

/* ---- Page ---- */

static bool make_buffers(limits *l)
{
    l->batch = calloc(BATCH_ROWS, LARGEST_ROW);
    for (int kind = 0; kind < 2; kind++) {
        l->from[kind] = new_memory(l->n_bytes, (memory_kind)kind);
        l->to[kind] = new_memory(l->n_bytes, (memory_kind)kind);
        if (!l->batch || !l->from[kind] || !l->to[kind]) {
            cli_warn("out of memory");
            return false;
        }
        memset(l->from[kind], 1, l->n_bytes);
        memset(l->to[kind], 2, l->n_bytes);
    }
    memset(l->batch, 1, BATCH_ROWS * LARGEST_ROW);
    /* The system may be configured to make none, and then a figure for them would be wrong. */
    if (bench_system_number("/proc/self/smaps_rollup", "AnonHugePages:") <= 0) {
        cli_warn("this system gives no huge pages: left out");
        free(l->from[HUGE_PAGES]);
        l->from[HUGE_PAGES] = NULL;
    }
    void *map = mmap(NULL, l->n_bytes, PROT_READ, MAP_SHARED, l->file.fd, 0);
    l->from[FILE_MAP] = map == MAP_FAILED ? NULL : map;
    return l->from[FILE_MAP] && load_data_warm_up(l->ds) == 0;
}

static void free_buffers(limits *l)
{
    for (int kind = 0; kind < 2; kind++) {
        free(l->from[kind]);
        free(l->to[kind]);
    }
    load_data_unmap(l->from[FILE_MAP], l->n_bytes);
    free(l->batch);
}

/* Memory first, and then the device, which leaves the page cache as it was. */
static int measure_limits(limits *l, const bench_options *options, bench_report *report)
{
    limits_rows rows = {.fault = NULL};
    const bool has_device = l->file.direct_fd >= 0;
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    int code = 0;
    add_memory_rows(l, report, &rows);
    if (has_device)
        add_device_rows(report, &rows);
    else
        cli_warn("%s: no device below the file system, or no O_DIRECT (see --dir): left out",
                 load_data_info(l->ds).token_path);
    map_touch_ns(l, false);
    for (uint32_t i = 0; i < n_rounds && !code; i++)
        code = measure_memory(l, &rows);
    for (uint32_t i = 0; i < n_rounds && !code && has_device; i++)
        code = measure_device(l, &rows);
    return code;
}

/* No more than an eighth of the memory in each of five places. */
static uint64_t suitable_bytes(const bench_options *options)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t wanted = options->load_bytes ? options->load_bytes : usual_bytes;
    const uint64_t n = wanted < memory / 8 ? wanted : memory / 8;
    return n < 4 * (uint64_t)HUGE_PAGE ? 4 * (uint64_t)HUGE_PAGE : n / HUGE_PAGE * HUGE_PAGE;
}

static int run_limits(const bench_options *options, bench_report *report)
{
    limits l = {.n_bytes = suitable_bytes(options), .seed = 1, .file = {-1, -1, false, 0}};
    bench_options own = *options;
    own.load_bytes = l.n_bytes + HUGE_PAGE; /* its documents do not end at page boundaries */
    own.data = NULL;
    int code = load_data_open(&own, usual_bytes, &l.ds);
    if (!code) {
        l.device_ns = load_data_is_trial(l.ds) ? trial_ns : usual_ns;
        code = !device_open(&l.file, load_data_info(l.ds).token_path) || !make_buffers(&l) ||
               measure_limits(&l, options, report);
    }
    free_buffers(&l);
    device_close(&l.file);
    load_data_close(&l.ds, 1);
    return code;
}

const bench_page limits_page = {
    .name = "limits",
    .help = "the machine: copies, rows gathered from random places, page faults, O_DIRECT",
    .takes = {"load-mib"},
    .in_all = true,
    .run = run_limits,
};
