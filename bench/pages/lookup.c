/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - which document contains this token: how many answers per second, from the map. An
 * answer takes at least one read at a random place of the index, which is measured too. */
#include <stdlib.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/load_data.h"
#include "core/plain_map.h"
#include "tokmap.h"

enum {
    ROUNDS = 11,
    LOOKUPS = 1000000,
    MEAN_LENGTH = 1000
};
static const uint64_t default_documents = 1000000000;

/* Looks up random tokens, or random documents. With `chained` each depends on the answer before it,
 * so that nothing overlaps: the latency for one caller; without, the time for each of many
 * independent questions. */
static double lookup_ns(const tokmap_dataset *ds, bool by_token, bool chained, uint64_t seed)
{
    const tokmap_dataset_info info = load_data_info(ds);
    const uint64_t n = by_token ? info.n_tokens : info.n_documents;
    uint64_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        tokmap_document doc;
        const uint64_t at = (bench_random(&seed) + (chained ? sum & 1 : 0)) % n;
        if (by_token ? tokmap_dataset_find_document(ds, at, &doc) || at < doc.first_token
                     : tokmap_dataset_document(ds, at, &doc) != TOKMAP_OK)
            return -1;
        sum += by_token ? doc.index : doc.first_token;
    }
    const double ns = (double)(tokmap_i_now_ns() - start) / LOOKUPS;
    return sum == 1 ? -1 : ns; /* keeps the compiler from removing the sum */
}

/* Maps every page of the index, so that lookups are measured and not the disk. */
static int touch_all(const tokmap_dataset *ds, uint64_t n_documents)
{
    tokmap_document doc;
    for (uint64_t i = 0; i < n_documents; i += 64)
        if (tokmap_dataset_document(ds, i, &doc))
            return 1;
    return 0;
}

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

static int measure_round(const tokmap_dataset *ds, const plain_map *map, uint64_t seed,
                         bench_row *const *rows)
{
    const double ns[N_MEASURED] = {
        plain_map_index_ns(map, true, LOOKUPS, seed),
        plain_map_index_ns(map, false, LOOKUPS, ~seed), lookup_ns(ds, true, true, seed),
        lookup_ns(ds, true, false, ~seed), lookup_ns(ds, false, false, seed + 1)};
    for (int i = 0; i < N_MEASURED; i++)
        if (bench_try_value(rows[i], ns[i]))
            return 1;
    bench_add_value(rows[RATE], 1e3 / ns[FIND_MANY]);
    return 0;
}

static int measure_lookups(const char *prefix, const bench_options *options, uint64_t n_documents,
                           bench_row *const *rows)
{
    tokmap_dataset *ds = NULL;
    plain_map map = {0};
    tokmap_error err;
    int code = bench_make_sparse(prefix, n_documents * MEAN_LENGTH, n_documents);
    if (!code && tokmap_dataset_open(&ds, prefix, &err)) {
        cli_warn("%s", err.text);
        code = 1;
    }
    if (!code && touch_all(ds, n_documents)) {
        cli_warn("a document could not be looked up");
        code = 1;
    }
    if (!code && !plain_map_open(&map, prefix))
        code = 1;
    if (!code)
        plain_map_touch_index(&map);
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    for (uint32_t i = 0; !code && i < n_rounds; i++)
        code = measure_round(ds, &map, i, rows);
    plain_map_close(&map);
    tokmap_dataset_close(ds);
    bench_remove(prefix);
    return code;
}

static void set_goals(bench_row *const *rows)
{
    bench_set_goal(rows[FIND], BENCH_AT_MOST, 1000);
    bench_set_time_limit(rows[FIND], rows[READ]);
    bench_set_time_limit(rows[FIND_MANY], rows[READ_MANY]);
    bench_set_time_limit(rows[DOCUMENT], rows[READ_MANY]);
}

static int run_lookup(const bench_options *options, bench_report *report)
{
    const uint64_t large = options->n_documents ? options->n_documents : default_documents;
    const uint64_t sizes[] = {large / 1000 ? large / 1000 : 1, large};
    bench_row *rows[2][N_KINDS];
    char prefix[4096], column[16];
    int code = 0;
    snprintf(prefix, sizeof prefix, "%s/lookup", options->dir);
    for (int k = 0; k < N_KINDS; k++) {
        for (int i = 0; i < 2; i++) {
            snprintf(column, sizeof column, "%.0e docs", (double)sizes[i]);
            rows[i][k] =
                bench_add_cell(report, "lookup", (const char *const[]){column, kinds[k].unit}, "%s",
                               kinds[k].name);
        }
    }
    for (int i = 0; i < 2 && !code; i++) {
        code = measure_lookups(prefix, options, sizes[i], rows[i]);
        set_goals(rows[i]);
    }
    return code;
}

const bench_page lookup_page = {
    .name = "lookup",
    .help = "which document holds a token, among a million and a billion documents",
    .takes = {"documents"},
    .in_all = true,
    .run = run_lookup,
};
