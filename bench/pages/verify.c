/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - verifying a dataset, compared with plainly reading the same file. */
#include <stdatomic.h>
#include <stdlib.h>

#include "core/load_data.h"
#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 7,
    READ_BYTES = 1 << 20,
    MAX_THREADS = 16
};
static const uint64_t default_mib = 512;

typedef struct subject {
    load_data_prefix prefix;
    uint64_t n_bytes;
    uint32_t n_rounds, n_processors;
    device_file file;
    bool cold;
} subject;

/* Plain reading: each thread reads its own part of the file, front to back. */
typedef struct reading {
    const subject *s;
    uint32_t n_threads;
    atomic_uint n_begun;
} reading;

static void read_parts(void *context)
{
    reading *r = context;
    const uint64_t whole = r->s->n_bytes;
    uint8_t *buffer = bench_memory(READ_BYTES);
    for (uint64_t i; (i = atomic_fetch_add(&r->n_begun, 1)) < r->n_threads;) {
        const uint64_t end = whole * (i + 1) / r->n_threads;
        size_t n;
        for (uint64_t at = whole * i / r->n_threads; at < end; at += n)
            if (tokmap_i_file_read(r->s->file.fd, buffer, READ_BYTES, at, &n) || n == 0)
                bench_fail("%s.bin: a plain read failed", r->s->prefix.s);
    }
    free(buffer);
}

static void verify(const subject *s, uint32_t n_threads)
{
    tokmap_dataset *ds;
    tokmap_error err;
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = n_threads};
    bench_check(tokmap_dataset_open(&ds, s->prefix.s, &err), &err);
    bench_check(tokmap_dataset_verify(ds, &options, NULL, &err), &err);
    tokmap_dataset_close(ds);
}

static double measure_gbs(const subject *s, bool verifies, uint32_t n_threads)
{
    reading r = {.s = s, .n_threads = n_threads};
    if (s->cold)
        device_forget(&s->file, NULL);
    const uint64_t start = tokmap_i_now_ns();
    if (verifies)
        verify(s, n_threads);
    else
        tokmap_i_run_threads(n_threads, read_parts, &r);
    return (double)s->n_bytes / bench_ns_since(start);
}

/* Reading and verifying in turn, each with one thread and with all. */
static void measure_verify(const subject *s, bench_report *report)
{
    static const struct {
        const char *name;
        int over, under;
    } ratios[] = {{"verify / read, one thread each", 1, 0},
                  {"verify / read, all threads each", 3, 2},
                  {"verify as it runs / plain sequential read", 3, 0}};
    const char *kind = s->cold ? "not cached" : "cached";
    bench_row *rows[4];
    const uint32_t n_rows = s->n_processors > 1 ? 4 : 2, threads[] = {1, s->n_processors};
    for (uint32_t k = 0; k < n_rows; k++)
        rows[k] =
            bench_add_row(report, "GB/s", "%s, %u thread%s, %s", k % 2 ? "verify" : "plain read",
                          threads[k / 2], threads[k / 2] > 1 ? "s" : "", kind);
    for (uint32_t i = 0; i < s->n_rounds * n_rows; i++)
        bench_add_value(rows[i % n_rows], measure_gbs(s, i % 2, threads[i % n_rows / 2]));
    for (uint32_t i = 0; i < (n_rows == 4 ? 3 : 1); i++) {
        bench_row *over = rows[ratios[i].over], *under = rows[ratios[i].under];
        bench_set_goal(bench_add_ratio(report, over, under, "%s, %s", ratios[i].name, kind),
                       BENCH_AT_LEAST, 0.8);
        if (i < 2) /* as many threads that only read */
            bench_set_rate_limit(over, under, 1);
    }
}

static void run_verify(const bench_options *options, bench_report *report)
{
    const uint64_t wanted = (options->verify_mib ? options->verify_mib : default_mib) << 20;
    const uint32_t n_processors = tokmap_i_n_processors();
    subject s = {.prefix = load_data_name(options, 0),
                 .n_rounds = bench_rounds(options, ROUNDS),
                 .n_processors = n_processors > MAX_THREADS ? MAX_THREADS : n_processors};
    char path[4100];
    snprintf(path, sizeof path, "%s.bin", s.prefix.s);
    load_data_make_random(options, 0, wanted / 2);
    s.file = device_open(path);
    s.n_bytes = s.file.n_bytes;
    measure_gbs(&s, false, 1); /* it was written past the page cache */
    measure_verify(&s, report);
    s.cold = true;
    measure_verify(&s, report);
    device_close(&s.file);
}

const bench_page verify_page = {
    .name = "verify",
    .help = "checking a dataset, compared with only reading the same file",
    .takes = {"verify-mib"},
    .in_all = true,
    .run = run_verify,
};
