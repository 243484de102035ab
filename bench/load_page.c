/* load_page.c - the loader on hot data: a zero-copy sample, batches gathered beside the machine's
 * own limit for copying rows from random places, and starting up at any size. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "load_data.h"
#include "tokmap_loader.h"

enum {
    ROUNDS = 11,
    BATCH_ROWS = 32,
    BYTES_A_ROUND = 256 << 20,
    N_LENGTHS = 4,
    ALL_PARTS = TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |
                TOKMAP_ROW_LOSS_MASK
};
static const uint32_t lengths[N_LENGTHS] = {1024, 2048, 4096, 8192};

static tokmap_loader *open_loader(const tokmap_loader_source *source, uint32_t length,
                                  uint32_t row_parts)
{
    const tokmap_loader_options options = {.struct_size = sizeof options,
                                           .sources = source,
                                           .n_sources = 1,
                                           .sequence_length = length,
                                           .batch_rows = BATCH_ROWS,
                                           .row_parts = row_parts,
                                           .seed = 1};
    tokmap_loader *l;
    tokmap_error err;
    if (tokmap_loader_open(&l, &options, &err)) {
        fprintf(stderr, "tokbench: %s\n", err.text);
        return NULL;
    }
    return l;
}

/* ---- Hot ---- */

typedef struct hot {
    const tokmap_dataset *ds;
    uint32_t length;
    uint64_t n_steps, seed;
    uint8_t *buffer; /* a batch, as int64 inputs and labels */
} hot;

static size_t row_bytes(const hot *h)
{
    return 2 * ((size_t)h->length + 1);
}

/* Rows from random places into the same buffer: what no loader that copies can go below. The places
 * are worked out before the clock starts. */
static double copy_limit(hot *h)
{
    const size_t n_rows = (size_t)h->n_steps * BATCH_ROWS;
    const uint8_t **rows = calloc(n_rows + 1, sizeof *rows);
    const void *tokens;
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(h->ds, &info);
    if (!rows || tokmap_dataset_tokens(h->ds, 0, 1, &tokens)) {
        free(rows);
        return -1;
    }
    const uint64_t n_windows = (info.n_tokens - 1) / h->length;
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = (const uint8_t *)tokens + 2 * (bench_random(&h->seed) % n_windows) * h->length;
    const uint64_t start = bench_now_ns();
    for (size_t i = 0; i < n_rows; i++)
        memcpy(h->buffer + i % BATCH_ROWS * row_bytes(h), rows[i], row_bytes(h));
    const double ns = (double)(bench_now_ns() - start);
    free(rows);
    return (double)(n_rows * row_bytes(h)) / ns;
}

/* What is done with each batch; none: nothing. ns a row, or -1. */
static double steps(hot *h, uint32_t row_parts, const tokmap_gather_options *gather)
{
    const tokmap_loader_source source = {.datasets = &h->ds, .n_datasets = 1, .weight = 1};
    tokmap_loader *l = open_loader(&source, h->length, row_parts);
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    bool failed = !l || tokmap_loader_seek(l, bench_random(&h->seed) % 1000000007, &err);
    uintptr_t sum = 0;
    const uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < h->n_steps && !failed; i++) {
        failed = tokmap_loader_next(l, &b, &err) != TOKMAP_OK ||
                 (gather && tokmap_batch_gather(&b, gather, &err) != TOKMAP_OK);
        for (uint32_t k = 0; k < BATCH_ROWS && !gather; k++)
            sum += (uintptr_t)b.rows[k].tokens;
    }
    const double ns = (double)(bench_now_ns() - start);
    tokmap_loader_close(l);
    return failed || sum == 1 ? -1 : ns / (double)h->n_steps / BATCH_ROWS;
}

typedef struct hot_rows {
    bench_row *sample, *parts, *limit, *tokens, *i64;
} hot_rows;

static int measure_hot(hot *h, hot_rows *r)
{
    const tokmap_gather_options tokens = {.struct_size = sizeof tokens, .inputs = h->buffer};
    const tokmap_gather_options i64 = {.struct_size = sizeof i64,
                                       .format = TOKMAP_GATHER_I64,
                                       .inputs = h->buffer,
                                       .labels = h->buffer + 8ull * BATCH_ROWS * h->length};
    const double bytes = (double)row_bytes(h);
    const double sample = steps(h, 0, NULL), parts = steps(h, ALL_PARTS, NULL);
    const double limit = copy_limit(h), whole = steps(h, 0, &tokens), wide = steps(h, 0, &i64);
    if (sample < 0 || parts < 0 || limit < 0 || whole < 0 || wide < 0)
        return 1;
    bench_add_value(r->sample, sample);
    bench_add_value(r->parts, parts);
    bench_add_value(r->limit, limit);
    bench_add_value(r->tokens, bytes / whole);
    bench_add_value(r->i64, (double)h->length / wide);
    return 0;
}

static bench_row *add_row(bench_report *report, const char *what, uint32_t length, const char *unit)
{
    char name[80];
    snprintf(name, sizeof name, "%s, %u tokens", what, length);
    return bench_add_row(report, "load", name, unit);
}

static int hot_pages(const bench_options *options, bench_report *report, const tokmap_dataset *ds)
{
    hot_rows rows[N_LENGTHS];
    hot h = {.ds = ds, .seed = 1};
    const size_t buffer_bytes = 16ull * BATCH_ROWS * (lengths[N_LENGTHS - 1] + 1);
    h.buffer = aligned_alloc(4096, (buffer_bytes + 4095) & ~(size_t)4095);
    if (!h.buffer)
        return 1;
    memset(h.buffer, 0, buffer_bytes);
    for (int i = 0; i < N_LENGTHS; i++)
        rows[i] = (hot_rows){add_row(report, "zero-copy sample", lengths[i], "ns"),
                             add_row(report, "and its documents, ids and mask", lengths[i], "ns"),
                             add_row(report, "memcpy of random rows", lengths[i], "GB/s"),
                             add_row(report, "batch gathered, u16", lengths[i], "GB/s"),
                             add_row(report, "inputs and labels, i64", lengths[i], "G tokens/s")};
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    int code = 0;
    for (uint32_t i = 0; i < n_rounds && !code; i++) {
        for (int k = 0; k < N_LENGTHS && !code; k++) {
            h.length = lengths[k];
            h.n_steps = BYTES_A_ROUND / row_bytes(&h) / BATCH_ROWS;
            code = measure_hot(&h, &rows[k]);
        }
    }
    free(h.buffer);
    for (int k = 0; k < N_LENGTHS && !code; k++) {
        char name[80];
        snprintf(name, sizeof name, "gathered / memcpy, %u tokens", lengths[k]);
        bench_set_goal(rows[k].sample, BENCH_AT_MOST, 40);
        bench_set_goal(rows[k].parts, BENCH_AT_MOST, lengths[k] <= 4096 ? 2000 : 4000);
        bench_set_goal(bench_add_ratio(report, rows[k].tokens, rows[k].limit, name), BENCH_AT_LEAST,
                       0.9);
    }
    return code;
}

/* ---- Starting up ---- */

static const struct {
    const char *name;
    uint64_t n_tokens; /* of a dataset */
    uint32_t n_datasets;
} sizes[] = {{"10^6", 1000000, 1},
             {"10^9", 1000000000, 1},
             {"10^12", 1000000000000, 1},
             {"10^13", 1000000000000, 10}};
enum {
    N_SIZES = sizeof sizes / sizeof *sizes,
    LOCATES = 200000
};

typedef struct start_rows {
    bench_row *open, *seek, *locate, *memory;
} start_rows;

static int measure_start(const tokmap_loader_source *source, uint64_t seed, const start_rows *r)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_sample at;
    tokmap_error err;
    const uint64_t start = bench_now_ns();
    tokmap_loader *l = open_loader(source, 4096, 0);
    bool failed = !l || tokmap_loader_next(l, &b, &err) != TOKMAP_OK;
    const uint64_t opened = bench_now_ns();
    if (!failed)
        failed = tokmap_loader_seek(l, (bench_random(&seed) >> 16), &err) ||
                 tokmap_loader_next(l, &b, &err) != TOKMAP_OK;
    const uint64_t sought = bench_now_ns();
    uint64_t sum = 0;
    const uint64_t first = bench_random(&seed) >> 16;
    for (uint64_t g = 0; g < LOCATES && !failed; g++) {
        failed = tokmap_loader_locate(l, first + g, &at, &err) != TOKMAP_OK;
        sum += at.first_token;
    }
    const uint64_t located = bench_now_ns();
    if (!failed) {
        tokmap_loader_get_info(l, &info);
        bench_add_value(r->open, (double)(opened - start) / 1e3);
        bench_add_value(r->seek, (double)(sought - opened) / 1e3);
        bench_add_value(r->locate, (double)(located - sought) / LOCATES);
        bench_add_value(r->memory, (double)info.resident_bytes / 1024);
    }
    tokmap_loader_close(l);
    return failed || sum == 1;
}

static int start_page(const bench_options *options, bench_report *report, int size)
{
    const tokmap_dataset *datasets[16];
    tokmap_loader_source source = {
        .datasets = datasets, .n_datasets = sizes[size].n_datasets, .weight = 1};
    char name[80];
    start_rows r;
    bench_row **rows[] = {&r.open, &r.seek, &r.locate, &r.memory};
    static const char *const what[] = {"open and first batch", "seek and next batch",
                                       "locate, one sample", "memory"};
    static const char *const units[] = {"us", "us", "ns", "KiB"};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s, %s tokens", what[i], sizes[size].name);
        *rows[i] = bench_add_row(report, "load", name, units[i]);
    }
    bench_set_goal(r.open, BENCH_AT_MOST, 10000);
    bench_set_goal(r.seek, BENCH_AT_MOST, 10000);
    int code = load_data_open_sparse(options, sizes[size].n_tokens, datasets, source.n_datasets);
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    for (uint32_t i = 0; i < n_rounds && !code; i++)
        code = measure_start(&source, i + 1, &r);
    load_data_close(options, datasets, source.n_datasets);
    return code;
}

int load_page(const bench_options *options, bench_report *report)
{
    const tokmap_dataset *ds = NULL;
    int code = load_data_open_hot(options, &ds);
    if (!code)
        code = hot_pages(options, report, ds);
    load_data_close(options, &ds, 1);
    for (int i = 0; i < N_SIZES && !code; i++)
        code = start_page(options, report, i);
    return code;
}
