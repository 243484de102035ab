/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - the pages of tokbench: each measures, round by round, and adds rows to the report. */
#pragma once

#include "core/load_data.h"

void bench_limits(const bench_options *options, bench_report *report);
void bench_verify(const bench_options *options, bench_report *report);
void bench_lookup(const bench_options *options, bench_report *report);
void bench_load(const bench_options *options, bench_report *report);
void bench_cold(const bench_options *options, bench_report *report);
void bench_stall(const bench_options *options, bench_report *report);
void bench_start(const bench_options *options, bench_report *report);
void bench_mix(const bench_options *options, bench_report *report);
void bench_gpu(const bench_options *options, bench_report *report);
void bench_tokenize(const bench_options *options, bench_report *report);
void bench_pack(const bench_options *options, bench_report *report);

/* Measures reading cold data: for its own page, and for `load` with the user's data. */
typedef struct cold_data {
    const char *prefix; /* of names: "cold, " on a page that has hot data too */
    const load_data *data;
    const uint32_t *lengths; /* of rows, in tokens; at most 8 */
    uint32_t n_lengths, n_rounds;
    bool may_be_left_out; /* if the data are too small, or the file system has no device or no
                             O_DIRECT; this is printed */
} cold_data;

void cold_measure(const cold_data *what, bench_report *report);
