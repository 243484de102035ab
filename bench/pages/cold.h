/* SPDX-License-Identifier: Apache-2.0 */
/* cold.h - measures reading cold data: for its own page, and for `load` with the user's data. */
#ifndef TOKMAP_BENCH_COLD_H
#define TOKMAP_BENCH_COLD_H

#include "core/load_data.h"
#include "pages/pages.h"

typedef struct cold_data {
    const char *prefix; /* of names: "cold, " on a page that has hot data too */
    const load_data *data;
    const uint32_t *lengths; /* of rows, in tokens; at most 8 */
    uint32_t n_lengths, n_rounds;
    bool may_be_left_out; /* if the data are too small, or the file system has no device or no
                             O_DIRECT; this is printed */
} cold_data;

void cold_measure(const cold_data *what, bench_report *report);

#endif /* TOKMAP_BENCH_COLD_H */
