/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - starting, seeking, and resuming after a restart, from a million tokens to ten million
 * million; and the memory it takes. The tokens are holes in files, and `next` alone touches none of
 * them: this measures the cost of the size of the data, not of reading it. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/cold_reads.h"
#include "core/load_data.h"
#include "core/plain_map.h"

enum {
    ROUNDS = 11,
    MAX_DATASETS = 10,
    LENGTH = 4096,
    BATCH_ROWS = 32,
    LOCATES = 200000,
    N_WAYS = 2
};

static const struct {
    const char *name;
    uint64_t n_tokens; /* of a dataset */
    uint32_t n_datasets;
} sizes[] = {{"10^6", 1000000, 1},
             {"10^7", 10000000, 1},
             {"10^8", 100000000, 1},
             {"10^9", 1000000000, 1},
             {"10^10", 10000000000, 1},
             {"10^11", 100000000000, 1},
             {"10^12", 1000000000000, 1},
             {"10^13", 1000000000000, MAX_DATASETS}}; /* the size of a file is limited */
enum {
    N_SIZES = sizeof sizes / sizeof *sizes
};

static const struct {
    const char *name;
    tokmap_io io;
} ways[N_WAYS] = {{"map", TOKMAP_IO_MAP}, {"direct", TOKMAP_IO_DIRECT}};

typedef struct scale_rows {
    bench_row *limit, *locate;
    bench_row *open[N_WAYS], *start[N_WAYS], *seek[N_WAYS], *restore[N_WAYS], *memory[N_WAYS],
        *resident[N_WAYS];
} scale_rows;

typedef struct subject {
    const bench_options *options;
    uint32_t n_datasets;
    uint64_t seed;
    bool works[N_WAYS];
} subject;

/* ---- What opening is measured against ---- */

/* All datasets. -1: it failed. */
static double plain_open_us(const subject *s)
{
    plain_map maps[MAX_DATASETS] = {{0}};
    char prefix[4096];
    bool fine = true;
    const uint64_t start = bench_now_ns();
    for (uint32_t i = 0; i < s->n_datasets && fine; i++) {
        load_data_name(s->options, i, prefix, sizeof prefix);
        fine = plain_map_open(&maps[i], prefix);
    }
    const double us = (double)(bench_now_ns() - start) / 1e3;
    for (uint32_t i = 0; i < s->n_datasets; i++)
        plain_map_close(&maps[i]);
    return fine ? us : -1;
}

/* ---- The loader ---- */

/* Private pages of this process, as the system counts them. */
static double anonymous_kib(void)
{
    char line[256];
    double n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0)
            n = strtod(line + 8, NULL);
    if (f)
        fclose(f);
    return n;
}

static tokmap_loader *open_loader(const subject *s, const tokmap_dataset *const *datasets,
                                  tokmap_io io)
{
    const tokmap_loader_options options = {
        .sequence_length = LENGTH, .batch_rows = BATCH_ROWS, .io = io, .seed = 1};
    return load_data_one_source(datasets, s->n_datasets, options);
}

static uint64_t any_sample(subject *s)
{
    return bench_random(&s->seed) >> 16;
}

static bool locate_many(subject *s, tokmap_loader *l, bench_row *row)
{
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    tokmap_error err;
    uint64_t sum = 0;
    bool failed = false;
    const uint64_t first = any_sample(s), start = bench_now_ns();
    for (uint64_t g = 0; g < LOCATES && !failed; g++) {
        failed = tokmap_loader_locate(l, first + g, &at, &err) != TOKMAP_OK;
        sum += at.first_token;
    }
    bench_add_value(row, (double)(bench_now_ns() - start) / LOCATES);
    return !failed && sum != 1;
}

/* The time since `begun`, in us. */
static double us_since(uint64_t begun)
{
    return (double)(bench_now_ns() - begun) / 1e3;
}

static bool measure_loader(subject *s, tokmap_loader *l, int way, const scale_rows *r)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_loader_info info = {.struct_size = sizeof info};
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    uint64_t begun = bench_now_ns();
    bool fine = tokmap_loader_seek(l, any_sample(s), &err) == TOKMAP_OK &&
                tokmap_loader_save(l, state, &err) == TOKMAP_OK &&
                tokmap_loader_next(l, &b, &err) == TOKMAP_OK;
    bench_add_value(r->seek[way], us_since(begun));
    fine = fine && tokmap_loader_seek(l, any_sample(s), &err) == TOKMAP_OK;
    begun = bench_now_ns();
    fine = fine && tokmap_loader_restore(l, state, &err) == TOKMAP_OK &&
           tokmap_loader_next(l, &b, &err) == TOKMAP_OK;
    bench_add_value(r->restore[way], us_since(begun));
    tokmap_loader_get_info(l, &info);
    bench_add_value(r->memory[way], (double)info.resident_bytes / 1024);
    if (way == 0)
        fine = fine && locate_many(s, l, r->locate);
    if (!fine)
        cli_warn("%s", err.text);
    return fine;
}

static int measure_way(subject *s, int way, const scale_rows *r)
{
    const tokmap_dataset *datasets[MAX_DATASETS];
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
#ifdef __GLIBC__
    malloc_trim(0); /* so that memory of earlier measures is not reused for free */
#endif
    const double before = anonymous_kib();
    const uint64_t begun = bench_now_ns();
    int code = load_data_open_sparse(s->options, datasets, s->n_datasets);
    tokmap_loader *l = code ? NULL : open_loader(s, datasets, ways[way].io);
    if (l) {
        bench_add_value(r->open[way], us_since(begun));
        if (tokmap_loader_next(l, &b, &err)) {
            cli_warn("%s", err.text);
            code = 1;
        }
        bench_add_value(r->start[way], us_since(begun));
    }
    if (!l || code || !measure_loader(s, l, way, r))
        code = 1;
    bench_add_value(r->resident[way], anonymous_kib() - before);
    tokmap_loader_close(l);
    load_data_close(datasets, s->n_datasets);
    return code;
}

/* ---- Page ---- */

static void set_size(bench_row *row, const char *group, int size)
{
    bench_set_group(row, group, "");
    bench_set_x(row, (double)sizes[size].n_tokens * sizes[size].n_datasets, "tokens");
}

static bench_row *add_plain(bench_report *report, const char *what, int size, const char *unit)
{
    char name[80];
    snprintf(name, sizeof name, "%s, %s tokens", what, sizes[size].name);
    bench_row *row = bench_add_row(report, "scale", name, unit);
    set_size(row, what, size);
    return row;
}

static bench_row *add_cell(bench_report *report, int way, int size, const char *const *what)
{
    char line[80];
    snprintf(line, sizeof line, "%s, %s tokens", ways[way].name, sizes[size].name);
    bench_row *row = bench_add_cell(report, "scale", line, what[0], what[1]);
    set_size(row, what[2], size);
    return row;
}

static void add_cells(bench_report *report, int way, int size, scale_rows *r)
{
    static const char *const what[][3] = {{"open", "us", "opening"},
                                          {"start", "us", "opening, and the first batch"},
                                          {"seek", "us", "going to a sample, and its batch"},
                                          {"restore", "us", "restoring, and the next batch"},
                                          {"memory", "KiB", "memory of the loader"},
                                          {"RSS", "KiB", "memory of the process for it"}};
    bench_row **rows[] = {&r->open[way],    &r->start[way],  &r->seek[way],
                          &r->restore[way], &r->memory[way], &r->resident[way]};
    for (int i = 0; i < 6; i++) {
        *rows[i] = add_cell(report, way, size, what[i]);
        if (i >= 1 && i <= 3)
            bench_set_goal(*rows[i], BENCH_AT_MOST, 10000);
    }
}

static int measure_size(subject *s, int size, const scale_rows *r)
{
    s->n_datasets = sizes[size].n_datasets;
    int code = load_data_make_sparse(s->options, sizes[size].n_tokens, s->n_datasets);
    const uint32_t n_rounds = bench_rounds(s->options, ROUNDS);
    for (uint32_t i = 0; i < n_rounds && !code; i++) {
        const double limit = plain_open_us(s);
        code = limit < 0;
        if (!code)
            bench_add_value(r->limit, limit);
        for (int w = 0; w < N_WAYS && !code; w++)
            code = s->works[w] ? measure_way(s, w, r) : 0;
    }
    for (int w = 0; w < N_WAYS && !code; w++)
        if (s->works[w])
            bench_set_time_limit(r->open[w], r->limit);
    load_data_remove(s->options, s->n_datasets);
    return code;
}

/* Tries the smallest size, so that a way that does not work is reported once. */
static int try_ways(subject *s)
{
    const tokmap_dataset *ds = NULL;
    s->works[0] = true;
    int code = load_data_make_sparse(s->options, sizes[0].n_tokens, 1);
    if (!code)
        code = load_data_open_sparse(s->options, &ds, 1);
    for (int w = 1; w < N_WAYS && !code; w++)
        s->works[w] = cold_reads_works(ds, ways[w].io, ways[w].name);
    load_data_close(&ds, 1);
    load_data_remove(s->options, 1);
    return code;
}

static int run_scale(const bench_options *options, bench_report *report)
{
    subject s = {.options = options, .seed = 1};
    scale_rows rows[N_SIZES];
    int code = try_ways(&s);
    for (int w = 0; w < N_WAYS; w++)
        for (int i = 0; i < N_SIZES && s.works[w]; i++)
            add_cells(report, w, i, &rows[i]);
    for (int i = 0; i < N_SIZES; i++)
        rows[i].limit = add_plain(report, "plain open and map", i, "us");
    for (int i = 0; i < N_SIZES; i++)
        rows[i].locate = add_plain(report, "locate, one sample", i, "ns");
    for (int i = 0; i < N_SIZES && !code; i++)
        code = measure_size(&s, i, &rows[i]);
    return code;
}

const bench_page scale_page = {
    .name = "scale",
    .help = "starting up, seeking, restoring and memory at 10^6 to 10^13 tokens",
    .in_all = true,
    .run = run_scale,
};
