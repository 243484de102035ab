/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the loader on hot data: a zero-copy sample, and batches gathered, compared with the
 * machine's limit for copying rows from random places. On the user's own data also the same when
 * cold. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pages/pages.h"

enum {
    ROUNDS = 11,
    N_LENGTHS = 4,
    SHUFFLE_LENGTH = 4096,
    ALL_PARTS = TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |
                TOKMAP_ROW_LOSS_MASK
};
static const uint32_t lengths[N_LENGTHS] = {1024, 2048, 4096, 8192};
static const uint64_t most_bytes_a_round = 256 << 20, least_bytes_a_round = 16 << 20;

typedef struct hot {
    const load_data *data;
    uint32_t length;
    uint64_t n_steps, seed, bytes_a_round;
    uint64_t n_samples; /* samples that may be used: all their data is in memory */
    uint8_t *buffer;    /* a batch, as int64 inputs and labels */
} hot;

static size_t row_bytes(const hot *h)
{
    return h->data->info.token_bytes * ((size_t)h->length + 1);
}

static uint64_t any_sample(hot *h, uint64_t n_needed)
{
    return bench_random(&h->seed) % (h->n_samples - n_needed);
}

static tokmap_loader *open_loader(const hot *h, uint32_t row_parts, tokmap_shuffle shuffle,
                                  tokmap_io io)
{
    const tokmap_loader_options options = {
        .sequence_length = h->length, .row_parts = row_parts, .shuffle = shuffle, .io = io};
    return load_data_one_source(&h->data->ds, 1, options);
}

/* ---- Measures ---- */

/* Copies rows from random places into the same buffer by memcpy, without prefetching. Their places,
 * those of full shuffle, are computed before the clock starts. */
static double copy_limit(hot *h)
{
    const size_t n_rows = (size_t)h->n_steps * LOAD_DATA_ROWS;
    const uint8_t **rows = bench_memory((n_rows + 1) * sizeof *rows);
    const void *tokens = NULL;
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    tokmap_loader *l = open_loader(h, 0, TOKMAP_SHUFFLE_FULL, TOKMAP_IO_MAP);
    tokmap_dataset_tokens(h->data->ds, 0, 1, &tokens);
    for (size_t i = 0; i < n_rows; i++) {
        bench_check(tokmap_loader_locate(l, any_sample(h, 0), &at, &bench_error));
        rows[i] = (const uint8_t *)tokens + h->data->info.token_bytes * at.first_token;
    }
    tokmap_loader_close(l);
    const uint64_t start = tokmap_i_now_ns();
    for (size_t i = 0; i < n_rows; i++)
        memcpy(h->buffer + i % LOAD_DATA_ROWS * row_bytes(h), rows[i], row_bytes(h));
    const double ns = bench_ns_since(start);
    free(rows);
    return (double)(n_rows * row_bytes(h)) / ns;
}

/* What to do with each batch; none: nothing. Returns ns per row. */
static double run_steps(hot *h, uint32_t row_parts, tokmap_shuffle shuffle,
                        const tokmap_gather_options *gather)
{
    tokmap_loader *l = open_loader(h, row_parts, shuffle, TOKMAP_IO_MAP);
    bench_check(tokmap_loader_seek(l, any_sample(h, h->n_steps * LOAD_DATA_ROWS), &bench_error));
    const double ns = load_data_steps_ns(l, h->n_steps, gather);
    tokmap_loader_close(l);
    return ns;
}

/* Of data that does not fit in memory, it reads only those rows that will be used. */
static void set_length(hot *h, uint32_t length)
{
    h->length = length;
    h->n_steps = h->bytes_a_round / row_bytes(h) / LOAD_DATA_ROWS;
    h->n_samples = 1000000007;
    if (h->data->fits)
        return;
    h->n_samples = 2 * h->n_steps * LOAD_DATA_ROWS;
    tokmap_loader *l = open_loader(h, 0, TOKMAP_SHUFFLE_FULL, TOKMAP_IO_POPULATE);
    const tokmap_gather_options tokens = {.struct_size = sizeof tokens, .inputs = h->buffer};
    load_data_steps_ns(l, 2 * h->n_steps, &tokens);
    tokmap_loader_close(l);
}

/* ---- Rows of figures ---- */

enum {
    SAMPLE,
    PARTS, /* only if documents are known */
    LIMIT,
    TOKENS,
    I32,
    I64,
    IN_ORDER, /* this and the next two: of SHUFFLE_LENGTH, of data that fits in memory */
    BY_BLOCK,
    AT_RANDOM,
    N_KINDS
};
static const struct {
    const char *name, *unit, *system, *group;
    tokmap_shuffle shuffle;
    tokmap_gather_format format;
} kinds[N_KINDS] = {
    {"zero-copy sample", "ns", "", "", TOKMAP_SHUFFLE_FULL},
    {"documents, ids, mask", "ns", "", "", TOKMAP_SHUFFLE_FULL},
    {"memcpy of random rows", "GB/s", "memcpy of random rows", ""},
    {"batch gathered, ", "GB/s", "tokmap", "", TOKMAP_SHUFFLE_FULL},
    {"inputs and labels, i32", "G tokens/s", "tokmap", "i32 inputs and labels", TOKMAP_SHUFFLE_FULL,
     TOKMAP_GATHER_I32},
    {"inputs and labels, i64", "G tokens/s", "tokmap", "i64 inputs and labels", TOKMAP_SHUFFLE_FULL,
     TOKMAP_GATHER_I64},
    {"gather, in order", "GB/s", "tokmap, in order", "", TOKMAP_SHUFFLE_NONE},
    {"gather, block shuffle", "GB/s", "tokmap, block shuffle", "", TOKMAP_SHUFFLE_BLOCK},
    {"gather, full shuffle", "GB/s", "tokmap, full shuffle", "", TOKMAP_SHUFFLE_FULL}};

typedef bench_row *hot_rows[N_KINDS];

static bool is_widened(int kind)
{
    return kind == I32 || kind == I64;
}

static double measure_kind(hot *h, int kind)
{
    const tokmap_gather_options gather = {
        .struct_size = sizeof gather,
        .format = kinds[kind].format,
        .inputs = h->buffer,
        .labels = is_widened(kind) ? h->buffer + 8ull * LOAD_DATA_ROWS * h->length : NULL};
    if (kind == LIMIT)
        return copy_limit(h);
    const double ns = run_steps(h, kind == PARTS ? ALL_PARTS : 0, kinds[kind].shuffle,
                                kind < LIMIT ? NULL : &gather);
    return kind < LIMIT ? ns : (is_widened(kind) ? h->length : (double)row_bytes(h)) / ns;
}

static void add_rows(const hot *h, bench_report *report, uint32_t length, hot_rows r)
{
    const char *stored = h->data->info.token_bytes == 2 ? "u16" : "u32";
    const bool by_shuffle = length == SHUFFLE_LENGTH && h->data->fits;
    for (int i = 0; i < N_KINDS; i++) {
        r[i] = NULL;
        if (i == PARTS ? h->data->info.n_documents == 0 : i >= IN_ORDER && !by_shuffle)
            continue;
        r[i] = bench_add_row(report, kinds[i].unit, "%s%s, %u tokens", kinds[i].name,
                             i == TOKENS ? stored : "", length);
        if (i >= IN_ORDER)
            bench_set_group(r[i], kinds[i].system, "hot, by shuffle");
        else if (i >= LIMIT)
            bench_set_group(r[i], kinds[i].system, "hot, %s, %u tokens",
                            is_widened(i) ? kinds[i].group : stored, length);
    }
    bench_set_goal(r[SAMPLE], BENCH_AT_MOST, 40);
    if (r[PARTS])
        bench_set_goal(r[PARTS], BENCH_AT_MOST, length <= 4096 ? 2000 : 4000);
}

/* ---- Page ---- */

static void measure_hot(const load_data *data, const bench_options *options, bench_report *report)
{
    const uint64_t n_bytes = data->info.token_file_bytes;
    hot h = {.data = data,
             .seed = 1,
             .bytes_a_round = n_bytes < least_bytes_a_round  ? least_bytes_a_round
                              : n_bytes < most_bytes_a_round ? n_bytes
                                                             : most_bytes_a_round,
             .buffer = bench_memory(16ull * LOAD_DATA_ROWS * (lengths[N_LENGTHS - 1] + 1))};
    hot_rows rows[N_LENGTHS];
    uint32_t n_lengths = 0;
    while (n_lengths < N_LENGTHS && data->info.n_tokens > lengths[n_lengths])
        n_lengths++;
    if (n_lengths == 0)
        bench_fail("%s: load needs more than %u tokens", data->info.token_path, lengths[0]);
    if (data->info.n_documents == 0)
        cli_warn("its documents are not known: what belongs to them is left out");
    if (data->fits)
        load_data_warm_up(data->ds);
    for (uint32_t i = 0; i < n_lengths; i++)
        add_rows(&h, report, lengths[i], rows[i]);
    for (uint32_t i = 0; i < bench_rounds(options, ROUNDS) * n_lengths; i++) {
        set_length(&h, lengths[i % n_lengths]);
        for (int k = 0; k < N_KINDS; k++)
            if (rows[i % n_lengths][k])
                bench_add_value(rows[i % n_lengths][k], measure_kind(&h, k));
    }
    for (uint32_t k = 0; k < n_lengths; k++) {
        bench_row *const *r = rows[k];
        bench_set_goal(bench_add_ratio(report, r[TOKENS], r[LIMIT], "gathered / memcpy, %u tokens",
                                       lengths[k]),
                       BENCH_AT_LEAST, 0.9);
        for (int i = TOKENS; i < N_KINDS; i++)
            if (r[i])
                bench_set_limit(r[i], r[LIMIT], is_widened(i) ? data->info.token_bytes : 1);
    }
    free(h.buffer);
}

void bench_load(const bench_options *options, bench_report *report)
{
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    const cold_data cold = {.prefix = "cold, ",
                            .data = &data,
                            .lengths = lengths + 2,
                            .n_lengths = 1,
                            .n_rounds = bench_rounds(options, 5),
                            .may_be_left_out = true};
    measure_hot(&data, options, report);
    if (options->data) /* generated data has its own page for this */
        cold_measure(&cold, report);
    load_data_close(&data);
}
