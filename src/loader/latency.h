/* SPDX-License-Identifier: Apache-2.0 */
/* latency.h - a histogram of times, with 16 bins for each power of two. Pure.
 *
 * Percentiles are accurate to one part in sixteen, for any times. 8 KiB, no allocation. */
#pragma once

#include <stdint.h>

enum {
    TOKMAP_I_LATENCY_BINS = 61 * 16
};

typedef struct tokmap_i_latency {
    uint64_t n, max_ns;
    uint64_t counts[TOKMAP_I_LATENCY_BINS];
} tokmap_i_latency;

void tokmap_i_latency_add(tokmap_i_latency *l, uint64_t ns);
/* Returns the least time that at least n * per_mille / 1000 of the n times do not exceed; 0 if n is
 * 0. */
uint64_t tokmap_i_latency_percentile(const tokmap_i_latency *l, uint32_t per_mille);
