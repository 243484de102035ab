/* verify_page.c - checking a dataset against plainly reading the same file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "tokmap_writer.h"

enum {
    ROUNDS = 7,
    DOCUMENT_TOKENS = 1000,
    READ_BYTES = 1 << 20,
    MAX_THREADS = 16
};
static const uint64_t default_bytes = 2ull << 30;

static int make(const char *prefix, uint64_t n_bytes)
{
    static uint32_t ids[DOCUMENT_TOKENS];
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 50257, .eod_id = TOKMAP_NO_ID, .replace = 1};
    tokmap_writer *w = NULL;
    tokmap_error err;
    uint64_t seed = 1;
    tokmap_status status = tokmap_writer_open(&w, prefix, &options, &err);
    for (uint64_t done = 0; !status && done < n_bytes; done += sizeof ids / 2) {
        for (int i = 0; i < DOCUMENT_TOKENS; i++)
            ids[i] = (uint32_t)(bench_random(&seed) % 50257);
        status = tokmap_writer_append(w, ids, DOCUMENT_TOKENS, &err);
        if (!status)
            status = tokmap_writer_end_document(w, &err);
    }
    if (!status)
        status = tokmap_writer_finish(w, &err);
    tokmap_writer_close(w);
    if (status)
        fprintf(stderr, "tokbench: %s\n", err.text);
    return status != 0;
}

typedef struct part {
    int fd;
    off_t first, end;
    bool failed;
} part;

static void *read_part(void *arg)
{
    part *p = arg;
    char *buffer = malloc(READ_BYTES);
    p->failed = !buffer;
    while (!p->failed && p->first < p->end) {
        const ssize_t n = pread(p->fd, buffer, READ_BYTES, p->first);
        p->failed = n <= 0;
        p->first += n;
    }
    free(buffer);
    return NULL;
}

/* Plain reading: each thread its own stretch of the file, front to back. */
static double read_gbs(const char *path, uint64_t n_bytes, uint32_t n_threads)
{
    pthread_t threads[MAX_THREADS];
    part parts[MAX_THREADS];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool failed = fd < 0;
    const uint64_t start = bench_now_ns();
    for (uint32_t i = 0; i < n_threads; i++) {
        parts[i] = (part){fd, (off_t)(n_bytes / n_threads * i),
                          (off_t)(i + 1 == n_threads ? n_bytes : n_bytes / n_threads * (i + 1)), 0};
        if (pthread_create(&threads[i], NULL, read_part, &parts[i]))
            abort();
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        failed |= parts[i].failed;
    }
    const double ns = (double)(bench_now_ns() - start);
    if (fd >= 0)
        close(fd);
    return failed ? -1 : (double)n_bytes / ns;
}

static double verify_gbs(const char *prefix, uint64_t n_bytes, uint32_t n_threads)
{
    tokmap_dataset *ds;
    tokmap_error err;
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = n_threads};
    const uint64_t start = bench_now_ns();
    tokmap_status status = tokmap_dataset_open(&ds, prefix, &err);
    if (!status) {
        status = tokmap_dataset_verify(ds, &options, NULL, &err);
        tokmap_dataset_close(ds);
    }
    if (status) {
        fprintf(stderr, "tokbench: %s\n", err.text);
        return -1;
    }
    return (double)n_bytes / (double)(bench_now_ns() - start);
}

/* Drops the file from the page cache, as far as the system does what it is asked. */
static void make_cold(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fdatasync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

typedef struct pair {
    const char *prefix, *path;
    uint64_t n_bytes;
    uint32_t n_rounds, n_threads;
    bool cold;
} pair;

/* Reading and verifying in turn, with the same number of threads. */
static int compare(const pair *p, bench_report *report)
{
    char name[80];
    const char *state = p->cold ? "not cached" : "cached";
    snprintf(name, sizeof name, "plain read, %u thread%s, %s", p->n_threads,
             p->n_threads > 1 ? "s" : "", state);
    bench_row *read_row = bench_add_row(report, "verify", name, "GB/s");
    snprintf(name, sizeof name, "verify, %u thread%s, %s", p->n_threads,
             p->n_threads > 1 ? "s" : "", state);
    bench_row *verify_row = bench_add_row(report, "verify", name, "GB/s");
    for (uint32_t i = 0; i < p->n_rounds; i++) {
        if (p->cold)
            make_cold(p->path);
        const double x = read_gbs(p->path, p->n_bytes, p->n_threads);
        if (p->cold)
            make_cold(p->path);
        const double y = verify_gbs(p->prefix, p->n_bytes, p->n_threads);
        if (x < 0 || y < 0)
            return 1;
        bench_add_value(read_row, x);
        bench_add_value(verify_row, y);
    }
    snprintf(name, sizeof name, "verify / read, %u thread%s, %s", p->n_threads,
             p->n_threads > 1 ? "s" : "", state);
    bench_set_goal(bench_add_ratio(report, verify_row, read_row, name), BENCH_AT_LEAST, 0.8);
    return 0;
}

int verify_page(const bench_options *options, bench_report *report)
{
    char prefix[4096], path[4100];
    snprintf(prefix, sizeof prefix, "%s/verify", options->dir);
    snprintf(path, sizeof path, "%s.bin", prefix);
    const uint64_t wanted = options->verify_bytes ? options->verify_bytes : default_bytes;
    const uint64_t document_bytes = 2 * DOCUMENT_TOKENS;
    pair p = {.prefix = prefix,
              .path = path,
              .n_bytes = (wanted + document_bytes - 1) / document_bytes * document_bytes,
              .n_rounds = options->n_rounds ? options->n_rounds : ROUNDS};
    const long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t all = n_processors > MAX_THREADS ? MAX_THREADS : (uint32_t)n_processors;
    int code = make(prefix, wanted);
    for (int i = 0; !code && i < 4; i++) {
        p.cold = i >= 2;
        p.n_threads = i % 2 ? all : 1;
        if (i % 2 == 0 || all > 1)
            code = compare(&p, report);
    }
    bench_remove(prefix);
    return code;
}
