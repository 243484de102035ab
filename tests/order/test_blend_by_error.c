/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap_blend_by_error. tests/python/test_python_megatron.py compares it with exact fractions. */
#include "support/check.h"

#include <math.h>

#include "tokmap_loader.h"

enum {
    N = 4000,
    MOST = 12
};

/* By the rule, with each operation rounded by itself whatever the compiler does. */
static uint32_t naive_choice(const double *weights, const double *counts, const uint64_t *limits,
                             uint32_t n, double i, bool is_fused)
{
    uint32_t found = UINT32_MAX;
    double most = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (limits && counts[k] >= (double)limits[k])
            continue;
        const volatile double product = weights[k] * i;
        const double error = is_fused ? fma(weights[k], i, -counts[k]) : product - counts[k];
        if (found == UINT32_MAX || error > most) {
            found = k;
            most = error;
        }
    }
    return found;
}

TEST(choices_follow_the_rule_in_both_kinds)
{
    int n_differ = 0;
    for (int trial = 0; trial < 60; trial++) {
        const uint32_t n_sources = check_below(MOST) + 1;
        double weights[MOST], sum = 0;
        uint64_t limits[MOST], n = 0;
        for (uint32_t k = 0; k < n_sources; k++)
            sum += weights[k] = (double)(check_below(100) + 1) / 100;
        for (uint32_t k = 0; k < n_sources; k++) {
            weights[k] /= sum;
            n += limits[k] = check_below(N / MOST); /* 0, too */
        }
        const bool is_limited = trial % 2;
        if (!is_limited)
            n = N;
        static uint16_t got[2][N];
        for (int is_fused = 0; is_fused < 2; is_fused++) {
            tokmap_error err;
            CHECK(!tokmap_blend_by_error(weights, is_limited ? limits : NULL, n_sources, is_fused,
                                         n, got[is_fused], &err));
            double counts[MOST] = {0};
            for (uint64_t i = 0; i < n; i++) {
                const uint32_t k = naive_choice(weights, counts, is_limited ? limits : NULL,
                                                n_sources, i > 0 ? (double)i : 1, is_fused);
                CHECK_EQ(got[is_fused][i], k);
                counts[k]++;
            }
        }
        n_differ += memcmp(got[0], got[1], n * sizeof(**got)) != 0;
    }
    CHECK(n_differ > 10);
}

static void refused(const double *weights, const uint64_t *limits, uint32_t n_sources, uint64_t n,
                    const char *words)
{
    uint16_t sources[8];
    tokmap_error err;
    CHECK_EQ(tokmap_blend_by_error(weights, limits, n_sources, 0, n, sources, &err),
             TOKMAP_ERR_ARGUMENT);
    check_says(__FILE__, __LINE__, err.text, words);
}

TEST(what_cannot_be_chosen_from_is_refused)
{
    const double weights[] = {0.5, 0.5};
    refused(weights, NULL, 0, 8, "0 sources");
    refused(weights, NULL, 32767, 8, "32767 sources");
    refused(NULL, NULL, 2, 8, "NULL");
    const double wrong[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++)
        refused((const double[]){1, wrong[i]}, NULL, 2, 8, "weight of source 1");
    refused(weights, (const uint64_t[]){3, 4}, 2, 8, "7 samples");
    uint16_t sources[8];
    CHECK_EQ(tokmap_blend_by_error(weights, NULL, 2, 0, 8, NULL, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK(
        !tokmap_blend_by_error(weights, (const uint64_t[]){0, UINT64_MAX}, 2, 0, 8, sources, NULL));
    CHECK_EQ(sources[7], 1);
    CHECK(!tokmap_blend_by_error(weights, NULL, 2, 0, 0, sources, NULL));
}
