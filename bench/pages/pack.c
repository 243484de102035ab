/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - tokmap pack from end to end, against each of its stages alone. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "commands/commands.h"
#include "corpus/corpus.h"
#include "corpus/input.h"
#include "corpus/reader.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokmap_writer.h"

enum {
    ROUNDS = 5,
    READ_BYTES = 1 << 18,
    N_STAGES = 4 /* besides the whole command */
};

/* The ids of the documents in memory: the output of encoding and the input of writing. */
typedef struct packed {
    id_buffer ids;
    size_t *ends; /* of documents, in ids */
    size_t n_documents, capacity;
    uint64_t text_bytes;
} packed;

typedef struct subject {
    const bench_options *options;
    tokenizer_file file;
    corpus_batch *batches; /* the whole text, for encoding alone */
    size_t n_batches;
    packed packed;
    char prefix[4096];
} subject;

static int print_failure(const char *text)
{
    cli_warn("%s", text);
    return 1;
}

/* ---- Stages: each does all of its work once; 0, or a message ---- */

/* For plain bytes, which the reader takes as they are read. */
static int decompress_bytes(const char *name)
{
    static uint8_t buffer[READ_BYTES];
    input_error err;
    input *in = input_open(name, &err);
    ssize_t n = in ? 1 : -1;
    while (n > 0)
        n = input_read(in, buffer, sizeof buffer, &err);
    if (in)
        input_close(in);
    return n < 0 ? print_failure(err.text) : 0;
}

/* For files that are read by column; one thread. */
static int decode_column(reader *r)
{
    reader_text text;
    corpus_error err;
    reader_result got;
    do
        got = reader_next(r, &text, &err);
    while (got > READER_END);
    return got == READER_FAILED ? print_failure(err.text) : 0;
}

static int read_text(subject *s)
{
    static const corpus_options options;
    const input_source source = {.path = s->options->text};
    reader_text text;
    corpus_error err;
    reader *r = reader_open(&source, &options, -1, &err);
    if (!r || reader_next(r, &text, &err) == READER_FAILED) {
        reader_close(r);
        return print_failure(err.text);
    }
    const corpus_format format = reader_format(r);
    const bool columns = format == CORPUS_PARQUET || format == CORPUS_ARROW;
    const int code = columns ? decode_column(r) : 0;
    reader_close(r);
    return columns ? code : decompress_bytes(s->options->text);
}

static corpus *open_corpus(subject *s, corpus_error *err)
{
    const corpus_options options = {.read_ahead = true, .n_decoders = 1};
    return corpus_open(&s->options->text, 1, &options, NULL, err);
}

static int take_documents(subject *s)
{
    corpus_error err;
    corpus_batch batch = {0};
    corpus *c = open_corpus(s, &err);
    int got = c ? 1 : -1;
    while (got > 0)
        got = corpus_read(c, &batch, &err);
    if (c)
        corpus_close(c);
    corpus_batch_free(&batch);
    return got < 0 ? print_failure(err.text) : 0;
}

static bool end_document(packed *p)
{
    if (p->n_documents == p->capacity) {
        const size_t capacity = p->capacity * 2 + 1024;
        size_t *ends = realloc(p->ends, capacity * sizeof *ends);
        if (!ends)
            return false;
        p->ends = ends;
        p->capacity = capacity;
    }
    p->ends[p->n_documents++] = p->ids.n;
    return true;
}

static bool encode_batch(encoder *e, const corpus_batch *b, packed *p)
{
    bool first = !b->continues;
    size_t at = 0;
    for (size_t i = 0; i <= b->n_ends; i++) {
        const size_t end = i < b->n_ends ? b->ends[i].at : b->n_bytes;
        if (end > at && encoder_encode(e, b->text + at, end - at, first ? TEXT_FIRST : 0, &p->ids))
            return false;
        if (i < b->n_ends && !b->ends[i].input && !end_document(p))
            return false;
        p->text_bytes += end - at;
        first = first || i < b->n_ends;
        at = end;
    }
    return true;
}

static int encode_text(subject *s)
{
    static const encoder_options options;
    packed *p = &s->packed;
    encoder *e = encoder_new(s->file.tokenizer, &options);
    bool fine = e != NULL;
    p->ids.n = 0;
    p->n_documents = 0;
    p->text_bytes = 0;
    for (size_t i = 0; fine && i < s->n_batches; i++)
        fine = encode_batch(e, &s->batches[i], p);
    encoder_free(e);
    return fine ? 0 : print_failure("out of memory");
}

static int write_ids(subject *s)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = tokenizer_vocab_size(s->file.tokenizer),
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = 1};
    tokmap_writer *w = NULL;
    tokmap_error err;
    tokmap_status status = tokmap_writer_open(&w, s->prefix, &options, &err);
    for (size_t i = 0, at = 0; !status && i < s->packed.n_documents; i++) {
        status = tokmap_writer_append(w, s->packed.ids.ids + at, s->packed.ends[i] - at, &err);
        if (!status)
            status = tokmap_writer_end_document(w, &err);
        at = s->packed.ends[i];
    }
    if (!status)
        status = tokmap_writer_finish(w, &err);
    tokmap_writer_close(w);
    return status ? print_failure(err.text) : 0;
}

static int pack_text(subject *s)
{
    char threads[16];
    const char *words[16] = {"pack",    "-q", "--force", "-o",
                             s->prefix, "-j", threads,   "--tokenizer"};
    int argc = 8;
    snprintf(threads, sizeof threads, "%u", s->options->n_jobs ? s->options->n_jobs : 1);
    words[argc++] = s->options->tokenizer;
    if (s->options->pattern) {
        words[argc++] = "--pattern";
        words[argc++] = s->options->pattern;
    }
    words[argc++] = s->options->text;
    optind = 0; /* makes glibc's getopt start again */
    return pack_command(argc, (char **)(uintptr_t)words) != CLI_OK; /* it does not change them */
}

/* ---- Page ---- */

/* Keeps the whole text in memory, so that encoding waits for nothing. */
static int keep_text(subject *s)
{
    corpus_error err;
    corpus *c = open_corpus(s, &err);
    if (!c)
        return print_failure(err.text);
    int got;
    do {
        corpus_batch *batches = realloc(s->batches, (s->n_batches + 1) * sizeof *batches);
        if (!batches) {
            corpus_close(c);
            return print_failure("out of memory");
        }
        s->batches = batches;
        batches[s->n_batches] = (corpus_batch){0};
        got = corpus_read(c, &batches[s->n_batches++], &err);
    } while (got > 0);
    corpus_close(c);
    return got < 0 ? print_failure(err.text) : 0;
}

static int (*const stages[N_STAGES + 1])(subject *s) = {read_text, take_documents, encode_text,
                                                        write_ids, pack_text};

static int measure_stages(subject *s, bench_report *report)
{
    static const char *const names[N_STAGES + 1] = {
        "reading and decompressing alone", "and taking the documents out of it",
        "encoding alone, one thread", "writing alone", "tokmap pack, from end to end"};
    bench_row *rows[N_STAGES + 1];
    const uint32_t n_rounds = bench_rounds(s->options, ROUNDS);
    if (encode_text(s)) /* the number of bytes, and ids to write */
        return 1;
    for (int k = 0; k <= N_STAGES; k++)
        rows[k] = bench_add_row(report, "pack", "MB/s", "%s", names[k]);
    bench_row *ratio = bench_add_row(report, "pack", "x", "tokmap pack / its slowest stage");
    if (s->options->n_jobs <= 1) /* the stages have one thread each */
        bench_set_goal(ratio, BENCH_AT_LEAST, 0.8);
    for (uint32_t i = 0; i < n_rounds; i++) {
        double slowest = 0, speed = 0;
        for (int k = 0; k <= N_STAGES; k++) {
            const uint64_t start = tokmap_i_now_ns();
            if (stages[k](s))
                return 1;
            speed = (double)s->packed.text_bytes * 1e3 / (double)(tokmap_i_now_ns() - start);
            bench_add_value(rows[k], speed);
            if (k < N_STAGES && (slowest == 0 || speed < slowest))
                slowest = speed;
        }
        bench_add_value(ratio, speed / slowest);
    }
    int least = 0;
    for (int k = 1; k < N_STAGES; k++)
        if (bench_median(rows[k]) < bench_median(rows[least]))
            least = k;
    bench_set_rate_limit(rows[N_STAGES], rows[least], 1);
    return 0;
}

static int run_pack(const bench_options *options, bench_report *report)
{
    const tokenizer_choice choice = {options->tokenizer, options->pattern, NULL};
    subject s = {.options = options};
    if (!options->tokenizer || !options->text) {
        cli_warn("pack needs --tokenizer and --text");
        return 2;
    }
    if (tokenizer_choice_open(&s.file, &choice) != CLI_OK)
        return 1;
    snprintf(s.prefix, sizeof s.prefix, "%s/pack", options->dir);
    int code = keep_text(&s);
    if (!code)
        code = measure_stages(&s, report);
    for (size_t i = 0; i < s.n_batches; i++)
        corpus_batch_free(&s.batches[i]);
    free(s.batches);
    id_buffer_free(&s.packed.ids);
    free(s.packed.ends);
    tokenizer_file_close(&s.file);
    return code;
}

const bench_page pack_page = {
    .name = "pack",
    .help = "a corpus to a dataset, and each stage of it alone (needs the same)",
    .takes = {"tokenizer", "pattern", "text", "jobs"},
    .run = run_pack,
};
