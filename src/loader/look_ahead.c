/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/look_ahead.h"

#include "base/base.h"

enum {
    SLOW_NS = 30000,   /* a step is slow if it takes this much longer than .. */
    PIECE_NS = 2000,   /* .. this for each piece of its rows, plus .. */
    TOKENS_PER_NS = 4, /* .. this for its tokens */
    LEAST_AHEAD = 4,   /* steps of a store */
    TRIAL = 4          /* measures the rate of steps over this many look-aheads */
};

static const double MIN_GAIN = 1.1; /* the least gain that keeps a doubled look-ahead */

static const uint64_t AHEAD_NS = 2000000000; /* the least time that steps of a store are for */

bool tokmap_i_is_slow(uint64_t ns, size_t n_pieces, uint64_t n_tokens)
{
    return ns > SLOW_NS + n_pieces * PIECE_NS + n_tokens / TOKENS_PER_NS;
}

bool tokmap_i_adapt(tokmap_i_look_ahead *a, uint64_t n_taken, uint64_t ns)
{
    if (a->most_steps == 0 || n_taken < (uint64_t)TRIAL * a->n_steps)
        return false;
    const double rate = (double)n_taken / (double)ns;
    if (rate < MIN_GAIN * a->steps_per_ns) { /* more steps do not help */
        a->n_steps /= 2;
        a->most_steps = 0;
        return true;
    }
    if (2 * a->n_steps > a->most_steps)
        return false;
    a->n_steps *= 2;
    a->steps_per_ns = rate;
    return true;
}

uint32_t tokmap_i_steps_ahead(uint64_t step_ns, uint64_t slowest_ns, uint32_t most)
{
    const uint64_t ns = MAX(AHEAD_NS, 2 * slowest_ns);
    return (uint32_t)MIN(MAX(ns / MAX(step_ns, 1) + 1, LEAST_AHEAD), most);
}
