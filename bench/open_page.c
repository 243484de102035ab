/* open_page.c - how long opening takes, and that it does not depend on the size. */
#include <stdlib.h>

#include "bench.h"
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
            fprintf(stderr, "tokbench: %s\n", err.text);
            return -1;
        }
        tokmap_dataset_close(ds);
    }
    return (double)(bench_now_ns() - start) / OPENS_A_ROUND / 1e3;
}

int open_page(const bench_options *options, bench_report *report)
{
    char small[4096], large[4096];
    snprintf(small, sizeof small, "%s/open-1e6", options->dir);
    snprintf(large, sizeof large, "%s/open-1e12", options->dir);
    int code = bench_make_sparse(small, 1000000, 1000);
    if (!code)
        code = bench_make_sparse(large, 1000000000000, 10000000);
    bench_row *a =
        bench_add_row(report, "open", "open and close, 10^6 tokens, 10^3 documents", "us");
    bench_row *b =
        bench_add_row(report, "open", "open and close, 10^12 tokens, 10^7 documents", "us");
    const uint32_t n_rounds = options->n_rounds ? options->n_rounds : ROUNDS;
    for (uint32_t i = 0; !code && i < n_rounds; i++) {
        const double x = open_us(small), y = open_us(large);
        code = x < 0 || y < 0;
        bench_add_value(a, x);
        bench_add_value(b, y);
    }
    bench_set_goal(b, BENCH_AT_MOST, 10000);
    bench_set_goal(bench_add_ratio(report, b, a, "open, 10^12 tokens against 10^6"), BENCH_AT_MOST,
                   1.5);
    bench_remove(small);
    bench_remove(large);
    return code;
}
