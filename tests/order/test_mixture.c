/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures: docs/ORDER.md, section 5. */
#include "support/check.h"

#include <float.h>
#include <math.h>

#include "order/mixture.h"
#include "order/order_key.h"

__extension__ typedef __int128 wide;

enum {
    MAX_SOURCES = 64
};

/* ---- Quotas ---- */

static bool quotas_of(const double *weights, uint32_t n, uint32_t *quotas)
{
    uint32_t too_small;
    return tokmap_i_quotas(weights, n, quotas, &too_small);
}

static void check_quotas(uint32_t n, const double *weights, const uint32_t *expected)
{
    uint32_t quotas[32];
    CHECK(quotas_of(weights, n, quotas));
    for (uint32_t k = 0; k < n; k++)
        CHECK_EQ(quotas[k], expected[k]);
}

#define QUOTAS(n, weights, ...)                                                                    \
    check_quotas(n, (const double[])weights, (const uint32_t[]){__VA_ARGS__})
#define OF(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

TEST(quotas_are_the_smallest_whole_numbers_in_the_ratio_of_the_weights)
{
    QUOTAS(1, OF(3.7), 1);
    QUOTAS(1, OF(5e-324), 1);
    QUOTAS(1, OF(DBL_MAX), 1);
    QUOTAS(3, OF(7, 2, 1), 7, 2, 1);
    QUOTAS(3, OF(0.7, 0.2, 0.1), 7, 2, 1);
    QUOTAS(3, OF(70, 20, 10), 7, 2, 1);
    QUOTAS(4, OF(0, 0.25, 0, 0.75), 0, 1, 0, 3);
    QUOTAS(3, OF(1 / 3.0, 1 / 3.0, 1 / 3.0), 1, 1, 1);
    QUOTAS(2, OF(2 / 3.0, 1 / 3.0), 2, 1);
    QUOTAS(4, OF(0, 1 / 3.0, 0, 2 / 3.0), 0, 1, 0, 2);
    QUOTAS(3, OF(1 / 7.0, 1 / 11.0, 1 / 13.0), 143, 91, 77);
    QUOTAS(3, OF(1 / 7.0, 2 / 7.0, 4 / 7.0), 1, 2, 4);
    QUOTAS(2, OF(1e12, 3e12), 1, 3);
    QUOTAS(2, OF(1e300, 7e300), 1, 7);
    QUOTAS(2, OF(0x1p1000, 0x3p1000), 1, 3);
    QUOTAS(2, OF(5e-324, 1e-323), 1, 2);
    QUOTAS(2, OF(1 + 0.9e-9, 1), 1, 1);
    QUOTAS(2, OF(0.1234, 0.8766), 617, 4383);
    QUOTAS(2, OF(0.12345, 0.87655), 2469, 17531);
    QUOTAS(2, OF(-0.0, 1), 0, 1);
}

TEST(rare_sources_make_the_period_longer)
{
    QUOTAS(2, OF(0.000001, 1), 1, 1000000);
    QUOTAS(2, OF(0.999999, 0.000001), 999999, 1);
    QUOTAS(2, OF(1048575, 1), 1048575, 1);
    QUOTAS(2, OF(1.5e-6, 1), 1, 666000);
}

/* Error of the worst of the shares, as a part of it. */
static double worst_share(const double *weights, const uint32_t *quotas, uint32_t n)
{
    double total = 0, period = 0, worst = 0;
    for (uint32_t k = 0; k < n; k++) {
        total += weights[k];
        period += quotas[k];
    }
    for (uint32_t k = 0; k < n; k++) {
        const double share = weights[k] / total;
        const double off = fabs(quotas[k] / period - share) / share;
        worst = off > worst ? off : worst;
    }
    return worst;
}

TEST(shares_of_any_weights_are_right_to_a_thousandth)
{
    for (uint64_t i = 0; i < 300; i++) {
        double weights[20], period = 0;
        uint32_t quotas[20];
        const uint32_t n = 2 + (uint32_t)(i % 19);
        for (uint32_t k = 0; k < n; k++)
            weights[k] = 0.05 + (double)(tokmap_i_mix(i * 100 + k) >> 11) * 0x1p-53;
        CHECK(quotas_of(weights, n, quotas));
        CHECK(worst_share(weights, quotas, n) < (n == 2 ? 1e-5 : n == 3 ? 3e-5 : 1.1e-3));
        for (uint32_t k = 0; k < n; k++)
            period += quotas[k];
        CHECK(n > 10 || period <= 16384);
    }
}

TEST(weights_that_mean_nothing_are_refused)
{
    uint32_t quotas[2], too_small = 7;
    static const double bad[][2] = {{0, 0},   {-1, 2},       {1, -1e-300},   {NAN, 1},
                                    {1, NAN}, {INFINITY, 1}, {1, -INFINITY}, {1.7e308, 1.6e308}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!tokmap_i_quotas(bad[i], 2, quotas, &too_small));
        CHECK_EQ(too_small, UINT32_MAX);
    }
    CHECK(!quotas_of(bad[0], 0, quotas));
}

TEST(shares_below_one_of_2_20_are_refused_by_name)
{
    uint32_t quotas[3], too_small = 7;
    static const double bad[][3] = {{1, 1, 1e-7}, {1, 1e-9, 1e-8}, {1048576, 1, 0}, {1, 0, 1e-300}};
    static const uint32_t which[] = {2, 1, 1, 2};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!tokmap_i_quotas(bad[i], 3, quotas, &too_small));
        CHECK_EQ(too_small, which[i]);
    }
}

static uint64_t sum_of(const uint32_t *quotas, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += quotas[k];
    return sum;
}

/* Quotas are rounded up where the share lacks most, and else down. */
static void check_rounded(const double *weights, const uint32_t *quotas, uint32_t n)
{
    double total = 0, least_up = 1, most_down = 0;
    for (uint32_t k = 0; k < n; k++)
        total += weights[k];
    for (uint32_t k = 0; k < n; k++) {
        const double share = weights[k] / total * TOKMAP_I_MIXTURE_PERIOD;
        const double lack = share - floor(share);
        CHECK(quotas[k] == floor(share) || quotas[k] == floor(share) + 1);
        if (quotas[k] > share)
            least_up = lack < least_up ? lack : least_up;
        else
            most_down = lack > most_down ? lack : most_down;
    }
    CHECK(least_up < 1 && most_down > 0 && least_up >= most_down);
}

TEST(the_largest_number_of_sources_has_quotas)
{
    static double weights[TOKMAP_I_MIXTURE_SOURCES + 1];
    static uint32_t quotas[TOKMAP_I_MIXTURE_SOURCES + 1];
    const uint32_t n = TOKMAP_I_MIXTURE_SOURCES;
    for (uint32_t k = 0; k <= n; k++)
        weights[k] = 1 / 7.0;
    CHECK(!quotas_of(weights, n + 1, quotas));
    CHECK(quotas_of(weights, n, quotas));
    for (uint32_t k = 0; k < n; k++)
        CHECK_EQ(quotas[k], 1);
    for (uint32_t k = 0; k < n; k++)
        weights[k] = k % 3 ? 2 / 7.0 : 1 / 7.0;
    CHECK(quotas_of(weights, n, quotas));
    for (uint32_t k = 0; k < n; k++)
        CHECK_EQ(quotas[k], k % 3 ? 2 : 1);
    for (uint32_t k = 0; k < n; k++)
        weights[k] = 1 + (double)(tokmap_i_mix(k) >> 11) * 0x1p-53;
    CHECK(quotas_of(weights, n, quotas));
    CHECK_EQ(sum_of(quotas, n), TOKMAP_I_MIXTURE_PERIOD);
    check_rounded(weights, quotas, n);
}

/* ---- Share and exactness far out ---- */

/* |n * P - q * g| < P: less than one sample off. */
static void check_share(uint64_t n, uint64_t g, uint32_t quota, uint64_t period)
{
    const wide off = (wide)n * (wide)period - (wide)quota * (wide)g;
    if (off >= (wide)period || -off >= (wide)period)
        CHECK_FAIL("%" PRIu64 " of %" PRIu64 " samples, quota %" PRIu32 " of %" PRIu64, n, g, quota,
                   period);
}

static tokmap_i_mixture *single_phase(const uint32_t *quotas, uint32_t n)
{
    tokmap_i_mixture_source *sources = calloc(n, sizeof *sources);
    for (uint32_t k = 0; k < n; k++)
        sources[k].n_windows = TOKMAP_I_MIXTURE_PERIOD;
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, n, 1);
    free(sources);
    CHECK(m && tokmap_i_mixture_add_phase(m, 0, quotas));
    return m;
}

/* A source is furthest ahead after a slot of its own and furthest behind before one, so looking
 * there is looking at every prefix. */
static void check_period(const uint32_t *quotas, uint32_t n)
{
    tokmap_i_mixture *m = single_phase(quotas, n);
    const uint64_t period = sum_of(quotas, n);
    uint32_t *given = calloc(n, sizeof *given);
    tokmap_i_mixture_sample s;
    for (uint64_t g = 0; g < period; g++) {
        tokmap_i_mixture_at(m, g, &s);
        CHECK_EQ(s.place, given[s.source]);
        check_share(given[s.source], g, quotas[s.source], period);
        given[s.source]++;
        check_share(given[s.source], g + 1, quotas[s.source], period);
    }
    CHECK(memcmp(given, quotas, n * sizeof *given) == 0);
    free(given);
    tokmap_i_mixture_free(m);
}

static void check_far(const uint32_t *quotas, uint32_t n, int n_points)
{
    tokmap_i_mixture *m = single_phase(quotas, n);
    const uint64_t period = sum_of(quotas, n);
    uint64_t *counts = calloc(n, sizeof *counts), *next = calloc(n, sizeof *next);
    CHECK(tokmap_i_mixture_prepare_find(m));
    for (int i = 0; i < n_points; i++) {
        const uint64_t most = i % 8 ? 1000000000000 : INT64_MAX - 1;
        const uint64_t g = tokmap_i_scale(tokmap_i_mix((uint64_t)i), most);
        tokmap_i_mixture_sample s;
        tokmap_i_mixture_at(m, g, &s);
        tokmap_i_mixture_counts(m, g, counts);
        tokmap_i_mixture_counts(m, g + 1, next);
        CHECK_EQ(s.epoch * TOKMAP_I_MIXTURE_PERIOD + s.place, counts[s.source]);
        CHECK_EQ(tokmap_i_mixture_find(m, s.source, counts[s.source]), g);
        counts[s.source]++;
        CHECK(memcmp(counts, next, n * sizeof *counts) == 0);
        for (uint32_t k = 0; k < n; k++)
            check_share(next[k], g + 1, quotas[k], period);
    }
    free(counts);
    free(next);
    tokmap_i_mixture_free(m);
}

TEST(no_source_is_a_sample_off_its_share_at_any_prefix)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        uint32_t quotas[MAX_SOURCES];
        const uint32_t n = 1 + (uint32_t)(tokmap_i_mix(seed) % MAX_SOURCES);
        const uint64_t most = (uint64_t)1 << tokmap_i_mix(seed + 7) % 10;
        for (uint32_t k = 0; k < n; k++)
            quotas[k] = (uint32_t)(1 + tokmap_i_mix(seed * 1000 + k) % most);
        check_period(quotas, n);
        check_far(quotas, n, 10);
    }
}

TEST(no_source_is_a_sample_off_its_share_in_the_longest_periods)
{
    static double weights[TOKMAP_I_MIXTURE_SOURCES];
    static uint32_t quotas[TOKMAP_I_MIXTURE_SOURCES];
    static const uint32_t n_of[] = {1, 2, 3, 17, 1000, TOKMAP_I_MIXTURE_SOURCES};
    for (size_t i = 0; i < sizeof n_of / sizeof *n_of; i++) {
        for (uint32_t k = 0; k < n_of[i]; k++)
            weights[k] = 1 + (double)(tokmap_i_mix(k + 1) >> 11) * 0x1p-53;
        CHECK(quotas_of(weights, n_of[i], quotas));
        check_period(quotas, n_of[i]);
        check_far(quotas, n_of[i], check_long() ? 200 : 10);
    }
    const uint32_t lopsided[] = {1, TOKMAP_I_MIXTURE_PERIOD - 2, 1};
    check_period(lopsided, 3);
    check_far(lopsided, 3, 100);
}

/* ---- Ends ---- */

static tokmap_i_mixture *two_sources(tokmap_i_mixture_source a, tokmap_i_mixture_source b)
{
    const tokmap_i_mixture_source sources[] = {a, b};
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, 2, 8);
    CHECK(m);
    return m;
}

static void ends_at(tokmap_i_mixture *m, uint64_t end, uint32_t source)
{
    uint32_t which = 9;
    CHECK_EQ(tokmap_i_mixture_end(m, &which), end);
    CHECK(end == UINT64_MAX || which == source);
}

TEST(a_mixture_ends_where_a_source_has_no_epochs_left)
{
    tokmap_i_mixture *m =
        two_sources((tokmap_i_mixture_source){10, 2}, (tokmap_i_mixture_source){1000, 1});
    CHECK(tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){0, 1}));
    ends_at(m, 1000, 1);
    CHECK(tokmap_i_mixture_add_phase(m, 990, (const uint32_t[]){1, 0}));
    ends_at(m, 1010, 0);
    CHECK(tokmap_i_mixture_add_phase(m, 1010, (const uint32_t[]){0, 1}));
    ends_at(m, 1020, 1);
    CHECK(tokmap_i_mixture_add_phase(m, 1020, (const uint32_t[]){1, 1}));
    ends_at(m, 1020, 0);
    tokmap_i_mixture_sample sample;
    tokmap_i_mixture_at(m, 1009, &sample);
    CHECK(sample.source == 0 && sample.epoch == 1 && sample.place == 9);
    tokmap_i_mixture_at(m, 1010, &sample);
    CHECK(sample.source == 1 && sample.epoch == 0 && sample.place == 990);
    tokmap_i_mixture_free(m);
}

/* The last phase alone gives the source that is limited, and the one before would have ended. */
TEST(only_phases_that_are_reached_end_a_mixture)
{
    tokmap_i_mixture *m =
        two_sources((tokmap_i_mixture_source){5, 1}, (tokmap_i_mixture_source){5, 0});
    CHECK(tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){1, 1}));
    ends_at(m, 10, 0);
    CHECK(tokmap_i_mixture_add_phase(m, 8, (const uint32_t[]){0, 1}));
    ends_at(m, UINT64_MAX, 0);
    CHECK(tokmap_i_mixture_add_phase(m, (uint64_t)1 << 62, (const uint32_t[]){3, 1}));
    ends_at(m, ((uint64_t)1 << 62) + 1, 0);
    tokmap_i_mixture_free(m);
}

TEST(what_ends_beyond_2_63_is_endless)
{
    static const struct {
        uint64_t n_windows, max_epochs;
        uint32_t quotas[2];
        uint64_t end;
    } cases[] = {
        {(uint64_t)1 << 48, 1 << 14, {1, 0}, (uint64_t)1 << 62},
        {(uint64_t)1 << 48, 1 << 14, {1, 1}, UINT64_MAX},
        {(uint64_t)1 << 48, (1 << 14) - 1, {1, 1}, ((uint64_t)1 << 63) - ((uint64_t)1 << 49)},
        {(uint64_t)1 << 48, 1 << 15, {1, 0}, UINT64_MAX},
        {(uint64_t)1 << 48, 1 << 16, {1, 0}, UINT64_MAX},
        {(uint64_t)1 << 48, UINT64_MAX, {1, 0}, UINT64_MAX},
        {1, UINT64_MAX, {1, 0}, UINT64_MAX},
        {1, INT64_MAX, {1, 0}, INT64_MAX},
        {1, (uint64_t)1 << 62, {1, 1048575}, UINT64_MAX},
        {(uint64_t)1 << 42, 1, {1, 1048575}, (uint64_t)1 << 62}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tokmap_i_mixture_source a = {cases[i].n_windows, cases[i].max_epochs};
        tokmap_i_mixture *m = two_sources(a, (tokmap_i_mixture_source){1, 0});
        CHECK(tokmap_i_mixture_add_phase(m, 0, cases[i].quotas));
        uint32_t which;
        const uint64_t end = tokmap_i_mixture_end(m, &which);
        const uint32_t period = cases[i].quotas[0] + cases[i].quotas[1];
        CHECK(end == UINT64_MAX ? cases[i].end == end : end - cases[i].end < period && which == 0);
        tokmap_i_mixture_free(m);
    }
}

/* ---- The rest ---- */

TEST(one_source_is_a_period_of_one)
{
    static const double weight[] = {0.3};
    uint32_t quota;
    CHECK(quotas_of(weight, 1, &quota));
    CHECK_EQ(quota, 1);
    const tokmap_i_mixture_source source = {1000, 0};
    tokmap_i_mixture *m = tokmap_i_mixture_new(&source, 1, 1);
    CHECK(m && tokmap_i_mixture_add_phase(m, 0, &quota));
    tokmap_i_mixture_sample sample;
    for (uint64_t g = 1; g < (uint64_t)1 << 62; g *= 3) {
        tokmap_i_mixture_at(m, g, &sample);
        CHECK(sample.source == 0 && sample.epoch == g / 1000 && sample.place == g % 1000);
    }
    tokmap_i_mixture_free(m);
    tokmap_i_mixture_free(NULL);
}

TEST(periods_out_of_range_are_refused)
{
    tokmap_i_mixture *m =
        two_sources((tokmap_i_mixture_source){5, 0}, (tokmap_i_mixture_source){5, 0});
    CHECK(!tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){0, 0}));
    CHECK(!tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){TOKMAP_I_MIXTURE_PERIOD, 1}));
    CHECK(!tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){UINT32_MAX, 2}));
    CHECK_EQ(tokmap_i_mixture_n_phases(m), 0);
    CHECK(tokmap_i_mixture_add_phase(m, 0, (const uint32_t[]){TOKMAP_I_MIXTURE_PERIOD, 0}));
    tokmap_i_mixture_free(m);
}

TEST(many_phases_are_found)
{
    const tokmap_i_mixture_source sources[] = {{1u << 30, 0}, {1u << 30, 0}};
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, 2, TOKMAP_I_MIXTURE_PHASES);
    CHECK(m);
    for (uint32_t i = 0; i < TOKMAP_I_MIXTURE_PHASES; i++)
        CHECK(tokmap_i_mixture_add_phase(
            m, (uint64_t)i * 10, i % 2 ? (const uint32_t[]){1, 0} : (const uint32_t[]){0, 1}));
    CHECK(tokmap_i_mixture_prepare_find(m));
    for (uint64_t g = 0; g < 10u * TOKMAP_I_MIXTURE_PHASES; g += 7) {
        tokmap_i_mixture_sample sample;
        tokmap_i_mixture_at(m, g, &sample);
        CHECK_EQ(sample.source, g / 10 % 2 ? 0 : 1);
        CHECK_EQ(sample.place, g / 20 * 10 + g % 10);
        CHECK_EQ(tokmap_i_mixture_find(m, sample.source, sample.place), g);
    }
    tokmap_i_mixture_free(m);
}

/* Weights of 101 phases, each other than all before. */
TEST(a_hundred_phases_take_little_memory)
{
    const tokmap_i_mixture_source sources[] = {{1000, 0}, {1000, 0}, {1000, 0}};
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, 3, 101);
    CHECK(m);
    for (uint32_t i = 0; i <= 100; i++) {
        const double weights[] = {1 + 1 / (i + 0.37), 1 + i / 7.0, 300 / (1000.0 - i)};
        uint32_t quotas[3];
        CHECK(quotas_of(weights, 3, quotas));
        CHECK(tokmap_i_mixture_add_phase(m, i * 1000000ull, quotas));
    }
    CHECK(tokmap_i_mixture_bytes(m) < 101 * 16384 * 6 + 20000);
    tokmap_i_mixture_free(m);
}

TEST(phases_with_the_same_quotas_share_a_table)
{
    const tokmap_i_mixture_source sources[] = {{1000, 0}, {1000, 0}};
    uint64_t n_bytes[2];
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, 2, 1000);
    CHECK(m);
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t quotas[] = {i % 2 ? 999999 : 1, i % 2 ? 1 : 999999};
        CHECK(tokmap_i_mixture_add_phase(m, i * 1000, quotas));
        n_bytes[i > 1] = tokmap_i_mixture_bytes(m);
    }
    CHECK(n_bytes[0] > 12000000 && n_bytes[1] < n_bytes[0] + 1000 * 100);
    tokmap_i_mixture_free(m);
}
