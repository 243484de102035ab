/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - which document contains this token: how many answers per second, from the map. An
 * answer takes at least one read at a random place of the index, which is measured too. */
#include <string.h>

#include "cli/cli.h"
#include "core/load_data.h"
#include "pages/pages.h"

enum {
    ROUNDS = 11,
    LOOKUPS = 1000000,
    MEAN_LENGTH = 1000
};
static const uint64_t default_documents = 1000000000;

enum {
    READ,
    READ_MANY,
    FIND,
    FIND_MANY,
    DOCUMENT,
    N_MEASURED,
    RATE = N_MEASURED, /* of FIND_MANY */
    N_KINDS
};
static const struct {
    const char *name, *unit;
} kinds[N_KINDS] = {
    {"random read, one by one", "ns"},          {"random read, many at once", "ns"},
    {"find by token, one by one", "ns"},        {"find by token, many at once", "ns"},
    {"document by number, many at once", "ns"}, {"lookups a second, one thread", "M/s"}};

typedef struct subject {
    const tokmap_dataset *ds;
    const uint8_t *index; /* mapped without the library */
    size_t index_bytes;
} subject;

/* Answers one question about a random place, and adds something of the answer to *sum. */
static bool answer(const subject *s, int kind, uint64_t random, uint64_t n, uint64_t *sum)
{
    tokmap_document doc;
    uint64_t word;
    const uint64_t at = random % n;
    if (kind <= READ_MANY) {
        memcpy(&word, s->index + at * sizeof word, sizeof word);
        *sum += word;
        return true;
    }
    if (kind == DOCUMENT ? tokmap_dataset_document(s->ds, at, &doc) != TOKMAP_OK
                         : tokmap_dataset_find_document(s->ds, at, &doc) || at < doc.first_token)
        return false;
    *sum += kind == DOCUMENT ? doc.first_token : doc.index;
    return true;
}

/* One by one, each question depends on the answer before it, so that nothing overlaps: the latency
 * for one caller. Many at once: the time for each of many independent questions. */
static double measure_ns(const subject *s, int kind, uint64_t seed)
{
    const tokmap_dataset_info info = load_data_info(s->ds);
    const bool chained = kind == READ || kind == FIND;
    const uint64_t n = kind <= READ_MANY  ? s->index_bytes / sizeof(uint64_t)
                       : kind == DOCUMENT ? info.n_documents
                                          : info.n_tokens;
    uint64_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (int i = 0; i < LOOKUPS; i++)
        if (n == 0 || !answer(s, kind, bench_random(&seed) + (chained ? sum & 1 : 0), n, &sum))
            return -1;
    const double ns = (double)(tokmap_i_now_ns() - start) / LOOKUPS;
    return sum == 1 ? -1 : ns; /* keeps the compiler from removing the sum */
}

/* Maps every page of both maps of the index, so that lookups are measured and not the disk. */
static int touch_all(const subject *s)
{
    tokmap_document doc;
    volatile uint8_t sum = 0;
    for (uint64_t i = 0; i < load_data_info(s->ds).n_documents; i += 64)
        if (tokmap_dataset_document(s->ds, i, &doc))
            return cli_error(1, "a document could not be looked up");
    for (size_t i = 0; i < s->index_bytes; i += 4096)
        sum = (uint8_t)(sum + s->index[i]);
    return 0;
}

static int measure_round(const subject *s, uint64_t seed, bench_row *const *rows)
{
    double ns[N_MEASURED];
    for (int i = 0; i < N_MEASURED; i++) {
        ns[i] = measure_ns(s, i, N_MEASURED * seed + (uint64_t)i);
        if (bench_try_value(rows[i], ns[i]))
            return 1;
    }
    bench_add_value(rows[RATE], 1e3 / ns[FIND_MANY]);
    return 0;
}

static int measure_size(const bench_options *options, uint64_t n_documents, bench_row *const *rows)
{
    subject s = {.ds = NULL};
    int code = load_data_make_sparse(options, 0, n_documents * MEAN_LENGTH, n_documents) ||
               load_data_open_made(options, 0, &s.ds, 1);
    if (!code)
        s.index = load_data_map(load_data_name(options, 0).s, ".tmi", &s.index_bytes);
    code = code || !s.index || touch_all(&s);
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    for (uint32_t i = 0; i < n_rounds && !code; i++)
        code = measure_round(&s, i, rows);
    load_data_unmap(s.index, s.index_bytes);
    load_data_close(&s.ds, 1);
    bench_set_goal(rows[FIND], BENCH_AT_MOST, 1000);
    bench_set_time_limit(rows[FIND], rows[READ]);
    bench_set_time_limit(rows[FIND_MANY], rows[READ_MANY]);
    bench_set_time_limit(rows[DOCUMENT], rows[READ_MANY]);
    return code;
}

static int run_lookup(const bench_options *options, bench_report *report)
{
    const uint64_t large = options->n_documents ? options->n_documents : default_documents;
    const uint64_t sizes[] = {large / 1000 ? large / 1000 : 1, large};
    bench_row *rows[2][N_KINDS];
    char column[16];
    int code = 0;
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const int k = i / 2;
        snprintf(column, sizeof column, "%.0e docs", (double)sizes[i % 2]);
        rows[i % 2][k] = bench_add_cell(report, (const char *const[]){column, kinds[k].unit}, "%s",
                                        kinds[k].name);
    }
    for (int i = 0; i < 2 && !code; i++)
        code = measure_size(options, sizes[i], rows[i]);
    return code;
}

const bench_page lookup_page = {
    .name = "lookup",
    .help = "which document holds a token, among a million and a billion documents",
    .takes = {"documents"},
    .in_all = true,
    .run = run_lookup,
};
