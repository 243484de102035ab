/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cold_reads.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/device.h"
#include "core/load_data.h"

enum {
    BATCH_ROWS = 32,
    MAX_LENGTHS = 8,
    AT_ONCE = 128, /* as many reads at once as the loader has */
    SEQUENTIAL_BYTES = 1 << 20,
    SEQUENTIAL_AT_ONCE = 32
};

static const uint64_t usual_ns = 700000000, trial_ns = 20000000; /* of a measure */
static const uint64_t least_bytes = 4 << 20;
#define GROUP "cold, %u tokens"

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

typedef struct cold {
    const cold_reads *what;
    device_file file;
    uint64_t seed, ns; /* of each measure */
    uint32_t length, token_bytes;
    bool works[N_WAYS];
} cold;

static tokmap_loader *open_loader(const tokmap_dataset *const *ds, uint32_t length, const way *w,
                                  uint64_t seed)
{
    const tokmap_loader_options options = {.sequence_length = length,
                                           .batch_rows = BATCH_ROWS,
                                           .seed = seed,
                                           .shuffle = w->shuffle,
                                           .io = w->io};
    return load_data_one_source(ds, 1, options);
}

bool cold_reads_works(const tokmap_dataset *ds, tokmap_io io, const char *name)
{
    const way w = {.name = name, .io = io};
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader *l = open_loader(&ds, 1, &w, 1);
    if (l)
        tokmap_loader_get_info(l, &info);
    tokmap_loader_close(l);
    if (l && info.io != io)
        cli_warn("reading by '%s' does not work here: left out", name);
    return l && info.io == io;
}

/* ---- The loader ---- */

typedef struct rate {
    double rows, bytes; /* a second; device bytes for each byte of the rows */
} rate;

/* Runs for this long, or to the end of the epoch: in a second epoch its rows would be in memory. At
 * least one step. */
static bool take_steps(tokmap_loader *l, uint64_t until, uint64_t *n_rows)
{
    tokmap_loader_source_info source = {.struct_size = sizeof source};
    if (tokmap_loader_get_source(l, 0, &source))
        return false;
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    volatile uint8_t sum = 0;
    while ((*n_rows == 0 || tokmap_i_now_ns() < until) &&
           *n_rows + BATCH_ROWS <= source.n_windows) {
        if (tokmap_loader_next(l, &b, &err)) {
            cli_warn("%s", err.text);
            return false;
        }
        for (uint32_t i = 0; i < b.n_rows; i++) {
            const tokmap_row *row = &b.rows[i];
            const uint32_t n_bytes = row->n_tokens * row->token_bytes;
            for (uint32_t k = 0; k < n_bytes; k += 2048) /* every page of it */
                sum = (uint8_t)(sum + ((const uint8_t *)row->tokens)[k]);
        }
        *n_rows += b.n_rows;
    }
    return true;
}

static size_t row_bytes(const cold *c)
{
    return c->token_bytes * ((size_t)c->length + 1);
}

static uint64_t ns_of(const cold *c, const way *w)
{
    /* A group of blocks is read before its first row: a longer measure keeps that in proportion. */
    return w->shuffle == TOKMAP_SHUFFLE_BLOCK ? 4 * c->ns : c->ns;
}

static bool load_rows(cold *c, const way *w, rate *out)
{
    uint64_t n_rows = 0;
    device_forget(&c->file, c->what->ds);
    const uint64_t before = device_bytes(), start = tokmap_i_now_ns();
    tokmap_loader *l = open_loader(&c->what->ds, c->length, w, bench_random(&c->seed));
    if (!l)
        return false;
    const bool fine = take_steps(l, start + ns_of(c, w), &n_rows);
    const uint64_t ns = tokmap_i_now_ns() - start;
    const uint64_t n_read = device_bytes() - before;
    tokmap_loader_close(l);
    out->rows = (double)n_rows * 1e9 / (double)ns;
    out->bytes = (double)n_read / ((double)n_rows * (double)row_bytes(c));
    return fine && n_rows > 0;
}

/* Rows per second if the file is read in order by plain reads through the page cache, for as long
 * as block shuffle is measured; -1: it cannot be read. */
static double plain_rate(cold *c)
{
    uint8_t *buffer = malloc(SEQUENTIAL_BYTES);
    uint64_t at = 0;
    ssize_t n = buffer ? 1 : -1;
    device_forget(&c->file, c->what->ds);
    const uint64_t start = tokmap_i_now_ns();
    while (n > 0 && tokmap_i_now_ns() < start + ns_of(c, &ways[BLOCK_SHUFFLE])) {
        n = pread(c->file.fd, buffer, SEQUENTIAL_BYTES, (off_t)at);
        at += n > 0 ? (uint64_t)n : 0;
    }
    const double seconds = (double)(tokmap_i_now_ns() - start) / 1e9;
    free(buffer);
    return n < 0 ? -1 : (double)at / (double)row_bytes(c) / seconds;
}

/* ---- Rows ---- */

typedef struct cold_rows {
    bench_row *device, *sequential, *plain, *rows[N_WAYS], *bytes[N_WAYS], *share[N_WAYS];
} cold_rows;

/* For names on pages that have hot data too. */
static const char *cold_too(const cold *c)
{
    return strcmp(c->what->page, "cold") == 0 ? "" : "cold, ";
}

static bench_row *add_row(const cold *c, bench_report *report, const char *what, const char *unit)
{
    return bench_add_row(report, c->what->page, unit, "%s%s, %u tokens", cold_too(c), what,
                         c->length);
}

/* The rate, its share of the device's rate, and the bytes read from the device for each byte of a
 * row. */
static void add_way(const cold *c, bench_report *report, int i, cold_rows *r)
{
    static const char *const figures[][2] = {{"rate", "rows/s"}, {"share", "x"}, {"bytes", "x"}};
    const double most_bytes = c->length < 2048 ? 3 : c->length < 8192 ? 2 : 1.3;
    bench_row **const rows[] = {&r->rows[i], &r->share[i], &r->bytes[i]};
    for (int k = 0; k < 3; k++)
        *rows[k] = bench_add_cell(report, c->what->page, figures[k], "%s%s, %u tokens", cold_too(c),
                                  ways[i].name, c->length);
    bench_set_group(r->rows[i], ways[i].system, GROUP, c->length);
    if (ways[i].least_share > 0)
        bench_set_goal(r->share[i], BENCH_AT_LEAST, ways[i].least_share);
    if (ways[i].shuffle == TOKMAP_SHUFFLE_BLOCK)
        bench_set_goal(r->bytes[i], BENCH_AT_MOST, 1.1);
    else if (ways[i].io == TOKMAP_IO_DIRECT)
        bench_set_goal(r->bytes[i], BENCH_AT_MOST, most_bytes);
}

static void add_rows(const cold *c, bench_report *report, cold_rows *r)
{
    r->device = add_row(c, report, "device, random reads of a row", "rows/s");
    bench_set_group(r->device, "device, random reads", GROUP, c->length);
    r->sequential = add_row(c, report, "device, sequential", "rows/s");
    bench_set_group(r->sequential, "device, sequential", GROUP, c->length);
    r->plain = add_row(c, report, "plain reads in order", "rows/s");
    bench_set_group(r->plain, "plain reads in order", GROUP, c->length);
    for (int i = 0; i < N_WAYS; i++)
        if (c->works[i])
            add_way(c, report, i, r);
}

static const bench_row *limit_of(const cold_rows *r, int i)
{
    return ways[i].shuffle == TOKMAP_SHUFFLE_BLOCK ? r->sequential : r->device;
}

static int measure_ways(cold *c, const cold_rows *r)
{
    const size_t blocks = (row_bytes(c) + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
    const device_reads random = {blocks * DEVICE_BLOCK, AT_ONCE, false, bench_random(&c->seed),
                                 c->ns};
    const device_reads in_order = {SEQUENTIAL_BYTES, SEQUENTIAL_AT_ONCE, true, 0, c->ns};
    const double device = device_rate(&c->file, &random);
    const double sequential = device_rate(&c->file, &in_order), plain = plain_rate(c);
    if (device < 0 || sequential < 0 || plain < 0) {
        cli_warn("the token file could not be read");
        return 1;
    }
    bench_add_value(r->plain, plain);
    bench_add_value(r->device, device);
    bench_add_value(r->sequential, sequential * SEQUENTIAL_BYTES / (double)row_bytes(c));
    for (int i = 0; i < N_WAYS; i++) {
        rate got;
        if (!c->works[i])
            continue;
        if (!load_rows(c, &ways[i], &got))
            return 1;
        const bench_row *limit = limit_of(r, i);
        bench_add_value(r->rows[i], got.rows);
        bench_add_value(r->share[i], got.rows / limit->values[limit->n_values - 1]);
        bench_add_value(r->bytes[i], got.bytes);
    }
    return 0;
}

static void set_goals(const cold *c, bench_report *report, const cold_rows *r)
{
    for (int i = 0; i < N_WAYS; i++)
        if (c->works[i])
            bench_set_rate_limit(r->rows[i], limit_of(r, i), 1);
    if (c->works[BLOCK_SHUFFLE])
        bench_add_ratio(report, r->rows[BLOCK_SHUFFLE], r->plain,
                        "%sblock shuffle / plain reads in order, %u tokens", cold_too(c),
                        c->length);
}

static int measure_all(cold *c, bench_report *report)
{
    cold_rows rows[MAX_LENGTHS];
    int code = 0;
    for (int i = 0; i < N_WAYS; i++) /* block shuffle follows the way that it is compared with */
        c->works[i] = ways[i].shuffle == TOKMAP_SHUFFLE_BLOCK
                          ? c->works[POPULATE]
                          : cold_reads_works(c->what->ds, ways[i].io, ways[i].name);
    for (uint32_t k = 0; k < c->what->n_lengths; k++) {
        c->length = c->what->lengths[k];
        add_rows(c, report, &rows[k]);
    }
    for (uint32_t i = 0; i < c->what->n_rounds && !code; i++) {
        for (uint32_t k = 0; k < c->what->n_lengths && !code; k++) {
            c->length = c->what->lengths[k];
            code = measure_ways(c, &rows[k]);
        }
    }
    for (uint32_t k = 0; k < c->what->n_lengths; k++) {
        c->length = c->what->lengths[k];
        set_goals(c, report, &rows[k]);
    }
    return code;
}

int cold_reads_measure(const cold_reads *what, bench_report *report)
{
    const tokmap_dataset_info info = load_data_info(what->ds);
    cold c = {.what = what,
              .seed = 1,
              .ns = load_data_is_trial(what->ds) ? trial_ns : usual_ns,
              .token_bytes = info.token_bytes};
    int code = COLD_READS_LEFT_OUT;
    if (!device_open(&c.file, info.token_path))
        return 1;
    if (info.token_file_bytes < least_bytes)
        cli_warn("%s: cold reads are left out: this needs 4 MiB and more", info.token_path);
    else if (c.file.direct_fd < 0)
        cli_warn("%s: cold reads are left out: this needs a file system on a device, with O_DIRECT "
                 "(see --dir)",
                 info.token_path);
    else
        code = measure_all(&c, report);
    device_close(&c.file);
    return code;
}
