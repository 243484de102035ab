/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/latency.h"

#include "base/base.h"

/* A bin for each number below 16; above, the bin depends on the highest bit and the four bits below
 * it. */
static uint32_t bin_of(uint64_t ns)
{
    if (ns < 16)
        return (uint32_t)ns;
    const uint32_t high = 63 - (uint32_t)__builtin_clzll(ns);
    return (high - 3) * 16 + (uint32_t)(ns >> (high - 4) & 15);
}

/* The largest time of a bin. */
static uint64_t end_of(uint32_t bin)
{
    if (bin < 16)
        return bin;
    const uint32_t high = bin / 16 + 3;
    return ((16ull + bin % 16 + 1) << (high - 4)) - 1;
}

void tokmap_i_latency_add(tokmap_i_latency *l, uint64_t ns)
{
    l->n++;
    l->max_ns = MAX(l->max_ns, ns);
    l->counts[bin_of(ns)]++;
}

uint64_t tokmap_i_latency_percentile(const tokmap_i_latency *l, uint32_t per_mille)
{
    const uint64_t wanted = div_up(l->n * per_mille, 1000);
    uint64_t seen = 0;
    for (uint32_t bin = 0; bin < TOKMAP_I_LATENCY_BINS; bin++) {
        seen += l->counts[bin];
        if (seen >= wanted && seen > 0)
            return MIN(end_of(bin), l->max_ns);
    }
    return 0;
}
