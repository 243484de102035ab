/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - the pages that take a corpus and a tokenizer. tokenize: text in memory to ids in memory,
 * cold, warm, and with several threads; compared with what cannot be avoided: reading the text and
 * writing as many ids. pack: tokmap pack from end to end, against its slowest stage alone, or the
 * work of all if that is more than the processors can do. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "commands/text/text_commands.h"
#include "core/bench_file.h"
#include "core/made_text.h"
#include "corpus/corpus.h"
#include "pages/pages.h"
#include "system/platform.h"
#include "system/platform_memory.h"
#include "tokenizer/choice/tokenizer_choice.h"

enum {
    TOKENIZE_ROUNDS = 9,
    PACK_ROUNDS = 5,
    SCRATCH_BYTES = 16384,
    MADE_BYTES = 64 << 20,
    N_STAGES = 3 /* of pack */
};

/* ---- A corpus in memory ---- */

typedef struct bench_text {
    corpus_batch *batches; /* batches of about 128 KiB, cut where the tokenizer allows it */
    size_t n_batches, n_ends;
    uint64_t n_bytes;
} bench_text;

/* The options of a page, with a text that is made if none was named. */
typedef struct with_text {
    bench_options options;
    path_text path;
} with_text;

static const bench_options *add_text(const bench_options *options, with_text *with)
{
    if (!options->tokenizer)
        bench_fail("tokenize and pack need --tokenizer");
    if (options->text)
        return options;
    with->options = *options;
    with->path = path_of(options->dir, "/text.jsonl");
    with->options.text = with->path.s;
    made_text_write(with->path.s, MADE_BYTES);
    return &with->options;
}

/* Opens the tokenizer of --tokenizer and --pattern. */
static tokenizer_file open_tokenizer(const bench_options *options)
{
    const tokenizer_choice choice = {options->tokenizer, options->pattern, NULL};
    tokenizer_file file;
    if (tokenizer_choice_open(&file, &choice) != CLI_OK)
        _exit(1); /* the error was printed */
    return file;
}

/* Reads a file as `tokmap pack` does. */
static bench_text load_text(const char *path)
{
    const corpus_options options = {.batch_bytes = 128 << 10};
    failure err;
    bench_text text = {0};
    corpus *c = corpus_open(&path, 1, &options, NULL, &err);
    int got = c ? 1 : -1;
    while (got > 0) {
        text.batches = realloc(text.batches, (text.n_batches + 1) * sizeof *text.batches);
        if (!text.batches)
            bench_fail("out of memory");
        corpus_batch *b = &text.batches[text.n_batches++];
        *b = (corpus_batch){0};
        got = corpus_read(c, b, &err);
        text.n_bytes += b->n_bytes;
        text.n_ends += b->n_ends;
    }
    if (got < 0)
        bench_fail("%s", err.text);
    corpus_close(c);
    return text;
}

static void free_text(bench_text *text)
{
    for (size_t i = 0; i < text->n_batches; i++)
        corpus_batch_free(&text->batches[i]);
    free(text->batches);
}

/* Appends the ids of a batch, and where each document ends in them to ends[*n_ends ...], unless
 * `ends` is NULL. */
static void encode_batch(encoder *e, const corpus_batch *b, id_buffer *ids, size_t *ends,
                         size_t *n_ends)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        const size_t end = b->ends[i].at;
        if (end > at && encoder_encode(e, b->text + at, end - at, ids))
            bench_fail("out of memory");
        if (ends && !b->ends[i].input)
            ends[(*n_ends)++] = ids->n;
        at = end;
    }
}

/* ---- Tokenizing ---- */

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

/* Copies at most SCRATCH_BYTES. */
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
                encode_batch(w->encoder, &j->text.batches[i], &w->ids, NULL, NULL);
        }
    }
    return NULL;
}

/* Encodes the text once, or with `all` once in each thread. Returns the MB/s of one text, timed
 * since `start`. */
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

/* The figures of each number of threads. */
enum {
    PLAIN,
    COLD,
    WARM,
    N_FIGURES
};

/* Measures a cold pass, which includes making the encoders and buffers with room for the ids of any
 * text; a warm one, after each thread has encoded the whole text; and one that only reads and
 * writes. */
static void measure_round(job *j, const tokenizer *t, bench_row *const *r, const char *ids_path)
{
    static const encoder_options options;
    const size_t capacity = 12 * j->text.n_bytes + 64 * j->text.n_ends + (1 << 20);
    const uint64_t start = tokmap_i_now_ns();
    size_t n_ids = 0;
    output_file file;
    for (uint32_t i = 0; i < j->n_threads; i++) {
        worker *w = &j->workers[i];
        *w = (worker){encoder_new(t, &options),
                      {tokmap_i_big_memory_new(capacity * sizeof(uint32_t)), 0, capacity}};
        if (!w->encoder || !w->ids.ids)
            bench_fail("out of memory");
    }
    bench_add_value(r[COLD], pass(j, start, false, false));
    const id_buffer *ids = &j->workers[0].ids; /* stored as in memory: little-endian */
    if (ids_path && (bench_file_open(&file, ids_path) ||
                     bench_file_write(&file, ids->ids, ids->n * sizeof *ids->ids)))
        _exit(1); /* the error was printed */
    for (uint32_t i = 0; i < j->n_threads; i++)
        n_ids += j->workers[i].ids.n;
    j->ids_a_byte = (double)n_ids / (double)j->text.n_bytes;
    if (j->n_threads > 1)
        pass(j, 0, true, false);
    bench_add_value(r[WARM], pass(j, tokmap_i_now_ns(), false, false));
    bench_add_value(r[PLAIN], pass(j, tokmap_i_now_ns(), false, true));
    for (uint32_t i = 0; i < j->n_threads; i++) {
        encoder_free(j->workers[i].encoder);
        tokmap_i_big_memory_free(j->workers[i].ids.ids, capacity * sizeof(uint32_t));
    }
}

void bench_tokenize(const bench_options *given, bench_report *report)
{
    static job j;
    with_text with;
    const bench_options *options = add_text(given, &with);
    const uint32_t n_rounds = bench_rounds(options, TOKENIZE_ROUNDS),
                   n_kinds = options->n_threads > 1 ? 2 : 1;
    static const char *const names[N_FIGURES] = {"text read and ids written", "cold", "warm"};
    const uint32_t n_threads[] = {1, (uint32_t)options->n_threads};
    bench_row *rows[2][N_FIGURES];
    const uint64_t start = tokmap_i_now_ns();
    tokenizer_file file = open_tokenizer(options);
    bench_add_value(bench_add_row(report, "ms", "loading the vocabulary"),
                    bench_ns_since(start) / 1e6);
    j.text = load_text(options->text);
    for (uint32_t i = 0; i < n_kinds * N_FIGURES; i++) {
        const uint32_t n = n_threads[i / N_FIGURES];
        rows[i / N_FIGURES][i % N_FIGURES] = bench_add_row(
            report, "MB/s", "%s, %u thread%s", names[i % N_FIGURES], n, n > 1 ? "s" : "");
    }
    for (uint32_t i = 0; i < n_rounds * n_kinds; i++) {
        j.n_threads = n_threads[i % n_kinds];
        measure_round(&j, file.tokenizer, rows[i % n_kinds], i == 0 ? options->ids : NULL);
    }
    for (uint32_t k = 0; k < n_kinds; k++) {
        bench_set_limit(rows[k][COLD], rows[k][PLAIN], 1);
        bench_set_limit(rows[k][WARM], rows[k][PLAIN], 1);
    }
    if (n_kinds == 2)
        bench_set_goal(
            bench_add_ratio(report, rows[1][WARM], rows[0][WARM], "all threads / one, warm"),
            BENCH_AT_LEAST, 0.95 * n_threads[1]);
    free_text(&j.text);
    tokenizer_file_close(&file);
}

/* ---- Packing ---- */

typedef struct subject {
    const bench_options *options;
    tokenizer_file file;
    bench_text text; /* in memory, so that encoding alone waits for nothing */
    id_buffer ids;   /* the output of encoding and the input of writing */
    size_t *ends;    /* of documents, in ids */
    size_t n_documents, n_jobs;
    path_text prefix;
} subject;

/* Each stage does all of its work once. */

static void take_documents(subject *s)
{
    const corpus_options options = {.reader.window.read_ahead = true};
    failure err;
    corpus_batch batch = {0};
    corpus *c = corpus_open(&s->options->text, 1, &options, NULL, &err);
    int got = c ? 1 : -1;
    while (got > 0)
        got = corpus_read(c, &batch, &err);
    if (got < 0)
        bench_fail("%s", err.text);
    corpus_close(c);
    corpus_batch_free(&batch);
}

/* Loads the vocabulary and encodes, as a thread of a pack does with its share: with a new encoder,
 * whose cache of words is empty. */
static void encode_all(subject *s)
{
    static const encoder_options options;
    tokenizer_file file = open_tokenizer(s->options);
    s->ids.n = 0;
    s->n_documents = 0;
    for (size_t k = 0, i = 0; k < s->n_jobs; k++) {
        encoder *e = encoder_new(file.tokenizer, &options);
        if (!e)
            bench_fail("out of memory");
        for (; i < s->text.n_batches * (k + 1) / s->n_jobs; i++)
            encode_batch(e, &s->text.batches[i], &s->ids, s->ends, &s->n_documents);
        encoder_free(e);
    }
    tokenizer_file_close(&file);
}

static void write_ids(subject *s)
{
    tokmap_writer_options options = load_data_writer_options();
    tokmap_writer *w;
    options.vocab_size = tokenizer_get_info(s->file.tokenizer)->vocab_size;
    bench_check(tokmap_writer_open(&w, s->prefix.s, &options, &bench_error));
    for (size_t i = 0, at = 0; i < s->n_documents; at = s->ends[i++]) {
        bench_check(tokmap_writer_append(w, s->ids.ids + at, s->ends[i] - at, &bench_error));
        bench_check(tokmap_writer_end_document(w, &bench_error));
    }
    load_data_finish(w);
}

static void pack_text(subject *s)
{
    char threads[24];
    const char *words[16] = {"pack", "-q", "-o", s->prefix.s, "-j", threads, "--tokenizer"};
    int argc = 7;
    snprintf(threads, sizeof threads, "%zu", s->n_jobs);
    words[argc++] = s->options->tokenizer;
    if (s->options->pattern) {
        words[argc++] = "--pattern";
        words[argc++] = s->options->pattern;
    }
    words[argc++] = s->options->text;
    optind = 0; /* makes glibc's getopt start again */
    if (pack_command(argc, (char **)(uintptr_t)words) != CLI_OK) /* it does not change them */
        _exit(1);                                                /* the error was printed */
}

/* Removing the dataset of the stage before is not part of a stage. */
static void remove_dataset(const subject *s)
{
    tokmap_i_file_remove(path_of(s->prefix.s, ".tmi").s);
    tokmap_i_file_remove(path_of(s->prefix.s, ".bin").s);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void bench_pack(const bench_options *given, bench_report *report)
{
    with_text with;
    const bench_options *options = add_text(given, &with);
    enum {
        DOCUMENTS,
        ENCODING,
        WRITING,
        ALL = N_STAGES,
        N_BOUNDS
    };
    static void (*const stages[N_STAGES])(subject *) = {take_documents, encode_all, write_ids};
    const uint32_t n_processors = tokmap_i_n_processors();
    const size_t n_jobs = options->n_threads ? (size_t)options->n_threads : 1;
    const uint64_t before_loading = tokmap_i_thread_cpu_ns();
    bench_row *bounds[N_BOUNDS], *whole, *main_thread, *per_core;
    int least = DOCUMENTS;
    subject s = {.options = options,
                 .n_jobs = n_jobs,
                 .prefix = load_data_name(options, 0),
                 .file = open_tokenizer(options)};
    const uint64_t loading = tokmap_i_thread_cpu_ns() - before_loading; /* of the vocabulary */
    s.text = load_text(options->text);
    s.ends = bench_memory((s.text.n_ends + 1) * sizeof *s.ends);
    encode_all(&s); /* so that its memory is allocated */
    bounds[DOCUMENTS] = bench_add_row(report, "MB/s", "taking documents out of the file alone");
    bounds[ENCODING] = bench_add_row(report, "MB/s", "encoding alone, %zu x one thread", n_jobs);
    bounds[WRITING] = bench_add_row(report, "MB/s", "writing alone");
    bounds[ALL] = bench_add_row(report, "MB/s", "all stages, %u busy processors", n_processors);
    whole = bench_add_row(report, "MB/s", "tokmap pack, from end to end");
    per_core = bench_add_row(report, "tokens/s", "tokmap pack, a core of %zu", n_jobs);
    main_thread = bench_add_row(report, "MB/s", "its main thread, of which there is one");
    for (uint32_t i = 0; i < bench_rounds(options, PACK_ROUNDS); i++) {
        remove_dataset(&s);
        const double mb = (double)s.text.n_bytes / 1e6, before = processor_seconds();
        uint64_t start;
        for (int k = 0; k < N_STAGES; k++) {
            start = tokmap_i_now_ns();
            stages[k](&s);
            bench_add_value(bounds[k], mb * 1e9 / bench_ns_since(start) *
                                           (k == ENCODING ? (double)n_jobs : 1));
        }
        bench_add_value(bounds[ALL], mb * n_processors / (processor_seconds() - before));
        remove_dataset(&s);
        start = tokmap_i_now_ns();
        const uint64_t used = tokmap_i_thread_cpu_ns() + loading;
        pack_text(&s);
        const double ns = bench_ns_since(start);
        bench_add_value(whole, mb * 1e9 / ns);
        bench_add_value(per_core, (double)s.ids.n * 1e9 / ns / (double)n_jobs);
        const double own = (double)tokmap_i_thread_cpu_ns() - (double)used;
        bench_add_value(main_thread, mb * 1e9 / MAX(own, 1e3)); /* of a short text it is noise */
    }
    for (int k = 1; k < N_BOUNDS; k++)
        if (bench_median(bounds[k]) < bench_median(bounds[least]))
            least = k;
    bench_set_limit(whole, bounds[least], 1);
    bench_set_goal(
        bench_add_ratio(report, whole, bounds[least], "tokmap pack / %s", bounds[least]->name),
        BENCH_AT_LEAST, 0.95);
    free_text(&s.text);
    id_buffer_free(&s.ids);
    free(s.ends);
    tokenizer_file_close(&s.file);
}
