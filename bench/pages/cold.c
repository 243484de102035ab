/* SPDX-License-Identifier: Apache-2.0 */
/* cold.c - the loader on data that is not in memory, compared with the device's rate for reads of
 * the same size, and with a plain map. */
#include "core/cold_reads.h"
#include "core/load_data.h"
#include "pages/pages.h"

static int run_cold(const bench_options *options, bench_report *report)
{
    static const uint32_t lengths[] = {1024, 4096, 8192};
    const tokmap_dataset *ds;
    int code = load_data_open(options, (options->all ? (uint64_t)2 : 8) << 30, &ds);
    const cold_reads what = {.prefix = "",
                             .ds = ds,
                             .lengths = lengths,
                             .n_lengths = sizeof lengths / sizeof *lengths,
                             .n_rounds = bench_rounds(options, options->all ? 3 : 5)};
    if (!code)
        code = cold_reads_measure(&what, report);
    load_data_close(&ds, 1);
    return code == COLD_READS_LEFT_OUT ? !options->all : code;
}

const bench_page cold_page = {
    .name = "cold",
    .help = "the loader on data that are not in memory, compared with the device's own rate",
    .takes = {"load-mib", "data"},
    .in_all = true,
    .run = run_cold,
};
