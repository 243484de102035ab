/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles of times, against all of the times, sorted. */

#include "support/check.h"
#include "loader/latency.h"

enum {
    N = 20000
};
static uint64_t times[N];
static tokmap_i_latency l;

static uint64_t state = 1;
static uint64_t any(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(percentiles_are_off_by_a_sixteenth_at_most)
{
    for (int shape = 0; shape < 64; shape++) {
        memset(&l, 0, sizeof l);
        const uint32_t n = 1 + (uint32_t)(any() % N);
        for (uint32_t i = 0; i < n; i++)
            tokmap_i_latency_add(&l, times[i] = any() >> (shape + (shape < 60 ? any() % 4 : 0)));
        qsort(times, n, sizeof times[0], order);
        CHECK_EQ(l.n, n);
        CHECK_EQ(l.max_ns, times[n - 1]);
        for (uint32_t p = 1; p <= 1000; p += p < 990 ? 7 : 1) {
            const uint64_t exact = times[((uint64_t)n * p + 999) / 1000 - 1];
            const uint64_t got = tokmap_i_latency_percentile(&l, p);
            if (got < exact || got - exact > exact / 16)
                CHECK_FAIL("p%u of %u: %llu, not %llu", p, n, (unsigned long long)got,
                           (unsigned long long)exact);
        }
    }
}

TEST(nothing_has_no_percentiles)
{
    memset(&l, 0, sizeof l);
    CHECK_EQ(tokmap_i_latency_percentile(&l, 500), 0);
    tokmap_i_latency_add(&l, 0);
    CHECK_EQ(tokmap_i_latency_percentile(&l, 999), 0);
    tokmap_i_latency_add(&l, UINT64_MAX);
    CHECK_EQ(tokmap_i_latency_percentile(&l, 999), UINT64_MAX);
    CHECK_EQ(tokmap_i_latency_percentile(&l, 500), 0);
}
