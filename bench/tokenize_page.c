/* tokenize_page.c - text in memory to ids in memory: cold, warm, and with several threads. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_text.h"
#include "cli.h"
#include "tokenizer/big_memory.h"
#include "tokenizer_file.h"

enum {
    ROUNDS = 9,
    MAX_THREADS = 64,
    PIECES_AT_ONCE = 16
};

typedef struct job {
    const tokenizer *tokenizer;
    const bench_text *text;
    atomic_size_t next; /* piece */
} job;

/* A thread with its encoder and its ids, on cache lines of its own. */
typedef struct worker {
    _Alignas(128) job *job;
    encoder *encoder;
    id_buffer ids;
    bool all, failed; /* all: takes every piece, whatever the others take */
} worker;

static void *encode_pieces(void *arg)
{
    worker *w = arg;
    const bench_text *text = w->job->text;
    for (size_t n_own = 0;; n_own += PIECES_AT_ONCE) {
        const size_t from = w->all ? n_own : atomic_fetch_add(&w->job->next, PIECES_AT_ONCE);
        if (from >= text->n_pieces || w->failed)
            return NULL;
        for (size_t i = from; i < from + PIECES_AT_ONCE && i < text->n_pieces; i++) {
            const bench_piece *p = &text->pieces[i];
            w->failed |= encoder_encode(w->encoder, text->bytes + p->start, p->n_bytes,
                                        p->first ? TEXT_FIRST : 0, &w->ids) != TOKENIZE_OK;
        }
    }
}

/* Encodes all once; nanoseconds, or 0 when memory is short. The calling thread works too. */
static uint64_t pass(job *j, worker *workers, uint32_t n_threads)
{
    pthread_t threads[MAX_THREADS];
    const uint64_t start = bench_now_ns();
    bool failed = false;
    atomic_store(&j->next, 0);
    for (uint32_t i = 1; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, encode_pieces, &workers[i]))
            abort();
    encode_pieces(&workers[0]);
    for (uint32_t i = 1; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    const uint64_t ns = bench_now_ns() - start;
    for (uint32_t i = 0; i < n_threads; i++)
        failed |= workers[i].failed;
    return failed ? 0 : ns;
}

typedef struct page {
    job job;
    const char *ids_path;
    bench_row *cold[2], *warm[2]; /* with one thread, and with all that were asked for */
} page;

static int write_ids(const char *path, const id_buffer *ids)
{
    FILE *f = fopen(path, "wb");
    const bool written = f && fwrite(ids->ids, sizeof *ids->ids, ids->n, f) == ids->n;
    if (!f || fclose(f) != 0 || !written) {
        fprintf(stderr, "tokbench: %s: %s\n", path, strerror(errno));
        return 1;
    }
    return 0;
}

/* Address space for more ids than any of our tokenizers gives, so that no buffer is ever moved; a
 * page of it costs something when it is first written, and that is in the cold figure. */
static size_t room_for_ids(const bench_text *text)
{
    return 12 * text->n_bytes + 64 * text->n_pieces + (1 << 20);
}

static void take_all(worker *workers, uint32_t n_threads, bool all)
{
    for (uint32_t i = 0; i < n_threads; i++) {
        workers[i].ids.n = 0;
        workers[i].all = all;
    }
}

static uint64_t warm_pass(job *j, worker *workers, uint32_t n_threads)
{
    take_all(workers, n_threads, true);
    if (n_threads > 1 && !pass(j, workers, n_threads))
        return 0;
    take_all(workers, n_threads, false);
    return pass(j, workers, n_threads);
}

/* A cold pass, making the encoders and their buffers included, and a warm one: each thread has had
 * the whole text before. */
static int round_with(page *p, uint32_t n_threads, bench_row *cold, bench_row *warm)
{
    static const encoder_options options;
    worker workers[MAX_THREADS] = {{0}};
    const double n_bytes = (double)p->job.text->n_bytes * 1e3;
    const uint64_t start = bench_now_ns();
    bool made = true;
    for (uint32_t i = 0; i < n_threads; i++) {
        const size_t capacity = room_for_ids(p->job.text);
        workers[i] = (worker){&p->job,
                              encoder_new(p->job.tokenizer, &options),
                              {big_memory_new(capacity * sizeof(uint32_t)), 0, capacity},
                              false,
                              false};
        made = made && workers[i].encoder && workers[i].ids.ids;
    }
    const uint64_t making = bench_now_ns() - start;
    const uint64_t first = made ? pass(&p->job, workers, n_threads) : 0;
    int code = 0;
    if (first && p->ids_path && n_threads == 1) {
        code = write_ids(p->ids_path, &workers[0].ids);
        p->ids_path = NULL;
    }
    const uint64_t second = first ? warm_pass(&p->job, workers, n_threads) : 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        encoder_free(workers[i].encoder);
        big_memory_free(workers[i].ids.ids, workers[i].ids.capacity * sizeof(uint32_t));
    }
    if (!second) {
        fputs("tokbench: out of memory\n", stderr);
        return 1;
    }
    bench_add_value(cold, n_bytes / (double)(making + first));
    bench_add_value(warm, n_bytes / (double)second);
    return code;
}

static bench_row *add_row(bench_report *report, const char *what, uint32_t n_threads)
{
    char name[80];
    snprintf(name, sizeof name, "%s, %u thread%s", what, n_threads, n_threads > 1 ? "s" : "");
    return bench_add_row(report, "tokenize", name, "MB/s");
}

static int measure(page *p, const bench_options *options, bench_report *report)
{
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    const uint32_t n_threads[2] = {1, options->n_jobs};
    const int n_kinds = options->n_jobs > 1 ? 2 : 1;
    for (int k = 0; k < n_kinds; k++) {
        p->cold[k] = add_row(report, "cold", n_threads[k]);
        p->warm[k] = add_row(report, "warm", n_threads[k]);
    }
    for (uint32_t i = 0; i < n_rounds; i++)
        for (int k = 0; k < n_kinds; k++)
            if (round_with(p, n_threads[k], p->cold[k], p->warm[k]))
                return 1;
    if (n_kinds == 2) {
        bench_row *row = bench_add_ratio(report, p->warm[1], p->warm[0], "all threads / one, warm");
        bench_set_goal(row, BENCH_AT_LEAST, 0.95 * n_threads[1]);
    }
    return 0;
}

int tokenize_page(const bench_options *options, bench_report *report)
{
    const tokenizer_choice choice = {options->tokenizer, options->pattern, NULL};
    tokenizer_file file;
    bench_text text = {0};
    if (!options->tokenizer || !options->text) {
        fputs("tokbench: tokenize needs --tokenizer and --text\n", stderr);
        return 2;
    }
    if (options->n_jobs > MAX_THREADS) {
        fprintf(stderr, "tokbench: at most %d threads\n", MAX_THREADS);
        return 2;
    }
    cli_begin("tokenize");
    const uint64_t start = bench_now_ns();
    if (tokenizer_file_open(&file, &choice) != CLI_OK)
        return 1;
    bench_add_value(bench_add_row(report, "tokenize", "loading the vocabulary", "ms"),
                    (double)(bench_now_ns() - start) / 1e6);
    int code = bench_text_load(&text, options->text, file.tokenizer);
    if (code == 0) {
        page p = {.job = {.tokenizer = file.tokenizer, .text = &text}, .ids_path = options->ids};
        code = measure(&p, options, report);
    }
    bench_text_free(&text);
    tokenizer_file_close(&file);
    return code;
}
