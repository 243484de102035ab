/* SPDX-License-Identifier: Apache-2.0 */
/* cold.c - the loader on data that is not in memory, compared with the device's rate for reads of
 * the same size, and with a plain map. */
#include "core/cold_reads.h"
#include "core/load_data.h"
#include "pages/pages.h"

enum {
    ROUNDS = 5,
    ROUNDS_OF_ALL = 3
};
static const uint32_t lengths[] = {1024, 4096, 8192};
static const uint64_t usual_bytes = (uint64_t)8 << 30, bytes_of_all = (uint64_t)2 << 30;

static int measure_cold(const bench_options *options, bench_report *report,
                        const tokmap_dataset *ds)
{
    const cold_reads what = {.page = "cold",
                             .ds = ds,
                             .lengths = lengths,
                             .n_lengths = sizeof lengths / sizeof *lengths,
                             .n_rounds =
                                 bench_rounds(options, options->all ? ROUNDS_OF_ALL : ROUNDS)};
    const int code = cold_reads_measure(&what, report);
    return code == COLD_READS_LEFT_OUT ? !options->all : code;
}

static int run_cold(const bench_options *options, bench_report *report)
{
    const tokmap_dataset *ds = NULL;
    int code = load_data_open(options, options->all ? bytes_of_all : usual_bytes, &ds);
    if (!code)
        code = measure_cold(options, report, ds);
    load_data_close(&ds, 1);
    load_data_remove(options, 1);
    return code;
}

const bench_page cold_page = {
    .name = "cold",
    .help = "the loader on data that are not in memory, compared with the device's own rate",
    .takes = {"load-mib", "data"},
    .in_all = true,
    .run = run_cold,
};
