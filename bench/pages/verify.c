/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - verifying a dataset, compared with plainly reading the same file. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/device.h"
#include "core/load_data.h"
#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 7,
    DOCUMENT_TOKENS = 1000,
    READ_BYTES = 1 << 20,
    MAX_THREADS = 16
};
static const uint64_t default_bytes = 512ull << 20;

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
    atomic_bool failed;
} reading;

static void read_parts(void *context)
{
    reading *r = context;
    const uint64_t whole = r->s->n_bytes;
    uint8_t *buffer = malloc(READ_BYTES);
    for (uint64_t i; (i = atomic_fetch_add(&r->n_begun, 1)) < r->n_threads;) {
        const uint64_t end = whole * (i + 1) / r->n_threads;
        size_t n = 1;
        for (uint64_t at = whole * i / r->n_threads; at < end && !r->failed; at += n)
            if (!buffer || tokmap_i_file_read(r->s->file.fd, buffer, READ_BYTES, at, &n) || n == 0)
                r->failed = true;
    }
    free(buffer);
}

static bool verify(const subject *s, uint32_t n_threads)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = n_threads};
    tokmap_status status = tokmap_dataset_open(&ds, s->prefix.s, &err);
    if (!status)
        status = tokmap_dataset_verify(ds, &options, NULL, &err);
    tokmap_dataset_close(ds);
    if (status)
        cli_warn("%s", err.text);
    return status == TOKMAP_OK;
}

/* GB/s, or -1. */
static double measure_once(const subject *s, bool verifies, uint32_t n_threads)
{
    reading r = {.s = s, .n_threads = n_threads};
    if (s->cold)
        device_forget(&s->file, NULL);
    const uint64_t start = tokmap_i_now_ns();
    if (verifies)
        r.failed = !verify(s, n_threads);
    else
        tokmap_i_run_threads(n_threads, read_parts, &r);
    return r.failed ? -1 : (double)s->n_bytes / (double)(tokmap_i_now_ns() - start);
}

/* Reading and verifying in turn, each with one thread and with all. */
static int measure_verify(const subject *s, bench_report *report)
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
        if (bench_try_value(rows[i % n_rows], measure_once(s, i % 2, threads[i % n_rows / 2])))
            return 1;
    for (uint32_t i = 0; i < (n_rows == 4 ? 3 : 1); i++) {
        bench_row *over = rows[ratios[i].over], *under = rows[ratios[i].under];
        bench_set_goal(bench_add_ratio(report, over, under, "%s, %s", ratios[i].name, kind),
                       BENCH_AT_LEAST, 0.8);
        if (i < 2) /* as many threads that only read */
            bench_set_rate_limit(over, under, 1);
    }
    return 0;
}

static int run_verify(const bench_options *options, bench_report *report)
{
    const uint64_t wanted = options->verify_bytes ? options->verify_bytes : default_bytes;
    const uint64_t document_bytes = 2 * DOCUMENT_TOKENS;
    const uint32_t n_processors = tokmap_i_n_processors();
    subject s = {.prefix = load_data_name(options, 0),
                 .n_bytes = (wanted + document_bytes - 1) / document_bytes * document_bytes,
                 .n_rounds = bench_rounds(options, ROUNDS),
                 .n_processors = n_processors > MAX_THREADS ? MAX_THREADS : n_processors};
    char path[4100];
    snprintf(path, sizeof path, "%s.bin", s.prefix.s);
    if (load_data_make_random(options, 0, wanted / 2 + wanted % 2) || !device_open(&s.file, path))
        return 1;
    measure_once(&s, false, 1); /* it was written past the page cache */
    int code = measure_verify(&s, report);
    s.cold = true;
    code = code || measure_verify(&s, report);
    device_close(&s.file);
    return code;
}

const bench_page verify_page = {
    .name = "verify",
    .help = "checking a dataset, compared with only reading the same file",
    .takes = {"verify-mib"},
    .in_all = true,
    .run = run_verify,
};
