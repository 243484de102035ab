/* pages.h - the pages of tokbench. */
#ifndef TOKMAP_BENCH_PAGES_H
#define TOKMAP_BENCH_PAGES_H

#include "core/bench.h"

/* A page returns 0, or an exit code after it has said on stderr what went wrong. */
typedef int bench_page(const bench_options *options, bench_report *report);
bench_page verify_page, lookup_page, open_page, load_page, cold_page, tokenize_page, pack_page;
bench_page limits_page, stall_page, scale_page, mix_page, gpu_page;

#endif /* TOKMAP_BENCH_PAGES_H */
