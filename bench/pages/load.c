/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the loader. load: on hot data, a zero-copy sample, and batches gathered, compared with
 * the machine's limit for copying rows from random places. cold: the ways of reading data that is
 * not in memory, compared with the device's rate for reads of the same size, and with a plain
 * map. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pages/pages.h"
#include "system/platform.h"

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
 * in the order of full shuffle, are computed before the clock starts. */
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

/* Runs steps, and copies each batch if `gather` is not NULL. Returns ns per row. */
static double run_steps(hot *h, uint32_t row_parts, tokmap_shuffle shuffle,
                        const tokmap_gather_options *gather)
{
    tokmap_loader *l = open_loader(h, row_parts, shuffle, TOKMAP_IO_MAP);
    bench_check(tokmap_loader_seek(l, any_sample(h, h->n_steps * LOAD_DATA_ROWS), &bench_error));
    const double ns = load_data_steps_ns(l, h->n_steps, gather);
    tokmap_loader_close(l);
    return ns;
}

/* Sets the sequence length. Of data that does not fit in memory, reads only the rows that will be
 * used. */
static void set_length(hot *h, uint32_t length)
{
    h->length = length;
    h->n_steps = h->bytes_a_round / row_bytes(h) / LOAD_DATA_ROWS;
    h->n_samples = 1000000007;
    if (h->data->fits)
        return;
    h->n_samples = 2 * h->n_steps * LOAD_DATA_ROWS;
    tokmap_loader *l = open_loader(h, 0, TOKMAP_SHUFFLE_FULL, TOKMAP_IO_POPULATE);
    const tokmap_gather_options tokens = {
        .struct_size = sizeof tokens, .format = TOKMAP_GATHER_TOKENS, .inputs = h->buffer};
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
    IN_ORDER, /* this and the next two: rows of SHUFFLE_LENGTH, data that fits in memory */
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
    {"batch gathered, ", "GB/s", "tokmap", "", TOKMAP_SHUFFLE_FULL, TOKMAP_GATHER_TOKENS},
    {"inputs and labels, i32", "G tokens/s", "tokmap", "i32 inputs and labels", TOKMAP_SHUFFLE_FULL,
     TOKMAP_GATHER_I32},
    {"inputs and labels, i64", "G tokens/s", "tokmap", "i64 inputs and labels", TOKMAP_SHUFFLE_FULL,
     TOKMAP_GATHER_I64},
    {"gather, in order", "GB/s", "tokmap, in order", "", TOKMAP_SHUFFLE_NONE, TOKMAP_GATHER_TOKENS},
    {"gather, block shuffle", "GB/s", "tokmap, block shuffle", "", TOKMAP_SHUFFLE_BLOCK,
     TOKMAP_GATHER_TOKENS},
    {"gather, full shuffle", "GB/s", "tokmap, full shuffle", "", TOKMAP_SHUFFLE_FULL,
     TOKMAP_GATHER_TOKENS}};

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

/* ---- Cold data ---- */

enum {
    N_COLD_LENGTHS = 3,
    AT_ONCE = 128, /* as many reads at once as the loader does */
    SEQUENTIAL_BYTES = 1 << 20,
    SEQUENTIAL_AT_ONCE = 32
};

static const uint64_t usual_ns = 700000000, trial_ns = 20000000; /* the length of a measurement */
static const uint32_t cold_lengths[N_COLD_LENGTHS] = {1024, 4096, 8192};

typedef struct way {
    const char *name, *system;
    tokmap_io io;
    tokmap_shuffle shuffle;
    double least_share; /* share of the device's rate to reach; 0: any */
} way;

enum {
    DIRECT,
    POPULATE,
    READ,
    PLAIN_MAP,
    BLOCK_SHUFFLE,
    N_WAYS,
    BLOCK_TIMES = 4 /* block shuffle, and what it is compared with, are measured so much longer: a
                       group of blocks is read before its first row, and devices have bursts */
};
static const way ways[N_WAYS] = {
    {"direct", "tokmap, direct", TOKMAP_IO_DIRECT, TOKMAP_SHUFFLE_FULL, 0.9},
    {"populate", "tokmap, populate", TOKMAP_IO_POPULATE, TOKMAP_SHUFFLE_FULL, 0.6},
    {"read", "tokmap, read", TOKMAP_IO_READ, TOKMAP_SHUFFLE_FULL, 0},
    {"plain map", "tokmap, plain map", TOKMAP_IO_MAP, TOKMAP_SHUFFLE_FULL, 0},
    {"populate, block shuffle", "tokmap, populate, block shuffle", TOKMAP_IO_POPULATE,
     TOKMAP_SHUFFLE_BLOCK, 0.9}};

/* The rows that are measured without a loader. */
enum {
    DEVICE_RANDOM,
    DEVICE_IN_ORDER,
    PLAIN_READS,
    N_PLAIN
};
static const char *const plain_names[N_PLAIN][2] = {
    {"device, random reads of a row", "device, random reads"},
    {"device, sequential", "device, sequential"},
    {"plain reads in order", "plain reads in order"}};

/* The figures of a way of reading: rows a second, their share of the device's rate, and the bytes
 * read from the device for each byte of a row. */
enum {
    RATE,
    SHARE,
    BYTES,
    N_FIGURES
};
static const char *const figures[N_FIGURES][2] = {
    {"rate", "rows/s"}, {"share", "x"}, {"bytes", "x"}};

typedef struct cold {
    const load_data *data;
    uint64_t seed, ns; /* of each measurement */
    bool works[N_WAYS];
} cold;

typedef struct cold_rows {
    uint32_t length;
    size_t row_bytes;
    bench_row *plain[N_PLAIN], *ways[N_WAYS][N_FIGURES];
} cold_rows;

/* Runs for this time, but at least one step, or to the end of the epoch: in a second epoch the rows
 * would be in memory. Returns rows a second. */
static double load_rows(cold *c, const cold_rows *r, const way *w, double *bytes)
{
    const tokmap_loader_options options = {.sequence_length = r->length,
                                           .seed = bench_random(&c->seed),
                                           .shuffle = w->shuffle,
                                           .io = w->io};
    tokmap_loader_source_info source = {.struct_size = sizeof source};
    tokmap_batch b = {.struct_size = sizeof b};
    uint64_t n_rows = 0;
    device_forget(&c->data->file, c->data->ds);
    const double before = bench_system_number("/proc/self/io", "read_bytes:");
    const uint64_t start = tokmap_i_now_ns();
    const uint64_t until = start + (w->shuffle == TOKMAP_SHUFFLE_BLOCK ? BLOCK_TIMES : 1) * c->ns;
    tokmap_loader *l = load_data_one_source(&c->data->ds, 1, options);
    tokmap_loader_get_source(l, 0, &source);
    do {
        load_data_next(l, &b, NULL);
        for (uint32_t i = 0; i < b.n_rows; i++) {
            const tokmap_row *row = &b.rows[i];
            const uint32_t n_bytes = row->n_tokens * row->token_bytes;
            for (uint32_t k = 0; k < n_bytes; k += 2048) /* every page of it */
                bench_keep(((const volatile uint8_t *)row->tokens)[k]);
        }
        n_rows += b.n_rows;
    } while (tokmap_i_now_ns() < until && n_rows + LOAD_DATA_ROWS <= source.n_windows);
    const double ns = bench_ns_since(start);
    const double n_read = bench_system_number("/proc/self/io", "read_bytes:") - before;
    tokmap_loader_close(l);
    *bytes = n_read / ((double)n_rows * (double)r->row_bytes);
    return (double)n_rows * 1e9 / ns;
}

/* Measures rows a second if the file is read in order by plain reads through the page cache, for as
 * long as block shuffle is measured. */
static double plain_rate(cold *c, const cold_rows *r)
{
    uint8_t *buffer = bench_memory(SEQUENTIAL_BYTES);
    uint64_t at = 0;
    size_t n = SEQUENTIAL_BYTES;
    device_forget(&c->data->file, c->data->ds);
    const uint64_t start = tokmap_i_now_ns();
    for (; n == SEQUENTIAL_BYTES && tokmap_i_now_ns() < start + BLOCK_TIMES * c->ns; at += n)
        bench_check_errno(tokmap_i_file_read(c->data->file.fd, buffer, SEQUENTIAL_BYTES, at, &n),
                          c->data->info.token_path);
    const double seconds = bench_ns_since(start) / 1e9;
    free(buffer);
    return (double)at / (double)r->row_bytes / seconds;
}

static const bench_row *limit_of(const cold_rows *r, int i)
{
    return r->plain[i == BLOCK_SHUFFLE ? DEVICE_IN_ORDER : DEVICE_RANDOM];
}

static void measure_in_order(const cold *c, const cold_rows *r)
{
    const device_reads in_order = {SEQUENTIAL_BYTES, SEQUENTIAL_AT_ONCE, true, 0,
                                   BLOCK_TIMES * c->ns};
    bench_add_value(r->plain[DEVICE_IN_ORDER], device_rate(&c->data->file, &in_order) *
                                                   SEQUENTIAL_BYTES / (double)r->row_bytes);
}

/* Block shuffle comes before the reads in order, or after them, in turn: what a device has just
 * read may be in a cache of its host. */
static void measure_cold_round(cold *c, const cold_rows *r, bool in_order_first)
{
    const size_t blocks = (r->row_bytes + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
    const device_reads random = {blocks * DEVICE_BLOCK, AT_ONCE, false, bench_random(&c->seed),
                                 c->ns};
    const device_file *file = &c->data->file;
    bench_add_value(r->plain[DEVICE_RANDOM], device_rate(file, &random));
    bench_add_value(r->plain[PLAIN_READS], plain_rate(c, r));
    for (int i = 0; i < N_WAYS; i++) {
        const bench_row *limit = limit_of(r, i);
        double bytes = 0;
        if (i == BLOCK_SHUFFLE && (in_order_first || !c->works[i]))
            measure_in_order(c, r);
        if (!c->works[i])
            continue;
        const double rate = load_rows(c, r, &ways[i], &bytes);
        if (i == BLOCK_SHUFFLE && !in_order_first)
            measure_in_order(c, r);
        bench_add_value(r->ways[i][RATE], rate);
        bench_add_value(r->ways[i][SHARE], rate / limit->values[limit->n_values - 1]);
        bench_add_value(r->ways[i][BYTES], bytes);
    }
}

static void add_cold_rows(const cold *c, bench_report *report, cold_rows *r)
{
    const double most_bytes = r->length < 2048 ? 3 : r->length < 8192 ? 2 : 1.3;
    for (int i = 0; i < N_PLAIN; i++) {
        r->plain[i] =
            bench_add_row(report, "rows/s", "%s, %u tokens", plain_names[i][0], r->length);
        bench_set_group(r->plain[i], plain_names[i][1], "cold, %u tokens", r->length);
    }
    for (int i = 0; i < N_WAYS; i++) {
        if (!c->works[i])
            continue;
        for (int k = 0; k < N_FIGURES; k++)
            r->ways[i][k] =
                bench_add_cell(report, figures[k], "%s, %u tokens", ways[i].name, r->length);
        bench_set_group(r->ways[i][RATE], ways[i].system, "cold, %u tokens", r->length);
        if (ways[i].least_share > 0)
            bench_set_goal(r->ways[i][SHARE], BENCH_AT_LEAST, ways[i].least_share);
        if (i == BLOCK_SHUFFLE || i == DIRECT)
            bench_set_goal(r->ways[i][BYTES], BENCH_AT_MOST, i == DIRECT ? most_bytes : 1.1);
    }
}

static void measure_cold(cold *c, bench_report *report, uint32_t n_rounds)
{
    cold_rows rows[N_COLD_LENGTHS];
    for (int i = 0; i < N_WAYS;
         i++) /* block shuffle comes after the way that it is compared with */
        c->works[i] =
            i == BLOCK_SHUFFLE ? c->works[POPULATE] : load_data_works(c->data->ds, ways[i].io);
    for (uint32_t k = 0; k < N_COLD_LENGTHS; k++) {
        const uint32_t length = cold_lengths[k];
        rows[k] = (cold_rows){.length = length,
                              .row_bytes = c->data->info.token_bytes * ((size_t)length + 1)};
        add_cold_rows(c, report, &rows[k]);
    }
    for (uint32_t i = 0; i < n_rounds * N_COLD_LENGTHS; i++)
        measure_cold_round(c, &rows[i % N_COLD_LENGTHS], i / N_COLD_LENGTHS % 2 == 0);
    for (uint32_t k = 0; k < N_COLD_LENGTHS; k++) {
        const cold_rows *r = &rows[k];
        for (int i = 0; i < N_WAYS; i++)
            if (c->works[i])
                bench_set_limit(r->ways[i][RATE], limit_of(r, i), 1);
        if (c->works[BLOCK_SHUFFLE])
            bench_add_ratio(report, r->ways[BLOCK_SHUFFLE][RATE], r->plain[PLAIN_READS],
                            "block shuffle / plain reads in order, %u tokens", r->length);
    }
}

/* ---- Pages ---- */

void bench_load(const bench_options *options, bench_report *report)
{
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    measure_hot(&data, options, report);
    load_data_close(&data);
}

void bench_cold(const bench_options *options, bench_report *report)
{
    static const char text[] = "%s: cold reads are left out: this needs %s";
    load_data data = load_data_open(options, options->all ? 2048 : 8192);
    cold c = {.data = &data, .seed = 1, .ns = data.is_trial ? trial_ns : usual_ns};
    const char *path = data.info.token_path;
    const char *needs = data.info.token_file_bytes < 4 << 20 ? "4 MiB and more"
                        : data.file.direct_fd < 0
                            ? "a file system on a device, with O_DIRECT (see --dir)"
                            : NULL;
    if (!needs)
        measure_cold(&c, report, bench_rounds(options, options->all ? 3 : 5));
    else if (options->all)
        cli_warn(text, path, needs);
    else
        bench_fail(text, path, needs);
    load_data_close(&data);
}
