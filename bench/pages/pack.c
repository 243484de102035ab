/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - tokmap pack from end to end, against each of its stages alone. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "core/bench_text.h"
#include "corpus/input.h"
#include "corpus/reader.h"
#include "pages/pages.h"

enum {
    ROUNDS = 5,
    READ_BYTES = 1 << 18,
    N_STAGES = 4 /* besides the whole command */
};

typedef struct subject {
    const bench_options *options;
    tokenizer_file file;
    bench_text text; /* in memory, so that encoding alone waits for nothing */
    id_buffer ids;   /* the output of encoding and the input of writing */
    size_t *ends;    /* of documents, in ids */
    size_t n_documents;
    path_text prefix;
} subject;

/* ---- Stages: each does all of its work once ---- */

/* Files that are read by column are decoded, by one thread. Of others the reader takes the plain
 * bytes. */
static void read_text(subject *s)
{
    static uint8_t buffer[READ_BYTES];
    const corpus_options options = corpus_options_complete(&(corpus_options){0});
    const input_source source = {.path = s->options->text};
    reader_text text;
    failure err;
    reader *r = reader_open(&source, &options, -1, &err);
    reader_result got = r ? reader_next(r, &text, &err) : READER_FAILED;
    const bool columns = got != READER_FAILED &&
                         (reader_format(r) == CORPUS_PARQUET || reader_format(r) == CORPUS_ARROW);
    while (columns && got > READER_END)
        got = reader_next(r, &text, &err);
    if (got == READER_FAILED)
        bench_fail("%s", err.text);
    reader_close(r);
    if (columns)
        return;
    input *in = input_open(s->options->text, &err);
    ssize_t n = in ? 1 : -1;
    while (n > 0)
        n = input_read(in, buffer, sizeof buffer, &err);
    if (n < 0)
        bench_fail("%s", err.text);
    input_close(in);
}

static void take_documents(subject *s)
{
    const corpus_options options = {.read_ahead = true, .n_decoders = 1};
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

static void encode_text(subject *s)
{
    static const encoder_options options;
    encoder *e = encoder_new(s->file.tokenizer, &options);
    if (!e)
        bench_fail("out of memory");
    s->ids.n = 0;
    s->n_documents = 0;
    for (size_t i = 0; i < s->text.n_batches; i++)
        bench_text_encode(e, &s->text.batches[i], &s->ids, s->ends, &s->n_documents);
    encoder_free(e);
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
    const char *words[16] = {"pack",      "-q", "--force", "-o",
                             s->prefix.s, "-j", threads,   "--tokenizer"};
    int argc = 8;
    snprintf(threads, sizeof threads, "%" PRIu64, s->options->n_jobs ? s->options->n_jobs : 1);
    words[argc++] = s->options->tokenizer;
    if (s->options->pattern) {
        words[argc++] = "--pattern";
        words[argc++] = s->options->pattern;
    }
    words[argc++] = s->options->text;
    optind = 0; /* makes glibc's getopt start again */
    if (pack_command(argc, (char **)(uintptr_t)words) != CLI_OK) /* it does not change them */
        _exit(1);                                                /* it was printed */
}

/* ---- Page ---- */

void bench_pack(const bench_options *options, bench_report *report)
{
    static const struct {
        const char *name;
        void (*run)(subject *s);
    } stages[N_STAGES + 1] = {{"reading and decompressing alone", read_text},
                              {"and taking the documents out of it", take_documents},
                              {"encoding alone, one thread", encode_text},
                              {"writing alone", write_ids},
                              {"tokmap pack, from end to end", pack_text}};
    bench_row *rows[N_STAGES + 1];
    int least = 0;
    subject s = {.options = options,
                 .prefix = load_data_name(options, 0),
                 .file = bench_text_tokenizer(options)};
    s.text = bench_text_load(options->text, s.file.tokenizer);
    s.ends = bench_memory((s.text.n_ends + 1) * sizeof *s.ends);
    encode_text(&s); /* so that it has its memory */
    for (int k = 0; k <= N_STAGES; k++)
        rows[k] = bench_add_row(report, "MB/s", "%s", stages[k].name);
    bench_row *ratio = bench_add_row(report, "x", "tokmap pack / its slowest stage");
    if (options->n_jobs <= 1) /* the stages have one thread each */
        bench_set_goal(ratio, BENCH_AT_LEAST, 0.8);
    for (uint32_t i = 0; i < bench_rounds(options, ROUNDS); i++) {
        double slowest = 0, speed = 0;
        for (int k = 0; k <= N_STAGES; k++) {
            const uint64_t start = tokmap_i_now_ns();
            stages[k].run(&s);
            speed = (double)s.text.n_bytes * 1e3 / bench_ns_since(start);
            bench_add_value(rows[k], speed);
            if (k < N_STAGES && (slowest == 0 || speed < slowest))
                slowest = speed;
        }
        bench_add_value(ratio, speed / slowest);
    }
    for (int k = 1; k < N_STAGES; k++)
        if (bench_median(rows[k]) < bench_median(rows[least]))
            least = k;
    bench_set_limit(rows[N_STAGES], rows[least], 1);
    bench_text_free(&s.text);
    id_buffer_free(&s.ids);
    free(s.ends);
    tokenizer_file_close(&s.file);
}
