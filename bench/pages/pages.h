/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - the pages of tokbench. */
#ifndef TOKMAP_BENCH_PAGES_H
#define TOKMAP_BENCH_PAGES_H

#include "core/bench.h"

typedef struct bench_page {
    const char *name;
    const char *help;     /* what it measures, for --help */
    const char *takes[6]; /* names of options that not all pages take; ends with NULL */
    bool in_all;          /* needs no files from the user */
    void (*run)(const bench_options *options, bench_report *report);
} bench_page;

/* Every page, in the order of --help and of measuring. row(x) stands for x_page, in x.c. */
#define BENCH_PAGES(row)                                                                           \
    row(limits) row(verify) row(lookup) row(load) row(cold) row(stall) row(start) row(mix)         \
        row(gpu) row(tokenize) row(pack)

#define DECLARE_PAGE(x) extern const bench_page x##_page;
BENCH_PAGES(DECLARE_PAGE)
#undef DECLARE_PAGE

#endif /* TOKMAP_BENCH_PAGES_H */
