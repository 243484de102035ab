/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.c - text in memory to ids in memory: cold, warm, and with several threads; compared with
 * what cannot be avoided: reading the text and writing as many ids. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pages/pages.h"
#include "core/bench_file.h"
#include "core/bench_text.h"
#include "cli/cli.h"
#include "system/platform_memory.h"
#include "system/platform_thread.h"
#include "tokenizer/choice/tokenizer_choice.h"

enum {
    ROUNDS = 9,
    MAX_THREADS = 64,
    PIECES_AT_ONCE = 16,
    SCRATCH_BYTES = 16384
};

typedef struct job {
    const tokenizer *tokenizer;
    const bench_text *text;
    atomic_size_t next; /* piece */
    double ids_a_byte;  /* known after the first pass */
} job;

/* A thread with its encoder and its ids, on cache lines of its own. */
typedef struct worker {
    _Alignas(128) job *job;
    encoder *encoder;
    id_buffer ids;
    bool all;   /* takes every piece, not only its share */
    bool plain; /* reads and writes without encoding */
    bool failed;
} worker;

static void encode_pieces(worker *w, size_t from, size_t to)
{
    for (size_t i = from; i < to && !w->failed; i++) {
        const bench_piece *p = &w->job->text->pieces[i];
        w->failed = encoder_encode(w->encoder, w->job->text->bytes + p->start, p->n_bytes,
                                   p->first ? TEXT_FIRST : 0, &w->ids) != TOKENIZE_OK;
    }
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void move_bytes(uint8_t *to, const uint8_t *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    __asm__ volatile("" : : "r"(to) : "memory"); /* keeps the compiler from removing it */
}

/* Moves as many bytes as encoding reads and writes, as fast as the C library can. */
static void read_and_write(worker *w, size_t from, size_t to)
{
    const bench_text *text = w->job->text;
    const uint8_t *bytes = text->bytes + text->pieces[from].start;
    const size_t n_bytes =
        text->pieces[to - 1].start + text->pieces[to - 1].n_bytes - text->pieces[from].start;
    const size_t n_ids = (size_t)(w->job->ids_a_byte * (double)n_bytes);
    uint8_t scratch[SCRATCH_BYTES], *ids = (uint8_t *)(w->ids.ids + w->ids.n);
    const size_t n_id_bytes = n_ids * sizeof *w->ids.ids;
    for (size_t i = 0; i < n_bytes; i += sizeof scratch)
        move_bytes(scratch, bytes + i, smaller_of(n_bytes - i, sizeof scratch));
    for (size_t i = 0; i < n_id_bytes; i += sizeof scratch)
        move_bytes(ids + i, scratch, smaller_of(n_id_bytes - i, sizeof scratch));
    w->ids.n += n_ids;
}

static void *take_pieces(void *arg)
{
    worker *w = arg;
    const size_t n_pieces = w->job->text->n_pieces;
    for (size_t n_own = 0;; n_own += PIECES_AT_ONCE) {
        const size_t from = w->all ? n_own : atomic_fetch_add(&w->job->next, PIECES_AT_ONCE);
        if (from >= n_pieces || w->failed)
            return NULL;
        (w->plain ? read_and_write : encode_pieces)(w, from,
                                                    smaller_of(from + PIECES_AT_ONCE, n_pieces));
    }
}

/* Encodes all pieces once; nanoseconds, or 0: out of memory. The calling thread works too. */
static uint64_t pass(job *j, worker *workers, uint32_t n_threads)
{
    tokmap_i_thread threads[MAX_THREADS];
    const uint64_t start = tokmap_i_now_ns();
    bool failed = false;
    atomic_store(&j->next, 0);
    for (uint32_t i = 1; i < n_threads; i++)
        if (tokmap_i_thread_start(&threads[i], take_pieces, &workers[i]))
            abort();
    take_pieces(&workers[0]);
    for (uint32_t i = 1; i < n_threads; i++)
        tokmap_i_thread_join(threads[i]);
    const uint64_t ns = tokmap_i_now_ns() - start;
    for (uint32_t i = 0; i < n_threads; i++)
        failed |= workers[i].failed;
    return failed ? 0 : ns;
}

typedef struct page {
    job job;
    const char *ids_path;
} page;

/* With this many threads. */
typedef struct page_rows {
    uint32_t n_threads;
    bench_row *plain, *cold, *warm;
} page_rows;

static int write_ids(const char *path, const id_buffer *ids)
{
    bench_file file;
    if (bench_file_open(&file, path))
        return 1;
    fwrite(ids->ids, sizeof *ids->ids, ids->n, file.f);
    return bench_file_place(&file);
}

/* Reserves address space for more ids than any of our tokenizers produces, so that no buffer ever
 * moves; a page of it costs time when it is first written, which is part of the cold figure. */
static size_t room_for_ids(const bench_text *text)
{
    return 12 * text->n_bytes + 64 * text->n_pieces + (1 << 20);
}

static uint64_t pass_again(job *j, worker *workers, uint32_t n_threads, bool all, bool plain)
{
    for (uint32_t i = 0; i < n_threads; i++) {
        workers[i].ids.n = 0;
        workers[i].all = all;
        workers[i].plain = plain;
    }
    return pass(j, workers, n_threads);
}

static uint64_t warm_pass(job *j, worker *workers, uint32_t n_threads)
{
    if (n_threads > 1 && !pass_again(j, workers, n_threads, true, false))
        return 0;
    return pass_again(j, workers, n_threads, false, false);
}

static double ids_a_byte(const job *j, const worker *workers, uint32_t n_threads)
{
    size_t n = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        n += workers[i].ids.n;
    return (double)n / (double)j->text->n_bytes;
}

/* A cold pass, including making the encoders and their buffers, and a warm one: each thread has
 * encoded the whole text before. Then one that only reads and writes. */
static int measure_round(page *p, const page_rows *r)
{
    static const encoder_options options;
    const uint32_t n_threads = r->n_threads;
    worker workers[MAX_THREADS] = {{0}};
    const double n_bytes = (double)p->job.text->n_bytes * 1e3;
    const uint64_t start = tokmap_i_now_ns();
    bool made = true;
    for (uint32_t i = 0; i < n_threads; i++) {
        const size_t capacity = room_for_ids(p->job.text);
        workers[i] =
            (worker){.job = &p->job,
                     .encoder = encoder_new(p->job.tokenizer, &options),
                     .ids = {tokmap_i_big_memory_new(capacity * sizeof(uint32_t)), 0, capacity}};
        made = made && workers[i].encoder && workers[i].ids.ids;
    }
    const uint64_t making = tokmap_i_now_ns() - start;
    const uint64_t first = made ? pass(&p->job, workers, n_threads) : 0;
    int code = 0;
    if (first && p->ids_path && n_threads == 1) {
        code = write_ids(p->ids_path, &workers[0].ids);
        p->ids_path = NULL;
    }
    p->job.ids_a_byte = ids_a_byte(&p->job, workers, n_threads);
    const uint64_t second = first ? warm_pass(&p->job, workers, n_threads) : 0;
    const uint64_t third = pass_again(&p->job, workers, n_threads, false, true);
    for (uint32_t i = 0; i < n_threads; i++) {
        encoder_free(workers[i].encoder);
        tokmap_i_big_memory_free(workers[i].ids.ids, workers[i].ids.capacity * sizeof(uint32_t));
    }
    if (!second) {
        cli_warn("out of memory");
        return 1;
    }
    bench_add_value(r->cold, n_bytes / (double)(making + first));
    bench_add_value(r->warm, n_bytes / (double)second);
    bench_add_value(r->plain, n_bytes / (double)third);
    return code;
}

static bench_row *add_row(bench_report *report, const char *what, uint32_t n_threads)
{
    return bench_add_row(report, "tokenize", "MB/s", "%s, %u thread%s", what, n_threads,
                         n_threads > 1 ? "s" : "");
}

static int measure_passes(page *p, const bench_options *options, bench_report *report)
{
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    const int n_kinds = options->n_jobs > 1 ? 2 : 1;
    page_rows rows[2];
    for (int k = 0; k < n_kinds; k++) {
        const uint32_t n = k == 0 ? 1 : options->n_jobs;
        rows[k] = (page_rows){n, add_row(report, "text read and ids written", n),
                              add_row(report, "cold", n), add_row(report, "warm", n)};
    }
    for (uint32_t i = 0; i < n_rounds; i++)
        for (int k = 0; k < n_kinds; k++)
            if (measure_round(p, &rows[k]))
                return 1;
    for (int k = 0; k < n_kinds; k++) {
        bench_set_rate_limit(rows[k].cold, rows[k].plain, 1);
        bench_set_rate_limit(rows[k].warm, rows[k].plain, 1);
    }
    if (n_kinds == 2) {
        bench_row *row =
            bench_add_ratio(report, rows[1].warm, rows[0].warm, "all threads / one, warm");
        bench_set_goal(row, BENCH_AT_LEAST, 0.95 * rows[1].n_threads);
    }
    return 0;
}

static int run_tokenize(const bench_options *options, bench_report *report)
{
    const tokenizer_choice choice = {options->tokenizer, options->pattern, NULL};
    tokenizer_file file;
    bench_text text = {0};
    if (!options->tokenizer || !options->text) {
        cli_warn("tokenize needs --tokenizer and --text");
        return 2;
    }
    if (options->n_jobs > MAX_THREADS) {
        cli_warn("at most %d threads", MAX_THREADS);
        return 2;
    }
    const uint64_t start = tokmap_i_now_ns();
    if (tokenizer_choice_open(&file, &choice) != CLI_OK)
        return 1;
    bench_add_value(bench_add_row(report, "tokenize", "ms", "loading the vocabulary"),
                    (double)(tokmap_i_now_ns() - start) / 1e6);
    int code = bench_text_load(&text, options->text, file.tokenizer);
    if (code == 0) {
        page p = {.job = {.tokenizer = file.tokenizer, .text = &text}, .ids_path = options->ids};
        code = measure_passes(&p, options, report);
    }
    bench_text_free(&text);
    tokenizer_file_close(&file);
    return code;
}

const bench_page tokenize_page = {
    .name = "tokenize",
    .help = "text in memory to ids, cold and warm (needs --tokenizer and --text)",
    .takes = {"tokenizer", "pattern", "text", "ids", "jobs"},
    .run = run_tokenize,
};
