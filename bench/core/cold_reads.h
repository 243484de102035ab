/* SPDX-License-Identifier: Apache-2.0 */
/* cold_reads.h - measures the loader's ways of reading data that is not in memory, and the rate of
 * the device. For the page `cold`, and for `load` with the user's data. */
#ifndef TOKMAP_BENCH_COLD_READS_H
#define TOKMAP_BENCH_COLD_READS_H

#include "core/bench.h"
#include "tokmap_loader.h"

typedef struct cold_reads {
    const char *prefix; /* of names: "cold, " on a page that has hot data too */
    const tokmap_dataset *ds;
    const uint32_t *lengths; /* of rows, in tokens; at most 8 */
    uint32_t n_lengths, n_rounds;
} cold_reads;

enum {
    COLD_READS_LEFT_OUT = -1
};

/* Returns 0; 1: an error, which was printed; COLD_READS_LEFT_OUT: the data is too small, or the
 * file system has no device or no O_DIRECT, which was printed, and nothing was measured. A way of
 * reading that does not work on this machine is named on stderr and gets no row. */
int cold_reads_measure(const cold_reads *what, bench_report *report);

/* Whether the loader really reads in this way if it is asked to. */
bool cold_reads_works(const tokmap_dataset *ds, tokmap_io io, const char *name);

#endif /* TOKMAP_BENCH_COLD_READS_H */
