/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the loader on hot data: a zero-copy sample, and batches gathered, compared with the
 * machine's limit for copying rows from random places. On the user's own data also the same when
 * cold. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/load_data.h"
#include "pages/cold.h"

enum {
    ROUNDS = 11,
    BATCH_ROWS = 32,
    N_LENGTHS = 4,
    SHUFFLE_LENGTH = 4096,
    N_MODES = 3,
    ALL_PARTS = TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |
                TOKMAP_ROW_LOSS_MASK
};
static const uint32_t lengths[N_LENGTHS] = {1024, 2048, 4096, 8192};
static const uint64_t most_bytes_a_round = 256 << 20, least_bytes_a_round = 16 << 20;
static const struct {
    const char *name, *system;
    tokmap_shuffle shuffle;
} modes[N_MODES] = {{"in order", "tokmap, in order", TOKMAP_SHUFFLE_NONE},
                    {"block shuffle", "tokmap, block shuffle", TOKMAP_SHUFFLE_BLOCK},
                    {"full shuffle", "tokmap, full shuffle", TOKMAP_SHUFFLE_FULL}};

typedef struct hot {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    uint32_t length;
    uint64_t n_steps, seed, bytes_a_round;
    uint64_t n_samples; /* samples that may be used: all their data is in memory */
    uint8_t *buffer;    /* a batch, as int64 inputs and labels */
} hot;

static size_t row_bytes(const hot *h)
{
    return h->info.token_bytes * ((size_t)h->length + 1);
}

static uint64_t any_sample(hot *h, uint64_t n_needed)
{
    return bench_random(&h->seed) % (h->n_samples - n_needed);
}

static tokmap_loader *open_loader(const hot *h, uint32_t row_parts, tokmap_shuffle shuffle,
                                  tokmap_io io)
{
    const tokmap_loader_options options = {.sequence_length = h->length,
                                           .batch_rows = BATCH_ROWS,
                                           .row_parts = row_parts,
                                           .shuffle = shuffle,
                                           .io = io,
                                           .seed = 1};
    return load_data_one_source(&h->ds, 1, options);
}

/* ---- Measures ---- */

/* The places of the rows in full shuffle, computed before any clock starts. */
static bool find_rows(hot *h, const uint8_t **rows, size_t n_rows)
{
    const void *tokens;
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    tokmap_error err;
    tokmap_loader *l = open_loader(h, 0, TOKMAP_SHUFFLE_FULL, TOKMAP_IO_MAP);
    bool failed = !l || tokmap_dataset_tokens(h->ds, 0, 1, &tokens) != TOKMAP_OK;
    for (size_t i = 0; i < n_rows && !failed; i++) {
        failed = tokmap_loader_locate(l, any_sample(h, 0), &at, &err) != TOKMAP_OK;
        rows[i] = (const uint8_t *)tokens + h->info.token_bytes * at.first_token;
    }
    tokmap_loader_close(l);
    return !failed;
}

/* Copies rows from random places into the same buffer by memcpy, without prefetching. */
static double copy_limit(hot *h)
{
    const size_t n_rows = (size_t)h->n_steps * BATCH_ROWS;
    const uint8_t **rows = calloc(n_rows + 1, sizeof *rows);
    if (!rows || !find_rows(h, rows, n_rows)) {
        free(rows);
        return -1;
    }
    const uint64_t start = tokmap_i_now_ns();
    for (size_t i = 0; i < n_rows; i++)
        memcpy(h->buffer + i % BATCH_ROWS * row_bytes(h), rows[i], row_bytes(h));
    const double ns = (double)(tokmap_i_now_ns() - start);
    free(rows);
    return (double)(n_rows * row_bytes(h)) / ns;
}

/* What to do with each batch; none: nothing. Returns ns per row, or -1. */
static double run_steps(hot *h, uint32_t row_parts, tokmap_shuffle shuffle,
                        const tokmap_gather_options *gather)
{
    tokmap_loader *l = open_loader(h, row_parts, shuffle, TOKMAP_IO_MAP);
    const bool sought = l && !load_data_seek(l, any_sample(h, h->n_steps * BATCH_ROWS));
    const double ns = sought ? load_data_steps_ns(l, h->n_steps, gather) : -1;
    tokmap_loader_close(l);
    return ns;
}

/* For data that does not fit in memory: reads only those rows that will be used. */
static int bring_in(hot *h)
{
    tokmap_loader *l = open_loader(h, 0, TOKMAP_SHUFFLE_FULL, TOKMAP_IO_POPULATE);
    const tokmap_gather_options tokens = {.struct_size = sizeof tokens, .inputs = h->buffer};
    tokmap_batch b = {.struct_size = sizeof b};
    int code = !l;
    for (uint64_t i = 0; i * BATCH_ROWS < h->n_samples && !code; i++)
        code = load_data_next(l, &b, &tokens);
    tokmap_loader_close(l);
    return code;
}

static int set_length(hot *h, uint32_t length)
{
    h->length = length;
    h->n_steps = h->bytes_a_round / row_bytes(h) / BATCH_ROWS;
    h->n_samples = 1000000007;
    if (load_data_fits(h->ds))
        return 0;
    h->n_samples = 2 * h->n_steps * BATCH_ROWS;
    return bring_in(h);
}

/* ---- Rows of figures ---- */

enum {
    SAMPLE,
    PARTS, /* only if documents are known */
    LIMIT,
    TOKENS,
    I32,
    I64,
    N_KINDS
};
static const struct {
    const char *name, *unit, *system, *group;
} kinds[N_KINDS] = {{"zero-copy sample", "ns", "", ""},
                    {"documents, ids, mask", "ns", "", ""},
                    {"memcpy of random rows", "GB/s", "memcpy of random rows", ""},
                    {"batch gathered, ", "GB/s", "tokmap", ""},
                    {"inputs and labels, i32", "G tokens/s", "tokmap", "i32 inputs and labels"},
                    {"inputs and labels, i64", "G tokens/s", "tokmap", "i64 inputs and labels"}};

typedef struct hot_rows {
    bench_row *kinds[N_KINDS];
    bench_row *modes[N_MODES]; /* of SHUFFLE_LENGTH */
} hot_rows;

static int measure_kind(hot *h, bench_row *row, int kind)
{
    const tokmap_gather_options tokens = {.struct_size = sizeof tokens, .inputs = h->buffer};
    const tokmap_gather_options wide = {.struct_size = sizeof wide,
                                        .format =
                                            kind == I32 ? TOKMAP_GATHER_I32 : TOKMAP_GATHER_I64,
                                        .inputs = h->buffer,
                                        .labels = h->buffer + 8ull * BATCH_ROWS * h->length};
    if (kind == LIMIT)
        return bench_try_value(row, copy_limit(h));
    const double ns = run_steps(h, kind == PARTS ? ALL_PARTS : 0, TOKMAP_SHUFFLE_FULL,
                                kind < LIMIT     ? NULL
                                : kind == TOKENS ? &tokens
                                                 : &wide);
    return bench_try_value(row, kind < LIMIT     ? ns
                                : kind == TOKENS ? (double)row_bytes(h) / ns
                                                 : h->length / ns);
}

static int measure_hot_rows(hot *h, const hot_rows *r)
{
    const tokmap_gather_options tokens = {.struct_size = sizeof tokens, .inputs = h->buffer};
    int code = 0;
    for (int i = 0; i < N_KINDS && !code; i++)
        code = r->kinds[i] ? measure_kind(h, r->kinds[i], i) : 0;
    for (int i = 0; i < N_MODES && r->modes[i] && !code; i++)
        code = bench_try_value(r->modes[i],
                               (double)row_bytes(h) / run_steps(h, 0, modes[i].shuffle, &tokens));
    return code;
}

static void add_rows(const hot *h, bench_report *report, uint32_t length, hot_rows *r)
{
    const char *stored = h->info.token_bytes == 2 ? "u16" : "u32";
    *r = (hot_rows){{NULL}, {NULL}};
    for (int i = 0; i < N_KINDS; i++) {
        if (i == PARTS && h->info.n_documents == 0)
            continue;
        r->kinds[i] = bench_add_row(report, kinds[i].unit, "%s%s, %u tokens", kinds[i].name,
                                    i == TOKENS ? stored : "", length);
        if (kinds[i].system[0])
            bench_set_group(r->kinds[i], kinds[i].system, "hot, %s, %u tokens",
                            i <= TOKENS ? stored : kinds[i].group, length);
    }
    for (int i = 0; i < N_MODES && length == SHUFFLE_LENGTH && load_data_fits(h->ds); i++) {
        r->modes[i] = bench_add_row(report, "GB/s", "gather, %s, %u tokens", modes[i].name, length);
        bench_set_group(r->modes[i], modes[i].system, "hot, by shuffle");
    }
}

static void set_goals(bench_report *report, uint32_t length, const hot_rows *r,
                      uint32_t token_bytes)
{
    const bench_row *limit = r->kinds[LIMIT];
    bench_set_goal(r->kinds[SAMPLE], BENCH_AT_MOST, 40);
    if (r->kinds[PARTS])
        bench_set_goal(r->kinds[PARTS], BENCH_AT_MOST, length <= 4096 ? 2000 : 4000);
    bench_set_goal(
        bench_add_ratio(report, r->kinds[TOKENS], limit, "gathered / memcpy, %u tokens", length),
        BENCH_AT_LEAST, 0.9);
    for (int i = TOKENS; i < N_KINDS; i++)
        bench_set_rate_limit(r->kinds[i], limit, i == TOKENS ? 1 : token_bytes);
    for (int i = 0; i < N_MODES && r->modes[i]; i++)
        bench_set_rate_limit(r->modes[i], limit, 1);
}

/* ---- Page ---- */

static int measure_rounds(hot *h, uint32_t n_rounds, bench_report *report, int n_lengths)
{
    hot_rows rows[N_LENGTHS];
    int code = 0;
    for (int i = 0; i < n_lengths; i++)
        add_rows(h, report, lengths[i], &rows[i]);
    for (uint32_t i = 0; i < n_rounds * (uint32_t)n_lengths && !code; i++) {
        const int k = (int)i % n_lengths;
        code = set_length(h, lengths[k]) || measure_hot_rows(h, &rows[k]);
    }
    for (int k = 0; k < n_lengths && !code; k++)
        set_goals(report, lengths[k], &rows[k], h->info.token_bytes);
    return code;
}

static int hot_part(const bench_options *options, bench_report *report, const tokmap_dataset *ds)
{
    hot h = {.ds = ds, .seed = 1, .info = load_data_info(ds)};
    int n_lengths = 0;
    while (n_lengths < N_LENGTHS && h.info.n_tokens > lengths[n_lengths])
        n_lengths++;
    if (n_lengths == 0) {
        cli_warn("%s: load needs more than %u tokens", h.info.token_path, lengths[0]);
        return 1;
    }
    h.bytes_a_round = h.info.token_file_bytes < least_bytes_a_round  ? least_bytes_a_round
                      : h.info.token_file_bytes < most_bytes_a_round ? h.info.token_file_bytes
                                                                     : most_bytes_a_round;
    const size_t buffer_bytes = 16ull * BATCH_ROWS * (lengths[N_LENGTHS - 1] + 1);
    h.buffer = aligned_alloc(4096, (buffer_bytes + 4095) & ~(size_t)4095);
    if (!h.buffer)
        return 1;
    memset(h.buffer, 0, buffer_bytes);
    if (h.info.n_documents == 0)
        cli_warn("its documents are not known: what belongs to them is left out");
    const int code = (load_data_fits(ds) && load_data_warm_up(ds)) ||
                     measure_rounds(&h, bench_rounds(options, ROUNDS), report, n_lengths);
    free(h.buffer);
    return code;
}

static int run_load(const bench_options *options, bench_report *report)
{
    const tokmap_dataset *ds;
    int code = load_data_open(options, 0, &ds) || hot_part(options, report, ds);
    const cold_data cold = {.prefix = "cold, ",
                            .ds = ds,
                            .lengths = lengths + 2,
                            .n_lengths = 1,
                            .n_rounds = bench_rounds(options, 5)};
    if (!code && options->data && cold_measure(&cold, report) == 1)
        code = 1; /* generated data has its own page for this */
    load_data_close(&ds, 1);
    return code;
}

const bench_page load_page = {
    .name = "load",
    .help = "the loader: a sample, a batch gathered or widened, ways of shuffling; with "
            "--data, cold data too",
    .takes = {"load-mib", "data"},
    .in_all = true,
    .run = run_load,
};
