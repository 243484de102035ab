/* SPDX-License-Identifier: Apache-2.0 */
/* cold.h - measures reading cold data: for its own page, and for `load` with the user's data. */
#ifndef TOKMAP_BENCH_COLD_H
#define TOKMAP_BENCH_COLD_H

#include "pages/pages.h"
#include "tokmap_loader.h"

typedef struct cold_data {
    const char *prefix; /* of names: "cold, " on a page that has hot data too */
    const tokmap_dataset *ds;
    const uint32_t *lengths; /* of rows, in tokens; at most 8 */
    uint32_t n_lengths, n_rounds;
} cold_data;

enum {
    COLD_LEFT_OUT = -1
};

/* Returns 0; 1: an error, which was printed; COLD_LEFT_OUT: the data is too small, or the file
 * system has no device or no O_DIRECT, which was printed, and nothing was measured. */
int cold_measure(const cold_data *what, bench_report *report);

#endif /* TOKMAP_BENCH_COLD_H */
