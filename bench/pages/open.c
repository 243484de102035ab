/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - how long opening takes, compared with opening and mapping the files without reading
 * them, and that it does not depend on the size. */
#include <stdlib.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/plain_map.h"
#include "tokmap.h"

enum {
    ROUNDS = 51,
    OPENS_A_ROUND = 20
};

static double open_us(const char *prefix)
{
    const uint64_t start = bench_now_ns();
    for (int i = 0; i < OPENS_A_ROUND; i++) {
        tokmap_dataset *ds;
        tokmap_error err;
        if (tokmap_dataset_open(&ds, prefix, &err)) {
            cli_warn("%s", err.text);
            return -1;
        }
        tokmap_dataset_close(ds);
    }
    return (double)(bench_now_ns() - start) / OPENS_A_ROUND / 1e3;
}

static double plain_us(const char *prefix)
{
    const uint64_t start = bench_now_ns();
    for (int i = 0; i < OPENS_A_ROUND; i++) {
        plain_map map;
        const bool opened = plain_map_open(&map, prefix);
        plain_map_close(&map);
        if (!opened)
            return -1;
    }
    return (double)(bench_now_ns() - start) / OPENS_A_ROUND / 1e3;
}

static const struct {
    const char *file, *name;
    uint64_t n_tokens, n_documents;
} sizes[] = {{"open-1e6", "10^6 tokens", 1000000, 1000},
             {"open-1e12", "10^12 tokens", 1000000000000, 10000000}};
enum {
    N_SIZES = sizeof sizes / sizeof *sizes
};

static bench_row *add_row(bench_report *report, const char *what, int size)
{
    bench_row *row = bench_add_cell(report, "open", what, sizes[size].name, "us");
    bench_set_x(row, (double)sizes[size].n_tokens, "tokens");
    return row;
}

static int measure_opening(char (*prefixes)[4096], uint32_t n_rounds, bench_report *report)
{
    bench_row *plain[N_SIZES], *rows[N_SIZES];
    int code = 0;
    for (int k = 0; k < N_SIZES; k++)
        plain[k] = add_row(report, "plain open, map and close", k);
    for (int k = 0; k < N_SIZES; k++)
        rows[k] = add_row(report, "open and close", k);
    for (uint32_t i = 0; !code && i < n_rounds; i++) {
        for (int k = 0; !code && k < N_SIZES; k++) {
            const double x = plain_us(prefixes[k]), y = open_us(prefixes[k]);
            code = x < 0 || y < 0;
            if (!code) {
                bench_add_value(plain[k], x);
                bench_add_value(rows[k], y);
            }
        }
    }
    for (int k = 0; k < N_SIZES; k++)
        bench_set_time_limit(rows[k], plain[k]);
    bench_set_goal(rows[1], BENCH_AT_MOST, 10000);
    bench_set_goal(bench_add_ratio(report, rows[1], rows[0], "open, 10^12 tokens against 10^6"),
                   BENCH_AT_MOST, 1.5);
    return code;
}

static int run_open(const bench_options *options, bench_report *report)
{
    char prefixes[N_SIZES][4096];
    int code = 0;
    for (int k = 0; k < N_SIZES; k++)
        snprintf(prefixes[k], sizeof prefixes[k], "%s/%s", options->dir, sizes[k].file);
    for (int k = 0; !code && k < N_SIZES; k++)
        code = bench_make_sparse(prefixes[k], sizes[k].n_tokens, sizes[k].n_documents);
    if (!code)
        code = measure_opening(prefixes, bench_rounds(options, ROUNDS), report);
    for (int k = 0; k < N_SIZES; k++)
        bench_remove(prefixes[k]);
    return code;
}

const bench_page open_page = {
    .name = "open",
    .help = "opening 10^6 and 10^12 tokens (a sparse file)",
    .in_all = true,
    .run = run_open,
};
