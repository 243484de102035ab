/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - verifying a dataset, compared with only reading the same file. */
#include <stdatomic.h>
#include <stdlib.h>

#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 7,
    READ_BYTES = 1 << 20,
    MAX_THREADS = 16
};

typedef struct subject {
    const bench_options *options;
    const load_data *data;
    bool cold;
} subject;

/* Plain reading: each thread reads its own part of the file, front to back. */
typedef struct reading {
    const load_data *data;
    uint32_t n_threads;
    atomic_uint n_begun;
} reading;

static void *read_parts(void *context)
{
    reading *r = context;
    const uint64_t whole = r->data->info.token_file_bytes;
    /* Not bench_memory: filling it would be timed. */
    uint8_t *buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, READ_BYTES);
    if (!buffer)
        bench_fail("out of memory");
    for (uint64_t i; (i = atomic_fetch_add(&r->n_begun, 1)) < r->n_threads;) {
        const uint64_t end = whole * (i + 1) / r->n_threads;
        size_t n;
        for (uint64_t at = whole * i / r->n_threads; at < end; at += n)
            if (tokmap_i_file_read(r->data->file.fd, buffer, READ_BYTES, at, &n) || n == 0)
                bench_fail("%s: a plain read failed", r->data->info.token_path);
    }
    free(buffer);
    return NULL;
}

static double measure_gbs(const subject *s, bool verifies, uint32_t n_threads)
{
    const tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = n_threads};
    reading r = {.data = s->data, .n_threads = n_threads};
    if (s->cold)
        device_forget(&s->data->file, NULL);
    const uint64_t start = tokmap_i_now_ns();
    if (verifies) {
        tokmap_dataset *ds;
        load_data_open_made(s->options, 0, &ds, 1);
        bench_check(tokmap_dataset_verify(ds, &options, NULL, &bench_error));
        load_data_close_made(&ds, 1);
    } else
        tokmap_i_run_threads(n_threads, read_parts, &r);
    return (double)s->data->info.token_file_bytes / bench_ns_since(start);
}

/* Measures reading and verifying in turn, each with one thread and with all. */
static void measure_verify(const subject *s, bench_report *report)
{
    static const struct {
        const char *name;
        int over, under;
    } ratios[] = {{"verify / read, one thread each", 1, 0},
                  {"verify / read, all threads each", 3, 2},
                  {"verify as it runs / plain sequential read", 3, 0}};
    const char *kind = s->cold ? "not cached" : "cached";
    const uint32_t n_processors = tokmap_i_n_processors(), n_rows = n_processors > 1 ? 4 : 2,
                   threads[] = {1, n_processors > MAX_THREADS ? MAX_THREADS : n_processors};
    bench_row *rows[4];
    for (uint32_t k = 0; k < n_rows; k++)
        rows[k] =
            bench_add_row(report, "GB/s", "%s, %u thread%s, %s", k % 2 ? "verify" : "plain read",
                          threads[k / 2], threads[k / 2] > 1 ? "s" : "", kind);
    for (uint32_t i = 0; i < bench_rounds(s->options, ROUNDS) * n_rows; i++)
        bench_add_value(rows[i % n_rows], measure_gbs(s, i % 2, threads[i % n_rows / 2]));
    for (uint32_t i = 0; i < (n_rows == 4 ? 3 : 1); i++) {
        bench_row *over = rows[ratios[i].over], *under = rows[ratios[i].under];
        bench_set_goal(bench_add_ratio(report, over, under, "%s, %s", ratios[i].name, kind),
                       BENCH_AT_LEAST, 0.8);
        if (i < 2) /* compared with as many threads that only read */
            bench_set_limit(over, under, 1);
    }
}

void bench_verify(const bench_options *options, bench_report *report)
{
    bench_options own = *options;
    own.load_mib = options->verify_mib;
    own.data = NULL;
    load_data data = load_data_open(&own, 512);
    subject s = {.options = options, .data = &data};
    measure_gbs(&s, false, 1); /* reads the file into the page cache */
    measure_verify(&s, report);
    s.cold = true;
    measure_verify(&s, report);
    load_data_close(&data);
}
