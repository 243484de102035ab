/* SPDX-License-Identifier: Apache-2.0 */
/* joined.c - the loader over a joined dataset, compared with the same loader over a flat dataset of
 * the same tokens; and how soon a dataset of very many token files is open and has its first
 * batch. All data are in memory. */
#include <stdlib.h>
#include <string.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/load_data.h"
#include "tokmap_writer.h"

enum {
    ROUNDS = 101,
    N_FILES = 100,
    MANY_FILES = 10000,
    MANY_TOKENS = 16000, /* in each of very many files */
    BATCH_ROWS = 32,
    AT_ONCE = 1 << 19,
    N_LENGTHS = 2,
    N_WAYS = 3,
    N_KINDS = 2
};
static const uint64_t usual_bytes = (uint64_t)1 << 30, bytes_a_round = 16 << 20;
static const uint32_t lengths[N_LENGTHS] = {1024, 4096};
static const struct {
    const char *name;
    tokmap_io io;
} ways[N_WAYS] = {
    {"map", TOKMAP_IO_MAP}, {"populate", TOKMAP_IO_POPULATE}, {"read", TOKMAP_IO_READ}};
static const char *const kinds[N_KINDS] = {"flat", "joined"};

typedef struct subject {
    const bench_options *options;
    const tokmap_dataset *ds[N_KINDS];
    uint8_t *buffer; /* a batch */
    uint64_t seed;
} subject;

/* ---- Data ---- */

static void name_part(const bench_options *options, uint32_t i, char *prefix, size_t n_bytes)
{
    snprintf(prefix, n_bytes, "%s/joined-part-%u", options->dir, i);
}

static void name_whole(const bench_options *options, int kind, char *prefix, size_t n_bytes)
{
    snprintf(prefix, n_bytes, "%s/joined-%s", options->dir, kinds[kind]);
}

static int copy_file(const char *from, const char *to, const char *suffix)
{
    static char buffer[1 << 16];
    char path[4200];
    snprintf(path, sizeof path, "%s%s", from, suffix);
    FILE *in = fopen(path, "rb");
    snprintf(path, sizeof path, "%s%s", to, suffix);
    FILE *out = in ? fopen(path, "wb") : NULL;
    bool fine = out != NULL;
    for (size_t n; fine && (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        fine = fwrite(buffer, 1, n, out) == n;
    if (in)
        fclose(in);
    if (out && fclose(out) != 0)
        fine = false;
    if (!fine)
        cli_warn("%s: cannot be written", path);
    return !fine;
}

/* Parts with the same tokens, which makes no difference here. */
static int make_parts(const bench_options *options, uint32_t n, uint64_t n_tokens)
{
    char first[4096], prefix[4096];
    name_part(options, 0, first, sizeof first);
    int code = bench_make_random(first, n_tokens);
    for (uint32_t i = 1; i < n && !code; i++) {
        name_part(options, i, prefix, sizeof prefix);
        code = copy_file(first, prefix, ".bin") || copy_file(first, prefix, ".tmi");
    }
    return code;
}

static tokmap_status add_part(tokmap_writer *w, int kind, const char *prefix, tokmap_error *err)
{
    tokmap_dataset *part = NULL;
    tokmap_status status = kind ? tokmap_dataset_open_index(&part, prefix, err)
                                : tokmap_dataset_open(&part, prefix, err);
    if (!status)
        status = kind ? tokmap_writer_join(w, part, NULL, err)
                      : tokmap_writer_append_dataset(w, part, err);
    tokmap_dataset_close(part);
    return status;
}

/* Makes the flat or the joined dataset of the parts. */
static int make_whole(const bench_options *options, int kind, uint32_t n_parts)
{
    const tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 50257, .eod_id = TOKMAP_NO_ID, .replace = 1};
    char prefix[4096];
    tokmap_writer *w = NULL;
    tokmap_error err;
    name_whole(options, kind, prefix, sizeof prefix);
    tokmap_status status = kind ? tokmap_writer_open_joined(&w, prefix, &o, &err)
                                : tokmap_writer_open(&w, prefix, &o, &err);
    for (uint32_t i = 0; i < n_parts && !status; i++) {
        name_part(options, i, prefix, sizeof prefix);
        status = add_part(w, kind, prefix, &err);
    }
    if (!status)
        status = tokmap_writer_finish(w, &err);
    tokmap_writer_close(w);
    if (status)
        cli_warn("%s", err.text);
    return status != 0;
}

static int open_whole(const bench_options *options, int kind, const tokmap_dataset **ds)
{
    char prefix[4096];
    tokmap_error err;
    tokmap_dataset *opened = NULL;
    name_whole(options, kind, prefix, sizeof prefix);
    const tokmap_status status = tokmap_dataset_open(&opened, prefix, &err);
    if (status)
        cli_warn("%s", err.text);
    *ds = opened;
    return status != 0;
}

static void remove_all(const bench_options *options, uint32_t n_parts)
{
    char prefix[4096];
    for (int kind = 0; kind < N_KINDS; kind++) {
        name_whole(options, kind, prefix, sizeof prefix);
        bench_remove(prefix);
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        name_part(options, i, prefix, sizeof prefix);
        bench_remove(prefix);
    }
}

/* Reads all tokens and touches every page of the maps. */
static int warm_up(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    uint8_t *buffer = malloc(4 * (size_t)AT_ONCE);
    volatile uint8_t sum = 0;
    tokmap_dataset_get_info(ds, &info);
    int code = !buffer;
    for (uint64_t i = 0; i < info.n_tokens && !code; i += AT_ONCE) {
        const uint64_t left = info.n_tokens - i;
        code = tokmap_dataset_read(ds, i, left < AT_ONCE ? left : AT_ONCE, buffer, NULL) != 0;
    }
    for (uint64_t i = 0; i < info.n_tokens && !code; i += 2048) {
        const void *token = NULL;
        code = tokmap_dataset_tokens(ds, i, 1, &token) != TOKMAP_OK;
        sum = code ? 0 : *(const uint8_t *)token;
    }
    (void)sum;
    free(buffer);
    return code;
}

/* ---- Hundred files ---- */

typedef struct pair {
    bench_row *rows[N_KINDS];
    tokmap_loader *loaders[N_KINDS];
    uint32_t length;
    tokmap_io io;
    bool gathers;
} pair;

/* ns per row, or -1. */
static double run_steps(subject *s, const pair *p, int kind)
{
    const tokmap_gather_options gather = {.struct_size = sizeof gather, .inputs = s->buffer};
    const uint64_t n_steps = bytes_a_round / 2 / p->length / BATCH_ROWS;
    tokmap_batch b = {.struct_size = sizeof b};
    bool failed = false;
    uintptr_t sum = 0;
    const uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < n_steps && !failed; i++) {
        failed = tokmap_loader_next(p->loaders[kind], &b, NULL) != TOKMAP_OK ||
                 (p->gathers && tokmap_batch_gather(&b, &gather, NULL) != TOKMAP_OK);
        for (uint32_t k = 0; k < BATCH_ROWS && !p->gathers && !failed; k++)
            sum += (uintptr_t)b.rows[k].tokens;
    }
    const double ns = (double)(bench_now_ns() - start);
    return failed || sum == 1 ? -1 : ns / (double)n_steps / BATCH_ROWS;
}

/* The loaders stay open, so that both go on where they were. */
static int open_pair(subject *s, bench_report *report, const char *what, pair *p)
{
    const tokmap_loader_options options = {
        .sequence_length = p->length, .batch_rows = BATCH_ROWS, .io = p->io, .seed = 1};
    char line[80];
    snprintf(line, sizeof line, "%s, %u tokens", what, p->length);
    for (int kind = 0; kind < N_KINDS; kind++) {
        p->rows[kind] =
            bench_add_cell(report, "joined", line, kinds[kind], p->gathers ? "GB/s" : "ns");
        p->loaders[kind] = load_data_one_source(&s->ds[kind], 1, options);
        if (!p->loaders[kind] || run_steps(s, p, kind) < 0)
            return 1;
    }
    return 0;
}

static int measure_pair(subject *s, const pair *p, uint32_t round)
{
    for (int i = 0; i < N_KINDS; i++) {
        const int kind = (i + (int)round) % N_KINDS;
        const double ns = run_steps(s, p, kind);
        if (ns < 0)
            return 1;
        bench_add_value(p->rows[kind], p->gathers ? 2.0 * (p->length + 1) / ns : ns);
    }
    return 0;
}

/* Reading ahead has none: data in memory are used from the map, and others wait for the device. */
static void set_goal(bench_report *report, const pair *p)
{
    char name[80];
    snprintf(name, sizeof name, "joined / flat, %.60s", p->rows[0]->line);
    bench_row *ratio = bench_add_ratio(report, p->rows[1], p->rows[0], name);
    if (p->io == TOKMAP_IO_MAP)
        bench_set_goal(ratio, p->gathers ? BENCH_AT_LEAST : BENCH_AT_MOST,
                       p->gathers ? 0.95 : 1.05);
}

static int open_pairs(subject *s, bench_report *report, pair *pairs)
{
    int n = 0, code = 0;
    for (int i = 0; i < N_LENGTHS && !code; i++) {
        pairs[n] = (pair){.length = lengths[i], .io = TOKMAP_IO_MAP};
        code = open_pair(s, report, "zero-copy sample", &pairs[n++]);
        for (int k = 0; k < N_WAYS && !code; k++) {
            char what[40];
            snprintf(what, sizeof what, "batch gathered, %s", ways[k].name);
            pairs[n] = (pair){.length = lengths[i], .io = ways[k].io, .gathers = true};
            code = open_pair(s, report, what, &pairs[n++]);
        }
    }
    return code;
}

static int measure_pairs(subject *s, bench_report *report)
{
    enum {
        N_PAIRS = N_LENGTHS * (N_WAYS + 1)
    };
    pair pairs[N_PAIRS];
    memset(pairs, 0, sizeof pairs);
    int code = open_pairs(s, report, pairs);
    for (uint32_t round = 0; round < bench_rounds(s->options, ROUNDS) && !code; round++)
        for (int i = 0; i < N_PAIRS && !code; i++)
            code = measure_pair(s, &pairs[i], round);
    for (int i = 0; i < N_PAIRS; i++) {
        if (!code)
            set_goal(report, &pairs[i]);
        for (int kind = 0; kind < N_KINDS; kind++)
            tokmap_loader_close(pairs[i].loaders[kind]);
    }
    return code;
}

static int measure_hundred(subject *s, bench_report *report)
{
    const uint64_t n_bytes = s->options->load_bytes ? s->options->load_bytes : usual_bytes;
    int code = make_parts(s->options, N_FILES, n_bytes / 2 / N_FILES);
    for (int kind = 0; kind < N_KINDS && !code; kind++) {
        code = make_whole(s->options, kind, N_FILES) ||
               open_whole(s->options, kind, &s->ds[kind]) || warm_up(s->ds[kind]);
    }
    if (!code)
        code = measure_pairs(s, report);
    load_data_close(s->ds, N_KINDS);
    remove_all(s->options, N_FILES);
    return code;
}

/* ---- Very many files ---- */

typedef struct many_rows {
    bench_row *join, *open, *first;
} many_rows;

static void add_time(bench_row *row, uint64_t since, double unit_ns)
{
    bench_add_value(row, (double)(bench_now_ns() - since) / unit_ns);
}

/* All in a new dataset, whose token files nobody has opened. */
static int measure_start(subject *s, const many_rows *r)
{
    const tokmap_loader_options options = {
        .sequence_length = lengths[0], .batch_rows = BATCH_ROWS, .seed = s->seed};
    const tokmap_gather_options gather = {.struct_size = sizeof gather, .inputs = s->buffer};
    tokmap_batch b = {.struct_size = sizeof b};
    const tokmap_dataset *ds = NULL;
    uint64_t start = bench_now_ns();
    int code = make_whole(s->options, 1, MANY_FILES);
    add_time(r->join, start, 1e9);
    start = bench_now_ns();
    code = code || open_whole(s->options, 1, &ds);
    add_time(r->open, start, 1e6);
    tokmap_loader *l = code ? NULL : load_data_one_source(&ds, 1, options);
    code = !l || tokmap_loader_next(l, &b, NULL) || tokmap_batch_gather(&b, &gather, NULL);
    add_time(r->first, start, 1e6);
    tokmap_loader_close(l);
    load_data_close(&ds, 1);
    return code;
}

static int measure_many(subject *s, bench_report *report)
{
    const many_rows r = {bench_add_row(report, "joined", "join, 10,000 files", "s"),
                         bench_add_row(report, "joined", "open, 10,000 files", "ms"),
                         bench_add_row(report, "joined", "first batch, 10,000 files", "ms")};
    int code = make_parts(s->options, MANY_FILES, MANY_TOKENS);
    for (uint32_t round = 0; round < bench_rounds(s->options, ROUNDS) && !code; round++) {
        s->seed = bench_random(&s->seed) % 1000000;
        code = measure_start(s, &r);
    }
    bench_set_goal(r.join, BENCH_AT_MOST, 10);
    bench_set_goal(r.open, BENCH_AT_MOST, 10);
    bench_set_goal(r.first, BENCH_AT_MOST, 100);
    remove_all(s->options, MANY_FILES);
    return code;
}

/* ---- Page ---- */

static int run_joined(const bench_options *options, bench_report *report)
{
    subject s = {.options = options, .seed = 1};
    s.buffer = aligned_alloc(4096, 4 * BATCH_ROWS * 8192);
    if (!s.buffer)
        return 1;
    memset(s.buffer, 0, 4 * BATCH_ROWS * 8192);
    int code = measure_hundred(&s, report);
    if (!code)
        code = measure_many(&s, report);
    if (code)
        cli_warn("joined: it could not be measured");
    free(s.buffer);
    return code;
}

const bench_page joined_page = {
    .name = "joined",
    .help = "the loader over 100 token files against one; opening 10,000 (20,000 files are made)",
    .takes = {"load-mib"},
    .run = run_joined,
};
