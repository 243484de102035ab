/* cold_reads.h - the loader's ways of reading data that are not in memory, beside the device's own
 * rate. For the page `cold`, and for `load` with the caller's data. */
#ifndef TOKMAP_BENCH_COLD_READS_H
#define TOKMAP_BENCH_COLD_READS_H

#include "core/bench.h"
#include "tokmap_loader.h"

typedef struct cold_reads {
    const char *page;
    const tokmap_dataset *ds;
    const uint32_t *lengths; /* of rows, in tokens */
    uint32_t n_lengths, n_rounds;
    uint64_t ns; /* of each measure */
} cold_reads;

/* Returns 0; 1: it says what went wrong; BENCH_NO_DIRECT: the file system has no device below it or
 * no O_DIRECT, and nothing was measured or said. A way of reading that does not work here is named
 * on stderr and has no row. */
int cold_reads_measure(const cold_reads *what, bench_report *report);

enum {
    BENCH_NO_DIRECT = -1
};

/* Whether the loader, told to read like this, does. */
bool cold_reads_works(const tokmap_dataset *ds, tokmap_io io, const char *name);

#endif /* TOKMAP_BENCH_COLD_READS_H */
