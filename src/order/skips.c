/* SPDX-License-Identifier: Apache-2.0 */
#include "order/skips.h"

#include "order/order_key.h"

bool tokmap_i_skips_add(tokmap_i_skips *s, uint64_t begin, uint64_t end)
{
    tokmap_i_gap gap = {begin, end, 0};
    if (s->n_gaps > 0) {
        tokmap_i_gap *last = &s->gaps[s->n_gaps - 1];
        gap.before = last->before + (last->end - last->begin);
        if (begin < last->end)
            return false;
        if (begin == last->end && begin < end) {
            last->end = end;
            return true;
        }
    }
    if (begin < end)
        s->gaps[s->n_gaps++] = gap;
    return begin < end;
}

/* Counts the gaps that begin at or before a sample; or before a position, if they are at
 * `positions`. */
static size_t count_gaps(const tokmap_i_skips *s, uint64_t at, bool positions)
{
    size_t low = 0, high = s->n_gaps;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const tokmap_i_gap *g = &s->gaps[middle];
        if (g->begin - (positions ? g->before : 0) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t tokmap_i_skips_position(const tokmap_i_skips *s, uint64_t sample)
{
    const size_t n = count_gaps(s, sample, false);
    if (n == 0)
        return sample;
    const tokmap_i_gap *g = &s->gaps[n - 1];
    return g->begin - g->before + (sample > g->end ? sample - g->end : 0);
}

uint64_t tokmap_i_skips_sample(const tokmap_i_skips *s, uint64_t position)
{
    const size_t n = count_gaps(s, position, true);
    if (n == 0)
        return position;
    const tokmap_i_gap *g = &s->gaps[n - 1];
    return position + g->before + (g->end - g->begin);
}

const tokmap_i_gap *tokmap_i_skips_after(const tokmap_i_skips *s, uint64_t sample)
{
    const size_t n = count_gaps(s, sample, false);
    return n < s->n_gaps ? &s->gaps[n] : NULL;
}

uint64_t tokmap_i_skips_hash(const tokmap_i_skips *s, uint64_t sample)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < s->n_gaps; i++) {
        const tokmap_i_gap *g = &s->gaps[i];
        if (g->end <= sample)
            continue;
        hash = tokmap_i_hash_add(hash ? hash : TOKMAP_I_HASH_START, g->begin);
        hash = tokmap_i_hash_add(hash, g->end);
    }
    return hash;
}
