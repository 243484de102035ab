/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/latency.h"

#include "base/base.h"

/* Counts the number: a bin for each number below 16; above, the bin depends on the highest bit and
 * the four bits below it. */
void tokmap_i_latency_add(tokmap_i_latency *l, uint64_t ns)
{
    const uint32_t high = 63 - (uint32_t)__builtin_clzll(ns | 8);
    l->n++;
    l->max_ns = MAX(l->max_ns, ns);
    l->counts[ns < 16 ? ns : (high - 3) * 16 + (ns >> (high - 4) & 15)]++;
}

uint64_t tokmap_i_latency_percentile(const tokmap_i_latency *l, uint32_t per_mille)
{
    const uint64_t wanted = div_up(l->n * per_mille, 1000);
    uint64_t n = 0;
    for (uint32_t bin = 0; bin < TOKMAP_I_LATENCY_BINS; bin++) {
        n += l->counts[bin];
        const uint32_t shift = bin < 16 ? 0 : bin / 16 - 1;
        const uint64_t end = bin < 16 ? bin : ((16ull + bin % 16 + 1) << shift) - 1;
        if (n >= wanted && n > 0)
            return MIN(end, l->max_ns);
    }
    return 0;
}
