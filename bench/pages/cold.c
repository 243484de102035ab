/* SPDX-License-Identifier: Apache-2.0 */
/* cold.c - the loader's ways of reading data that is not in memory, compared with the device's rate
 * for reads of the same size, and with a plain map. */
#include "pages/pages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "system/platform.h"

enum {
    MAX_LENGTHS = 8,
    AT_ONCE = 128, /* as many reads at once as the loader has */
    SEQUENTIAL_BYTES = 1 << 20,
    SEQUENTIAL_AT_ONCE = 32
};

static const uint64_t usual_ns = 700000000, trial_ns = 20000000; /* of a measure */
static const uint64_t least_bytes = 4 << 20;

typedef struct way {
    const char *name, *system;
    tokmap_io io;
    tokmap_shuffle shuffle;
    double least_share; /* of the device's rate; 0: no aim */
} way;

enum {
    DIRECT,
    POPULATE,
    READ,
    PLAIN_MAP,
    BLOCK_SHUFFLE,
    N_WAYS
};
static const way ways[N_WAYS] = {
    {"direct", "tokmap, direct", TOKMAP_IO_DIRECT, TOKMAP_SHUFFLE_FULL, 0.9},
    {"populate", "tokmap, populate", TOKMAP_IO_POPULATE, TOKMAP_SHUFFLE_FULL, 0.6},
    {"read", "tokmap, read", TOKMAP_IO_READ, TOKMAP_SHUFFLE_FULL, 0},
    {"plain map", "tokmap, plain map", TOKMAP_IO_MAP, TOKMAP_SHUFFLE_FULL, 0},
    {"populate, block shuffle", "tokmap, populate, block shuffle", TOKMAP_IO_POPULATE,
     TOKMAP_SHUFFLE_BLOCK, 0.9}};

/* Without a loader. */
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

/* What is measured of a way: its rows a second, their share of the device's rate, and the bytes
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
    const cold_data *what;
    uint64_t seed, ns; /* of each measure */
    bool works[N_WAYS];
} cold;

typedef struct cold_rows {
    uint32_t length;
    size_t row_bytes;
    bench_row *plain[N_PLAIN], *ways[N_WAYS][N_FIGURES];
} cold_rows;

/* ---- Measures ---- */

/* Runs for this long, or to the end of the epoch: in a second epoch its rows would be in memory. At
 * least one step. Returns the number of rows. */
static uint64_t take_steps(tokmap_loader *l, uint64_t until)
{
    tokmap_loader_source_info source = {.struct_size = sizeof source};
    tokmap_batch b = {.struct_size = sizeof b};
    uint64_t n_rows = 0;
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
    return n_rows;
}

static double load_rows(cold *c, const cold_rows *r, const way *w, double *bytes)
{
    const tokmap_loader_options options = {.sequence_length = r->length,
                                           .seed = bench_random(&c->seed),
                                           .shuffle = w->shuffle,
                                           .io = w->io};
    /* A group of blocks is read before its first row: a longer measure keeps that in proportion. */
    const uint64_t ns_at_most = w->shuffle == TOKMAP_SHUFFLE_BLOCK ? 4 * c->ns : c->ns;
    device_forget(&c->what->data->file, c->what->data->ds);
    const uint64_t before = device_bytes(), start = tokmap_i_now_ns();
    tokmap_loader *l = load_data_one_source(&c->what->data->ds, 1, options);
    const double n_rows = (double)take_steps(l, start + ns_at_most);
    const double ns = bench_ns_since(start), n_read = (double)(device_bytes() - before);
    tokmap_loader_close(l);
    *bytes = n_read / (n_rows * (double)r->row_bytes);
    return n_rows * 1e9 / ns;
}

/* Rows a second if the file is read in order by plain reads through the page cache, for as long as
 * block shuffle is measured. */
static double plain_rate(cold *c, const cold_rows *r)
{
    uint8_t *buffer = bench_memory(SEQUENTIAL_BYTES);
    uint64_t at = 0;
    size_t n = SEQUENTIAL_BYTES;
    device_forget(&c->what->data->file, c->what->data->ds);
    const uint64_t start = tokmap_i_now_ns();
    for (; n == SEQUENTIAL_BYTES && tokmap_i_now_ns() < start + 4 * c->ns; at += n)
        bench_check_errno(
            tokmap_i_file_read(c->what->data->file.fd, buffer, SEQUENTIAL_BYTES, at, &n),
            c->what->data->info.token_path);
    const double seconds = bench_ns_since(start) / 1e9;
    free(buffer);
    return (double)at / (double)r->row_bytes / seconds;
}

static const bench_row *limit_of(const cold_rows *r, int i)
{
    return r->plain[i == BLOCK_SHUFFLE ? DEVICE_IN_ORDER : DEVICE_RANDOM];
}

static void measure_round(cold *c, const cold_rows *r)
{
    const size_t blocks = (r->row_bytes + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
    const device_reads random = {blocks * DEVICE_BLOCK, AT_ONCE, false, bench_random(&c->seed),
                                 c->ns};
    const device_reads in_order = {SEQUENTIAL_BYTES, SEQUENTIAL_AT_ONCE, true, 0, c->ns};
    const device_file *file = &c->what->data->file;
    bench_add_value(r->plain[DEVICE_RANDOM], device_rate(file, &random));
    bench_add_value(r->plain[DEVICE_IN_ORDER],
                    device_rate(file, &in_order) * SEQUENTIAL_BYTES / (double)r->row_bytes);
    bench_add_value(r->plain[PLAIN_READS], plain_rate(c, r));
    for (int i = 0; i < N_WAYS; i++) {
        const bench_row *limit = limit_of(r, i);
        double bytes = 0;
        if (!c->works[i])
            continue;
        const double rate = load_rows(c, r, &ways[i], &bytes);
        bench_add_value(r->ways[i][RATE], rate);
        bench_add_value(r->ways[i][SHARE], rate / limit->values[limit->n_values - 1]);
        bench_add_value(r->ways[i][BYTES], bytes);
    }
}

/* ---- Rows of figures ---- */

static void add_rows(const cold *c, bench_report *report, cold_rows *r)
{
    const double most_bytes = r->length < 2048 ? 3 : r->length < 8192 ? 2 : 1.3;
    for (int i = 0; i < N_PLAIN; i++) {
        r->plain[i] = bench_add_row(report, "rows/s", "%s%s, %u tokens", c->what->prefix,
                                    plain_names[i][0], r->length);
        bench_set_group(r->plain[i], plain_names[i][1], "cold, %u tokens", r->length);
    }
    for (int i = 0; i < N_WAYS; i++) {
        if (!c->works[i])
            continue;
        for (int k = 0; k < N_FIGURES; k++)
            r->ways[i][k] = bench_add_cell(report, figures[k], "%s%s, %u tokens", c->what->prefix,
                                           ways[i].name, r->length);
        bench_set_group(r->ways[i][RATE], ways[i].system, "cold, %u tokens", r->length);
        if (ways[i].least_share > 0)
            bench_set_goal(r->ways[i][SHARE], BENCH_AT_LEAST, ways[i].least_share);
        if (i == BLOCK_SHUFFLE || i == DIRECT)
            bench_set_goal(r->ways[i][BYTES], BENCH_AT_MOST, i == DIRECT ? most_bytes : 1.1);
    }
}

static void measure_all(cold *c, bench_report *report)
{
    const uint32_t n_lengths = c->what->n_lengths;
    cold_rows rows[MAX_LENGTHS];
    for (int i = 0; i < N_WAYS; i++) /* block shuffle follows the way that it is compared with */
        c->works[i] = i == BLOCK_SHUFFLE ? c->works[POPULATE]
                                         : load_data_works(c->what->data->ds, ways[i].io);
    for (uint32_t k = 0; k < n_lengths; k++) {
        const uint32_t length = c->what->lengths[k];
        rows[k] = (cold_rows){.length = length,
                              .row_bytes = c->what->data->info.token_bytes * ((size_t)length + 1)};
        add_rows(c, report, &rows[k]);
    }
    for (uint32_t i = 0; i < c->what->n_rounds * n_lengths; i++)
        measure_round(c, &rows[i % n_lengths]);
    for (uint32_t k = 0; k < n_lengths; k++) {
        const cold_rows *r = &rows[k];
        for (int i = 0; i < N_WAYS; i++)
            if (c->works[i])
                bench_set_limit(r->ways[i][RATE], limit_of(r, i), 1);
        if (c->works[BLOCK_SHUFFLE])
            bench_add_ratio(report, r->ways[BLOCK_SHUFFLE][RATE], r->plain[PLAIN_READS],
                            "%sblock shuffle / plain reads in order, %u tokens", c->what->prefix,
                            r->length);
    }
}

void cold_measure(const cold_data *what, bench_report *report)
{
    static const char text[] = "%s: cold reads are left out: this needs %s";
    const load_data *d = what->data;
    const char *path = d->info.token_path;
    const char *needs = d->info.token_file_bytes < least_bytes ? "4 MiB and more"
                        : d->file.direct_fd < 0
                            ? "a file system on a device, with O_DIRECT (see --dir)"
                            : NULL;
    cold c = {.what = what, .seed = 1, .ns = d->is_trial ? trial_ns : usual_ns};
    if (!needs)
        measure_all(&c, report);
    else if (what->may_be_left_out)
        cli_warn(text, path, needs);
    else
        bench_fail(text, path, needs);
}

/* ---- Page ---- */

void bench_cold(const bench_options *options, bench_report *report)
{
    static const uint32_t lengths[] = {1024, 4096, 8192};
    load_data data = load_data_open(options, options->all ? 2048 : 8192);
    const cold_data what = {.prefix = "",
                            .data = &data,
                            .lengths = lengths,
                            .n_lengths = sizeof lengths / sizeof *lengths,
                            .n_rounds = bench_rounds(options, options->all ? 3 : 5),
                            .may_be_left_out = options->all};
    cold_measure(&what, report);
    load_data_close(&data);
}
