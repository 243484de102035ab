/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - the pages of tokbench: each measures, round by round, and adds rows to the report. */
#pragma once

#include "core/load_data.h"

void bench_verify(const bench_options *options, bench_report *report);
void bench_lookup(const bench_options *options, bench_report *report);
void bench_load(const bench_options *options, bench_report *report);
void bench_cold(const bench_options *options, bench_report *report);
void bench_stall(const bench_options *options, bench_report *report);
void bench_start(const bench_options *options, bench_report *report);
void bench_mix(const bench_options *options, bench_report *report);
void bench_views(const bench_options *options, bench_report *report);
void bench_lists(const bench_options *options, bench_report *report);
void bench_scan(const bench_options *options, bench_report *report);
void bench_gpu(const bench_options *options, bench_report *report);
void bench_tokenize(const bench_options *options, bench_report *report);
void bench_pack(const bench_options *options, bench_report *report);
