/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.c - text in memory to ids in memory: cold, warm, and with several threads; compared with
 * what cannot be avoided: reading the text and writing as many ids. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/bench_file.h"
#include "core/bench_text.h"
#include "pages/pages.h"
#include "system/platform.h"
#include "system/platform_memory.h"

enum {
    ROUNDS = 9,
    SCRATCH_BYTES = 16384
};

/* A thread with its encoder and its ids, on cache lines of its own. */
typedef struct worker {
    _Alignas(128) encoder *encoder;
    id_buffer ids;
} worker;

typedef struct job {
    bench_text text;
    double ids_a_byte; /* known after the first pass */
    uint32_t n_threads;
    bool all;   /* each thread takes every batch, not only its share */
    bool plain; /* reads and writes without encoding */
    atomic_size_t next_batch, n_begun;
    worker workers[TOKMAP_I_MAX_THREADS];
} job;

/* At most SCRATCH_BYTES. */
static void move_bytes(uint8_t *to, const uint8_t *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes < SCRATCH_BYTES ? n_bytes : SCRATCH_BYTES);
    __asm__ volatile("" : : "r"(to) : "memory"); /* keeps the compiler from removing it */
}

/* Moves as many bytes as encoding reads and writes, as fast as the C library can. */
static void read_and_write(const job *j, worker *w, const corpus_batch *b)
{
    const size_t n_ids = (size_t)(j->ids_a_byte * (double)b->n_bytes);
    const size_t n_id_bytes = n_ids * sizeof *w->ids.ids;
    uint8_t scratch[SCRATCH_BYTES], *ids = (uint8_t *)(w->ids.ids + w->ids.n);
    for (size_t i = 0; i < b->n_bytes; i += sizeof scratch)
        move_bytes(scratch, b->text + i, b->n_bytes - i);
    for (size_t i = 0; i < n_id_bytes; i += sizeof scratch)
        move_bytes(ids + i, scratch, n_id_bytes - i);
    w->ids.n += n_ids;
}

static void *take_batches(void *context)
{
    job *j = context;
    for (size_t own; (own = atomic_fetch_add(&j->n_begun, 1)) < j->n_threads;) {
        worker *w = &j->workers[own];
        for (size_t n = 0;; n++) {
            const size_t i = j->all ? n : atomic_fetch_add(&j->next_batch, 1);
            if (i >= j->text.n_batches)
                break;
            if (j->plain)
                read_and_write(j, w, &j->text.batches[i]);
            else
                bench_text_encode(w->encoder, &j->text.batches[i], &w->ids, NULL, NULL);
        }
    }
    return NULL;
}

/* Encodes the text once, or with `all` once in each thread. MB/s of one text. The time since
 * `start` counts. */
static double pass(job *j, uint64_t start, bool all, bool plain)
{
    j->all = all;
    j->plain = plain;
    j->next_batch = j->n_begun = 0;
    for (uint32_t i = 0; i < j->n_threads; i++)
        j->workers[i].ids.n = 0;
    tokmap_i_run_threads(j->n_threads, take_batches, j);
    return (double)j->text.n_bytes * 1e3 / bench_ns_since(start);
}

/* ---- Page ---- */

typedef struct page_rows {
    uint32_t n_threads;
    bench_row *plain, *cold, *warm;
} page_rows;

/* A cold pass, including making the encoders and their buffers, which take more than any text has
 * ids; and a warm one: each thread has encoded the whole text before. Then one that only reads and
 * writes. */
static void measure_round(job *j, const tokenizer *t, const page_rows *r, const char *ids_path)
{
    static const encoder_options options;
    const size_t capacity = 12 * j->text.n_bytes + 64 * j->text.n_ends + (1 << 20);
    const uint64_t start = tokmap_i_now_ns();
    size_t n_ids = 0;
    output_file file;
    j->n_threads = r->n_threads;
    for (uint32_t i = 0; i < j->n_threads; i++) {
        worker *w = &j->workers[i];
        *w = (worker){encoder_new(t, &options),
                      {tokmap_i_big_memory_new(capacity * sizeof(uint32_t)), 0, capacity}};
        if (!w->encoder || !w->ids.ids)
            bench_fail("out of memory");
    }
    bench_add_value(r->cold, pass(j, start, false, false));
    const id_buffer *ids = &j->workers[0].ids; /* stored as in memory: little-endian */
    if (ids_path && (bench_file_open(&file, ids_path) ||
                     bench_file_write(&file, ids->ids, ids->n * sizeof *ids->ids)))
        _exit(1); /* it was printed */
    for (uint32_t i = 0; i < j->n_threads; i++)
        n_ids += j->workers[i].ids.n;
    j->ids_a_byte = (double)n_ids / (double)j->text.n_bytes;
    if (j->n_threads > 1)
        pass(j, 0, true, false);
    bench_add_value(r->warm, pass(j, tokmap_i_now_ns(), false, false));
    bench_add_value(r->plain, pass(j, tokmap_i_now_ns(), false, true));
    for (uint32_t i = 0; i < j->n_threads; i++) {
        encoder_free(j->workers[i].encoder);
        tokmap_i_big_memory_free(j->workers[i].ids.ids, capacity * sizeof(uint32_t));
    }
}

static bench_row *add_row(bench_report *report, const char *what, uint32_t n_threads)
{
    return bench_add_row(report, "MB/s", "%s, %u thread%s", what, n_threads,
                         n_threads > 1 ? "s" : "");
}

void bench_tokenize(const bench_options *options, bench_report *report)
{
    static job j;
    const uint32_t n_rounds = bench_rounds(options, ROUNDS), n_kinds = options->n_jobs > 1 ? 2 : 1;
    page_rows rows[2];
    const uint64_t start = tokmap_i_now_ns();
    tokenizer_file file = bench_text_tokenizer(options);
    bench_add_value(bench_add_row(report, "ms", "loading the vocabulary"),
                    bench_ns_since(start) / 1e6);
    j.text = bench_text_load(options->text, file.tokenizer);
    for (uint32_t k = 0; k < n_kinds; k++) {
        const uint32_t n = k == 0 ? 1 : (uint32_t)options->n_jobs;
        rows[k] = (page_rows){n, add_row(report, "text read and ids written", n),
                              add_row(report, "cold", n), add_row(report, "warm", n)};
    }
    for (uint32_t i = 0; i < n_rounds * n_kinds; i++)
        measure_round(&j, file.tokenizer, &rows[i % n_kinds], i == 0 ? options->ids : NULL);
    for (uint32_t k = 0; k < n_kinds; k++) {
        bench_set_limit(rows[k].cold, rows[k].plain, 1);
        bench_set_limit(rows[k].warm, rows[k].plain, 1);
    }
    if (n_kinds == 2)
        bench_set_goal(
            bench_add_ratio(report, rows[1].warm, rows[0].warm, "all threads / one, warm"),
            BENCH_AT_LEAST, 0.95 * rows[1].n_threads);
    bench_text_free(&j.text);
    tokenizer_file_close(&file);
}
