/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - verifying a dataset, compared with plainly reading the same file. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/device.h"
#include "system/platform_thread.h"
#include "tokmap.h"

enum {
    ROUNDS = 7,
    DOCUMENT_TOKENS = 1000,
    READ_BYTES = 1 << 20,
    MAX_THREADS = 16
};
static const uint64_t default_bytes = 512ull << 20;

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

/* Plain reading: each thread reads its own part of the file, front to back. */
static double read_gbs(const char *path, uint64_t n_bytes, uint32_t n_threads)
{
    tokmap_i_thread threads[MAX_THREADS];
    part parts[MAX_THREADS];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool failed = fd < 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint32_t i = 0; i < n_threads; i++) {
        parts[i] = (part){fd, (off_t)(n_bytes / n_threads * i),
                          (off_t)(i + 1 == n_threads ? n_bytes : n_bytes / n_threads * (i + 1)), 0};
        if (tokmap_i_thread_start(&threads[i], read_part, &parts[i]))
            abort();
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        tokmap_i_thread_join(threads[i]);
        failed |= parts[i].failed;
    }
    const double ns = (double)(tokmap_i_now_ns() - start);
    if (fd >= 0)
        close(fd);
    return failed ? -1 : (double)n_bytes / ns;
}

static double verify_gbs(const char *prefix, uint64_t n_bytes, uint32_t n_threads)
{
    tokmap_dataset *ds;
    tokmap_error err;
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = n_threads};
    const uint64_t start = tokmap_i_now_ns();
    tokmap_status status = tokmap_dataset_open(&ds, prefix, &err);
    if (!status) {
        status = tokmap_dataset_verify(ds, &options, NULL, &err);
        tokmap_dataset_close(ds);
    }
    if (status) {
        cli_warn("%s", err.text);
        return -1;
    }
    return (double)n_bytes / (double)(tokmap_i_now_ns() - start);
}

typedef struct subject {
    const char *prefix, *path;
    uint64_t n_bytes;
    uint32_t n_rounds, n_threads; /* all processors of the machine */
    device_file file;
    bool cold;
} subject;

static double measure_once(const subject *s, bool verify, uint32_t n_threads)
{
    if (s->cold)
        device_forget(&s->file, NULL);
    return verify ? verify_gbs(s->prefix, s->n_bytes, n_threads)
                  : read_gbs(s->path, s->n_bytes, n_threads);
}

static bench_row *add_row(const subject *s, bench_report *report, bool verify, uint32_t n_threads)
{
    return bench_add_row(report, "verify", "GB/s", "%s, %u thread%s, %s",
                         verify ? "verify" : "plain read", n_threads, n_threads > 1 ? "s" : "",
                         s->cold ? "not cached" : "cached");
}

static void add_ratio(const subject *s, bench_report *report, bench_row *const *rows, int kind)
{
    static const char *const names[] = {"verify / read, one thread each",
                                        "verify / read, all threads each",
                                        "verify as it runs / plain sequential read"};
    static const int over[] = {1, 3, 3}, under[] = {0, 2, 0};
    bench_set_goal(bench_add_ratio(report, rows[over[kind]], rows[under[kind]], "%s, %s",
                                   names[kind], s->cold ? "not cached" : "cached"),
                   BENCH_AT_LEAST, 0.8);
    if (kind < 2) /* as many threads that only read */
        bench_set_rate_limit(rows[over[kind]], rows[under[kind]], 1);
}

/* Reading and verifying in turn, each with one thread and with all. */
static int measure_verify(const subject *s, bench_report *report)
{
    bench_row *rows[4];
    const int n_rows = s->n_threads > 1 ? 4 : 2;
    for (int k = 0; k < n_rows; k++)
        rows[k] = add_row(s, report, k % 2, k < 2 ? 1 : s->n_threads);
    for (uint32_t i = 0; i < s->n_rounds; i++) {
        for (int k = 0; k < n_rows; k++) {
            if (bench_try_value(rows[k], measure_once(s, k % 2, k < 2 ? 1 : s->n_threads)))
                return 1;
        }
    }
    add_ratio(s, report, rows, 0);
    if (n_rows == 4) {
        add_ratio(s, report, rows, 1);
        add_ratio(s, report, rows, 2);
    }
    return 0;
}

static int run_verify(const bench_options *options, bench_report *report)
{
    char prefix[4096], path[4100];
    snprintf(prefix, sizeof prefix, "%s/verify", options->dir);
    snprintf(path, sizeof path, "%s.bin", prefix);
    const uint64_t wanted = options->verify_bytes ? options->verify_bytes : default_bytes;
    const uint64_t document_bytes = 2 * DOCUMENT_TOKENS;
    const long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    subject s = {.file = {-1, -1, false, 0},
                 .prefix = prefix,
                 .path = path,
                 .n_bytes = (wanted + document_bytes - 1) / document_bytes * document_bytes,
                 .n_rounds = bench_rounds(options, ROUNDS),
                 .n_threads = n_processors > MAX_THREADS ? MAX_THREADS : (uint32_t)n_processors};
    int code = bench_make_random(prefix, wanted / 2 + wanted % 2);
    if (!code) /* it was written past the page cache */
        code = !device_open(&s.file, path) || read_gbs(path, s.n_bytes, 1) < 0;
    if (!code)
        code = measure_verify(&s, report);
    s.cold = true;
    if (!code)
        code = measure_verify(&s, report);
    device_close(&s.file);
    bench_remove(prefix);
    return code;
}

const bench_page verify_page = {
    .name = "verify",
    .help = "checking a dataset, compared with only reading the same file",
    .takes = {"verify-mib"},
    .in_all = true,
    .run = run_verify,
};
