/* cold_page.c - the loader on data that are not in memory: beside the rate of the device for reads
 * of the same size, and what a plain map does. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "load_data.h"
#include "tokmap_loader.h"

enum {
    ROUNDS = 5,
    BATCH_ROWS = 32,
    BLOCK = 4096,
    READERS = 64, /* threads, each with one read under way */
    N_LENGTHS = 3,
    N_WAYS = 4,
    SEQUENTIAL_BYTES = 1 << 20
};
static const uint64_t usual_ns = 700000000, short_ns = 20000000; /* of a measure */
static const uint32_t lengths[N_LENGTHS] = {1024, 4096, 8192};

typedef struct cold {
    const tokmap_dataset *ds;
    int fd, direct_fd;
    uint64_t n_bytes, seed, ns;
    uint32_t length;
} cold;

/* ---- What the system counts ---- */

/* Bytes that this process had read from disks. */
static uint64_t device_bytes(void)
{
    char text[512] = "";
    FILE *f = fopen("/proc/self/io", "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *line = strstr(text, "\nread_bytes:");
    return line ? strtoull(line + strlen("\nread_bytes:"), NULL, 10) : 0;
}

/* What is mapped stays in memory, so the map lets go of it first. */
static void forget(const cold *c)
{
    const void *tokens;
    if (tokmap_dataset_tokens(c->ds, 0, 1, &tokens) == TOKMAP_OK)
        madvise((void *)(uintptr_t)tokens, c->n_bytes, MADV_DONTNEED);
    fdatasync(c->fd);
    posix_fadvise(c->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* ---- The device ---- */

typedef struct reader {
    const cold *c;
    size_t read_bytes;
    bool sequential;
    uint64_t seed, until;
    atomic_uint_fast64_t *n_reads;
    bool failed;
} reader;

static void *read_blocks(void *arg)
{
    reader *r = arg;
    void *buffer = aligned_alloc(BLOCK, r->read_bytes);
    const uint64_t n_places = r->c->n_bytes / BLOCK - r->read_bytes / BLOCK;
    r->failed = !buffer;
    while (!r->failed && bench_now_ns() < r->until) {
        const uint64_t i = atomic_fetch_add(r->n_reads, 1);
        const uint64_t place = r->sequential ? i * (r->read_bytes / BLOCK) % n_places
                                             : bench_random(&r->seed) % n_places;
        r->failed = pread(r->c->direct_fd, buffer, r->read_bytes, (off_t)(place * BLOCK)) !=
                    (ssize_t)r->read_bytes;
    }
    free(buffer);
    return NULL;
}

/* Reads a second, many at a time, past the page cache; -1: it failed. */
static double device_rate(cold *c, size_t read_bytes, bool sequential)
{
    pthread_t threads[READERS];
    reader readers[READERS];
    atomic_uint_fast64_t n_reads = 0;
    const uint64_t start = bench_now_ns();
    bool failed = false;
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){
            c, read_bytes, sequential, bench_random(&c->seed), start + c->ns, &n_reads, false};
        if (pthread_create(&threads[i], NULL, read_blocks, &readers[i]))
            abort();
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        failed |= readers[i].failed;
    }
    return failed ? -1 : (double)n_reads * 1e9 / (double)(bench_now_ns() - start);
}

/* ---- The loader ---- */

typedef struct way {
    const char *name;
    tokmap_io io;
    tokmap_shuffle shuffle;
} way;

static const way ways[N_WAYS] = {{"direct", TOKMAP_IO_DIRECT, TOKMAP_SHUFFLE_FULL},
                                 {"populate", TOKMAP_IO_POPULATE, TOKMAP_SHUFFLE_FULL},
                                 {"plain map", TOKMAP_IO_MAP, TOKMAP_SHUFFLE_FULL},
                                 {"direct, block shuffle", TOKMAP_IO_DIRECT, TOKMAP_SHUFFLE_BLOCK}};

typedef struct rate {
    double rows, bytes; /* a second; device bytes for each byte of the rows */
} rate;

static bool take_steps(tokmap_loader *l, uint64_t until, uint64_t *n_rows)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    volatile uint16_t sum = 0;
    while (bench_now_ns() < until) {
        if (tokmap_loader_next(l, &b, &err)) {
            fprintf(stderr, "tokbench: %s\n", err.text);
            return false;
        }
        for (uint32_t i = 0; i < b.n_rows; i++)
            for (uint32_t k = 0; k <= b.sequence_length; k += 1024) /* every page of it */
                sum = (uint16_t)(sum + ((const uint16_t *)b.rows[i].tokens)[k]);
        *n_rows += b.n_rows;
    }
    return true;
}

static bool load(cold *c, const way *w, rate *out)
{
    const tokmap_loader_source source = {.datasets = &c->ds, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options options = {.struct_size = sizeof options,
                                           .sources = &source,
                                           .n_sources = 1,
                                           .sequence_length = c->length,
                                           .batch_rows = BATCH_ROWS,
                                           .seed = bench_random(&c->seed),
                                           .shuffle = w->shuffle,
                                           .io = w->io};
    tokmap_loader *l;
    tokmap_error err;
    uint64_t n_rows = 0;
    forget(c);
    const uint64_t before = device_bytes(), start = bench_now_ns();
    if (tokmap_loader_open(&l, &options, &err)) {
        fprintf(stderr, "tokbench: %s\n", err.text);
        return false;
    }
    const bool fine = take_steps(l, start + c->ns, &n_rows);
    const uint64_t ns = bench_now_ns() - start;
    const uint64_t n_read = device_bytes() - before;
    tokmap_loader_close(l);
    out->rows = (double)n_rows * 1e9 / (double)ns;
    out->bytes = (double)n_read / ((double)n_rows * 2 * (c->length + 1.0));
    return fine && n_rows > 0;
}

/* ---- Page ---- */

typedef struct cold_rows {
    bench_row *device, *sequential, *rows[N_WAYS], *bytes[N_WAYS], *share[N_WAYS];
} cold_rows;

static bench_row *add_row(bench_report *report, const char *what, uint32_t length, const char *unit)
{
    char name[120];
    snprintf(name, sizeof name, "%s, %u tokens", what, length);
    return bench_add_row(report, "cold", name, unit);
}

static void add_rows(bench_report *report, uint32_t length, cold_rows *r)
{
    static const double least_share[N_WAYS] = {0.9, 0.6, 0, 0.9};
    char name[80];
    r->device = add_row(report, "device, random reads of a row", length, "rows/s");
    r->sequential = add_row(report, "device, sequential", length, "rows/s");
    for (int i = 0; i < N_WAYS; i++) {
        r->rows[i] = add_row(report, ways[i].name, length, "rows/s");
        snprintf(name, sizeof name, "%s / device", ways[i].name);
        r->share[i] = add_row(report, name, length, "x");
        snprintf(name, sizeof name, "%s, device bytes a byte", ways[i].name);
        r->bytes[i] = add_row(report, name, length, "x");
        if (least_share[i] > 0)
            bench_set_goal(r->share[i], BENCH_AT_LEAST, least_share[i]);
    }
    bench_set_goal(r->bytes[0], BENCH_AT_MOST, length < 2048 ? 3 : length < 8192 ? 2 : 1.3);
    bench_set_goal(r->bytes[3], BENCH_AT_MOST, 1.1);
}

static int measure(cold *c, const cold_rows *r)
{
    const size_t row_bytes = 2 * ((size_t)c->length + 1);
    const double device = device_rate(c, (row_bytes + BLOCK - 1) / BLOCK * BLOCK, false);
    const double sequential =
        device_rate(c, SEQUENTIAL_BYTES, true) * SEQUENTIAL_BYTES / (double)row_bytes;
    if (device < 0 || sequential < 0)
        return 1;
    bench_add_value(r->device, device);
    bench_add_value(r->sequential, sequential);
    for (int i = 0; i < N_WAYS; i++) {
        rate got;
        if (!load(c, &ways[i], &got))
            return 1;
        bench_add_value(r->rows[i], got.rows);
        bench_add_value(r->share[i],
                        got.rows / (ways[i].shuffle == TOKMAP_SHUFFLE_BLOCK ? sequential : device));
        bench_add_value(r->bytes[i], got.bytes);
    }
    return 0;
}

int cold_page(const bench_options *options, bench_report *report)
{
    cold c = {.seed = 1, .fd = -1, .direct_fd = -1, .ns = usual_ns};
    cold_rows rows[N_LENGTHS];
    if (options->load_bytes > 0 && options->load_bytes < (uint64_t)64 << 20)
        c.ns = short_ns; /* a trial */
    tokmap_dataset_info info = {.struct_size = sizeof info};
    if (options->load_bytes > 0 && options->load_bytes < 4 * SEQUENTIAL_BYTES) {
        fputs("tokbench: cold needs a dataset of 4 MiB and more\n", stderr);
        return 2;
    }
    int code = load_data_open_cold(options, &c.ds);
    if (!code) {
        tokmap_dataset_get_info(c.ds, &info);
        c.n_bytes = info.token_file_bytes;
        c.fd = open(info.token_path, O_RDONLY | O_CLOEXEC);
        c.direct_fd = open(info.token_path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        if (c.fd < 0 || c.direct_fd < 0) {
            fprintf(stderr, "tokbench: %s: %s: cold needs a file system with O_DIRECT\n",
                    info.token_path, strerror(errno));
            code = 1;
        }
    }
    for (int i = 0; i < N_LENGTHS && !code; i++)
        add_rows(report, lengths[i], &rows[i]);
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    for (uint32_t i = 0; i < n_rounds && !code; i++) {
        for (int k = 0; k < N_LENGTHS && !code; k++) {
            c.length = lengths[k];
            code = measure(&c, &rows[k]);
        }
    }
    if (c.fd >= 0)
        close(c.fd);
    if (c.direct_fd >= 0)
        close(c.direct_fd);
    load_data_close(options, &c.ds, 1);
    return code;
}
