/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - looking for n-grams of examples in a dataset, with the late columns that this writes,
 * and for documents with the same tokens. One thread. */
#include <stdlib.h>

#include "base/hash.h"
#include "cli/cli.h"
#include "pages/pages.h"
#include "scan/duplicates.h"
#include "scan/scan.h"
#include "system/platform.h"

enum {
    N = 13,
    EXAMPLE_TOKENS = 1000, /* most of them random, so that few are found */
    FOUND_EVERY = 2000,    /* examples of which one has tokens of the dataset */
    N_COLUMNS = 3,
    N_SIZES = 3
};

static const struct {
    uint32_t n_ngrams;
    const char *name;
} sizes[N_SIZES] = {{100000, "10^5"}, {1000000, "10^6"}, {10000000, "10^7"}};

static const struct {
    const char *name;
    uint32_t vocab_size;
    double goal; /* millions of tokens in a second, with the most n-grams */
} widths[] = {{"16-bit tokens", LOAD_DATA_VOCABULARY, 100}, {"32-bit tokens", 100000, 90}};

typedef struct subject {
    tokmap_dataset *ds;
    tokmap_dataset_info info;
} subject;

/* Copies the first tokens of a document. */
static void read_ids(const subject *s, uint64_t document, uint32_t *ids, uint32_t n)
{
    uint32_t wide[2 * N];
    tokmap_document d;
    tokmap_dataset_document(s->ds, document, &d);
    bench_check(tokmap_dataset_read(s->ds, d.first_token, n, wide, &bench_error));
    for (uint32_t i = 0; i < n; i++)
        ids[i] = s->info.token_bytes == 2 ? ((const uint16_t *)wide)[i] : wide[i];
}

static ngrams *make_index(const subject *s, uint32_t n_ngrams)
{
    uint32_t ids[EXAMPLE_TOKENS];
    uint64_t seed = 3;
    ngrams *x = ngrams_open(N, s->info.token_bytes);
    for (uint32_t i = 0; x && i * (EXAMPLE_TOKENS - N + 1) < n_ngrams; i++) {
        for (int k = 0; k < EXAMPLE_TOKENS; k++)
            ids[k] = (uint32_t)(bench_random(&seed) % LOAD_DATA_VOCABULARY);
        if (i % FOUND_EVERY == 0)
            read_ids(s, i % s->info.n_documents, ids, 2 * N);
        if (!ngrams_add(x, ids, EXAMPLE_TOKENS, i + 1))
            bench_fail("out of memory");
    }
    if (!x || !ngrams_finish(x))
        bench_fail("out of memory");
    return x;
}

/* ---- Columns ---- */

static tokmap_status put(void *context, uint64_t document, const ngrams_found *found,
                         tokmap_error *err)
{
    tokmap_column_writer *const *columns = context;
    const ngrams_run *r = ngrams_longest(found->runs, found->n_runs);
    const uint64_t figures[N_COLUMNS] = {found->n_ngrams, r->n_tokens, r->example};
    for (int i = 0; i < N_COLUMNS; i++) {
        const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = (int64_t)figures[i]};
        bench_check(tokmap_column_writer_put(columns[i], document, &v, 1, err));
    }
    return TOKMAP_OK;
}

static tokmap_status put_duplicate(void *context, uint64_t document, uint64_t first,
                                   tokmap_error *err)
{
    const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = (int64_t)first};
    return tokmap_column_writer_put(*(tokmap_column_writer **)context, document, &v, 1, err);
}

static void on_progress(void *context, uint64_t n_tokens)
{
    (void)context;
    bench_keep(n_tokens);
}

/* Measures millions of tokens in a second; without an index, of the search for duplicates. */
static double measure_rate(const subject *s, ngrams *index)
{
    static const char *const names[N_COLUMNS] = {"ngrams", "longest", "example"};
    const int n_columns = index ? N_COLUMNS : 1;
    tokmap_column_writer *columns[N_COLUMNS];
    const scan_job job = {.ds = s->ds,
                          .indexes = &index,
                          .n_indexes = 1,
                          .n_threads = 1,
                          .context = columns,
                          .on_match = put,
                          .on_progress = on_progress};
    const duplicates_job duplicates = {.ds = s->ds,
                                       .memory = UINT64_C(1) << 30,
                                       .context = columns,
                                       .on_duplicate = put_duplicate,
                                       .on_progress = on_progress};
    const uint64_t start = tokmap_i_now_ns();
    for (int i = 0; i < n_columns; i++) {
        const tokmap_column_options o = {.struct_size = sizeof o, .name = names[i], .replace = 1};
        bench_check(tokmap_column_writer_open(&columns[i], s->ds, &o, &bench_error));
    }
    bench_check(index ? scan_run(&job, &bench_error) : duplicates_run(&duplicates, &bench_error));
    for (int i = 0; i < n_columns; i++) {
        bench_check(tokmap_column_writer_finish(columns[i], &bench_error));
        tokmap_column_writer_close(columns[i]);
    }
    return (double)s->info.n_tokens * 1000 / bench_ns_since(start);
}

/* Measures millions of tokens in a second of a pass over the file that only computes checksums. */
static double measure_plain_rate(const subject *s)
{
    const void *tokens;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < s->info.n_documents; i++) {
        tokmap_document d;
        tokmap_dataset_document(s->ds, i, &d);
        if (tokmap_dataset_tokens(s->ds, d.first_token, d.n_tokens, &tokens) != TOKMAP_OK)
            bench_fail("the tokens are not mapped");
        bench_keep(tokmap_i_checksum(tokens, d.n_tokens * s->info.token_bytes));
    }
    return (double)s->info.n_tokens * 1000 / bench_ns_since(start);
}

static void measure_width(const bench_options *options, int i, bench_report *report)
{
    const uint64_t mib = options->load_mib ? options->load_mib : LOAD_DATA_USUAL_MIB;
    const uint32_t n_rounds = bench_rounds(options, 5), most_ngrams = sizes[N_SIZES - 1].n_ngrams;
    subject s;
    load_data_make_random(options, 0, (mib << 20) / 2, widths[i].vocab_size);
    load_data_open_made(options, 0, &s.ds, 1);
    s.info = cli_dataset_info(s.ds);
    load_data_warm_up(s.ds);
    bench_row *plain =
        bench_add_row(report, "M tokens/s", "checksums of the documents, %s", widths[i].name);
    bench_row *duplicates = bench_add_row(report, "M tokens/s", "duplicates, %s", widths[i].name);
    for (uint32_t n = 0; n < n_rounds; n++) {
        bench_add_value(plain, measure_plain_rate(&s));
        bench_add_value(duplicates, measure_rate(&s, NULL));
    }
    bench_set_goal(duplicates, BENCH_AT_LEAST, 300);
    bench_set_limit(duplicates, plain, 1);
    for (int k = 0; k < N_SIZES; k++) {
        ngrams *x = make_index(&s, sizes[k].n_ngrams / (s.info.n_tokens < most_ngrams ? 100 : 1));
        bench_row *row = bench_add_row(report, "M tokens/s", "%s n-grams of 13, %s", sizes[k].name,
                                       widths[i].name);
        for (uint32_t n = 0; n < n_rounds; n++)
            bench_add_value(row, measure_rate(&s, x));
        if (k == N_SIZES - 1)
            bench_set_goal(row, BENCH_AT_LEAST, widths[i].goal);
        ngrams_close(x);
    }
    load_data_close_made(&s.ds, 1);
}

void bench_scan(const bench_options *options, bench_report *report)
{
    for (int i = 0; i < (int)(sizeof widths / sizeof *widths); i++)
        measure_width(options, i, report);
}
