/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation of docs/ORDER.md, section 2: that what it gives looks random. All keys are
 * fixed, so a statistic passes always or never. */
#include "support/check.h"
#include "order/permute_case.h"

enum {
    MAX_SAMPLES = 100000
};

/* ---- Helpers ---- */

/* chi-square with df degrees of freedom is further away with probability below 2 e^-16 = 2e-7
 * (Laurent and Massart). Sample without replacement: `share` of all there is was drawn. */
static void check_chi_square(double chi, double df, double share, const char *what)
{
    const double limit = 16;
    chi /= 1 - share;
    const double above = chi - df - 2 * limit, below = df - chi;
    if ((above > 0 && above * above > 4 * df * limit) ||
        (below > 0 && below * below > 4 * df * limit))
        CHECK_FAIL("%s: chi-square %.1f for %.0f", what, chi, df);
}

/* Of n values, their mean against one that is known, with the variance of one value. */
static void check_mean(double sum, double n, double mean, double variance, const char *what)
{
    const double off = sum / n - mean;
    if (off * off * n > 5.5 * 5.5 * variance)
        CHECK_FAIL("%s: the mean is off by %g, variance %g", what, off, variance / n);
}

/* ---- Small orders, as a whole ---- */

/* Numbers an order of up to 6, 0 to n! - 1. */
static unsigned number_of_order(const tokmap_i_permutation *p)
{
    unsigned number = 0;
    for (uint64_t x = 0; x < p->n; x++) {
        unsigned n_less = 0;
        for (uint64_t later = x + 1; later < p->n; later++)
            n_less += tokmap_i_permute(p, later) < tokmap_i_permute(p, x);
        number = number * (unsigned)(p->n - x) + n_less;
    }
    return number;
}

TEST(all_orders_of_up_to_six_come_equally_often)
{
    unsigned n_orders = 1;
    for (unsigned n = 2; n <= 6; n++) {
        unsigned counts[720] = {0};
        const unsigned each = check_sanitized() ? 100 : check_long() ? 1500 : 400;
        char what[64];
        double chi = 0;
        n_orders *= n;
        for (uint64_t key = 0; key < (uint64_t)each * n_orders; key++) {
            const tokmap_i_permutation p = permutation(n, key_of(key, n));
            counts[number_of_order(&p)]++;
        }
        for (unsigned i = 0; i < n_orders; i++) {
            const double off = (double)counts[i] - each;
            chi += off * off / each;
        }
        snprintf(what, sizeof what, "orders of %u", n);
        check_chi_square(chi, n_orders - 1.0, 0, what);
    }
}

static bool is_odd(const tokmap_i_permutation *p)
{
    static uint8_t seen[4096];
    unsigned n_cycles = 0;
    memset(seen, 0, p->n);
    for (uint64_t first = 0; first < p->n; first++) {
        n_cycles += !seen[first];
        for (uint64_t x = first; !seen[x]; x = tokmap_i_permute(p, x))
            seen[x] = 1;
    }
    return (p->n - n_cycles) % 2;
}

/* Squares of odd numbers, and products of both digits of other n. */
TEST(half_of_the_orders_are_odd)
{
    static const uint64_t sizes[] = {2,   3,   6,   9,   25,  49,   81,   121,  132,
                                     144, 169, 182, 225, 240, 1023, 1089, 2550, 3025};
    const unsigned n_keys = check_sanitized() ? 100 : 1000;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned n_odd = 0;
        char what[64];
        for (uint64_t key = 0; key < n_keys; key++) {
            const tokmap_i_permutation p = permutation(sizes[i], key_of(key, 2));
            n_odd += is_odd(&p);
        }
        snprintf(what, sizeof what, "odd orders of %" PRIu64, sizes[i]);
        check_mean(n_odd, n_keys, 0.5, 0.25, what);
    }
}

/* Of all pairs that one digit tells apart: those whose results are the same number of rows apart,
 * or of columns. Of n * (m - 1) / 2 pairs, where the digit is below m, a random order has so many
 * with probability (n / m) / (n - 1). */
static double count_pairs(const tokmap_i_permutation *p, uint64_t b, bool of_rows)
{
    const uint64_t a = p->n / b, m = of_rows ? a : b;
    double n_pairs = 0;
    for (uint64_t other = 0; other < p->n / m; other++) {
        unsigned counts[256] = {0};
        for (uint64_t digit = 0; digit < m; digit++) {
            const uint64_t y = tokmap_i_permute(p, of_rows ? digit * b + other : other * b + digit);
            n_pairs += counts[((of_rows ? y / b : y % b) + m - digit) % m]++;
        }
    }
    return n_pairs;
}

/* The digits are those of the network, where there is one. The variance is measured too: pairs of
 * one order are not independent. */
TEST(pairs_in_a_row_or_column_keep_no_distance)
{
    static const uint64_t digits[][2] = {{3, 3},   {4, 3},   {5, 5},    {8, 8},   {10, 10},
                                         {12, 11}, {16, 15}, {16, 16},  {32, 32}, {64, 64},
                                         {90, 91}, {92, 91}, {128, 128}};
    for (size_t i = 0; i < 2 * sizeof digits / sizeof *digits; i++) {
        const bool of_rows = i % 2;
        const uint64_t a = digits[i / 2][0], b = digits[i / 2][1], n = a * b, m = of_rows ? a : b;
        const unsigned work = check_sanitized() ? 50000 : check_long() ? 10000000 : 2000000;
        const unsigned most = work / (unsigned)n, n_keys = most < 200000 ? most : 200000;
        double sum = 0, squares = 0;
        char what[64];
        for (uint64_t key = 0; key < n_keys; key++) {
            const tokmap_i_permutation p = permutation(n, key_of(key, 3));
            const double n_pairs = count_pairs(&p, b, of_rows);
            sum += n_pairs;
            squares += n_pairs * n_pairs;
        }
        const double mean = sum / n_keys, variance = squares / n_keys - mean * mean;
        const double n_lines = (double)n / (double)m;
        const double expected = (double)n * (double)(m - 1) / 2 * n_lines / (double)(n - 1);
        snprintf(what, sizeof what, "%" PRIu64 " by %" PRIu64 ", %s", a, b,
                 of_rows ? "rows" : "columns");
        check_mean(sum, n_keys, expected, variance, what);
    }
}

/* Where x goes, and how far from there x + 1 goes, over many keys. */
static void check_places(uint64_t n, uint64_t x, uint64_t n_keys)
{
    static unsigned places[4096], distances[4096];
    double chi_place = 0, chi_distance = 0;
    char what[64];
    memset(places, 0, sizeof places);
    memset(distances, 0, sizeof distances);
    for (uint64_t key = 0; key < n_keys; key++) {
        const tokmap_i_permutation p = permutation(n, key_of(key, 4));
        const uint64_t y = tokmap_i_permute(&p, x), z = tokmap_i_permute(&p, x + 1);
        places[y]++;
        distances[(z + n - y) % n]++;
    }
    for (uint64_t i = 0; i < n; i++) {
        const double place = (double)n_keys / (double)n,
                     distance = (double)n_keys / (double)(n - 1);
        chi_place += (places[i] - place) * (places[i] - place) / place;
        if (i > 0)
            chi_distance += (distances[i] - distance) * (distances[i] - distance) / distance;
    }
    CHECK_EQ(distances[0], 0);
    snprintf(what, sizeof what, "N %" PRIu64 ", number %" PRIu64, n, x);
    check_chi_square(chi_place, (double)n - 1, 0, what);
    check_chi_square(chi_distance, (double)n - 2, 0, what);
}

TEST(each_number_goes_anywhere_and_its_neighbour_anywhere_else)
{
    static const uint64_t sizes[] = {3,   5,   7,   12,  33,   100,  128,
                                     129, 150, 200, 257, 1000, 1025, 3000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t x = 0; x + 1 < sizes[i]; x += sizes[i] / 3 + 1)
            check_places(sizes[i], x, sizes[i] * (check_sanitized() ? 5 : check_long() ? 150 : 40));
}

/* ---- Large ones, in samples ---- */

static const uint64_t n_values[] = {1000003, 3000000019, ((uint64_t)1 << 40) + 1};
static const uint64_t strides[] = {1, 2, 3, 8, 64};

static void check_residues(const uint64_t *y, size_t n_y, uint64_t n, const char *what)
{
    for (uint64_t m = 2; m <= 64; m++) {
        uint64_t counts[64] = {0};
        double chi = 0;
        for (size_t i = 0; i < n_y; i++)
            counts[y[i] % m]++;
        for (uint64_t residue = 0; residue < m; residue++) {
            const uint64_t n_such = n / m + (residue < n % m);
            const double expected = (double)n_y * (double)n_such / (double)n;
            const double off = (double)counts[residue] - expected;
            chi += off * off / expected;
        }
        check_chi_square(chi, (double)m - 1, (double)n_y / (double)n, what);
    }
}

/* Also the upper part: in which of 64 equal parts the numbers lie. */
static void check_parts(const uint64_t *y, size_t n_y, uint64_t n, const char *what)
{
    uint64_t counts[64] = {0};
    double chi = 0;
    for (size_t i = 0; i < n_y; i++)
        counts[(size_t)((double)y[i] / (double)n * 64)]++;
    for (int i = 0; i < 64; i++) {
        const double off = (double)counts[i] - (double)n_y / 64;
        chi += off * off * 64 / (double)n_y;
    }
    check_chi_square(chi, 63, (double)n_y / (double)n, what);
}

TEST(strided_subsequences_have_even_residues)
{
    static uint64_t y[MAX_SAMPLES];
    char what[128];
    const uint64_t n_seeds = check_sanitized() ? 1 : check_long() ? 4 : 2;
    for (uint64_t i = 0; i < 3 * 5 * n_seeds; i++) {
        const uint64_t n = n_values[i % 3], stride = strides[i / 3 % 5], seed = i / 15;
        const uint64_t r = (7 * seed + 1) % stride, n_there = (n - r) / stride;
        const size_t n_y = n_there < MAX_SAMPLES ? n_there : MAX_SAMPLES;
        const tokmap_i_permutation p = permutation(n, key_of(seed, 0));
        for (size_t k = 0; k < n_y; k++)
            y[k] = tokmap_i_permute(&p, r + k * stride);
        snprintf(what, sizeof what, "N %" PRIu64 ", every %" PRIu64 "th", n, stride);
        check_residues(y, n_y, n, what);
        check_parts(y, n_y, n, what);
    }
}

/* The distance of two random points of [0, 1] is 1/3 in the mean, its square 1/6; their variances
 * are 1/18 and 7/180. */
static void check_distances(const tokmap_i_permutation *p, uint64_t apart)
{
    double sum = 0, squares = 0;
    char what[128];
    const double n = 50000;
    for (uint64_t i = 0; i < 50000; i++) {
        const uint64_t block = i / apart, x = block * 2 * apart + i % apart;
        const double a = (double)tokmap_i_permute(p, x), b = (double)tokmap_i_permute(p, x + apart);
        const double d = (a > b ? a - b : b - a) / (double)p->n;
        sum += d;
        squares += d * d;
    }
    snprintf(what, sizeof what, "N %" PRIu64 ", %" PRIu64 " apart", p->n, apart);
    check_mean(sum, n, 1.0 / 3, 1.0 / 18, what);
    check_mean(squares, n, 1.0 / 6, 7.0 / 180, what);
}

TEST(neighbours_are_as_far_apart_as_any_two)
{
    for (uint64_t i = 0; i < 3 * 5 * 2; i++) {
        const tokmap_i_permutation p = permutation(n_values[i % 3], key_of(i / 15, 1));
        check_distances(&p, strides[i / 3 % 5]);
    }
}

/* Each of 40 bits of the result turns over in half of all cases when one bit of x or of the key
 * does. */
static void check_avalanche(bool of_key, unsigned bit, unsigned n_cases)
{
    const uint64_t n = (uint64_t)1 << 40, flip = (uint64_t)1 << bit;
    unsigned turned[40] = {0};
    uint64_t state = 5;
    char what[128];
    for (unsigned i = 0; i < n_cases; i++) {
        const uint64_t x = tokmap_i_scale(random_number(&state), n);
        const uint64_t key = random_number(&state);
        const tokmap_i_permutation p = permutation(n, key);
        const tokmap_i_permutation q = permutation(n, of_key ? key ^ flip : key);
        const uint64_t differ =
            tokmap_i_permute(&p, x) ^ tokmap_i_permute(&q, of_key ? x : x ^ flip);
        for (int k = 0; k < 40; k++)
            turned[k] += differ >> k & 1;
    }
    for (int k = 0; k < 40; k++) {
        snprintf(what, sizeof what, "bit %u of %s to bit %d", bit, of_key ? "the key" : "x", k);
        check_mean(turned[k], n_cases, 0.5, 0.25, what);
    }
}

TEST(one_bit_of_x_or_of_the_key_turns_half_of_the_bits)
{
    const unsigned n_cases = check_long() && !check_sanitized() ? 8000 : 2000;
    for (unsigned bit = 0; bit < 40; bit++)
        check_avalanche(false, bit, n_cases);
    for (unsigned bit = 0; bit < 64; bit++)
        check_avalanche(true, bit, n_cases);
}

/* ---- Epochs and seeds ---- */

static double average(double n)
{
    return (n - 1) / 2;
}

/* Numbers that two keys send to the same place, and the sum of (y - mean)(z - mean) scaled so that
 * its variance is 1: (n^2 - 1) / 12 is the variance of a rank. */
static unsigned compare_keys(uint64_t n, uint64_t key_a, uint64_t key_b, double *correlation)
{
    const tokmap_i_permutation p = permutation(n, key_a), q = permutation(n, key_b);
    const double mean = average((double)n), variance = ((double)n * (double)n - 1) / 12;
    unsigned n_same = 0;
    double sum = 0;
    for (uint64_t x = 0; x < n; x++) {
        const uint64_t y = tokmap_i_permute(&p, x), z = tokmap_i_permute(&q, x);
        n_same += y == z;
        sum += ((double)y - mean) * ((double)z - mean);
    }
    *correlation = sum / variance / (double)n;
    return n_same;
}

/* As many agreements as random permutations have (Poisson with mean 1), and no correlation. */
static void check_pairs(uint64_t n, bool of_seeds)
{
    static const double share[] = {0.367879, 0.367879, 0.183940, 0.061313, 0.018988};
    const char *what = of_seeds ? "two seeds" : "two epochs";
    const unsigned n_pairs = check_sanitized() ? 200 : 1000;
    double chi = 0, sum = 0, squares = 0, correlation;
    unsigned counts[5] = {0};
    for (unsigned i = 0; i < n_pairs; i++) {
        const uint64_t a = of_seeds ? key_of(i, 0) : key_of(7, i);
        const uint64_t b = of_seeds ? key_of(i + 1, 0) : key_of(7, i + 1);
        const unsigned n_same = compare_keys(n, a, b, &correlation);
        counts[n_same < 4 ? n_same : 4]++;
        sum += correlation;
        squares += correlation * correlation;
    }
    for (int i = 0; i < 5; i++) {
        const double expected = share[i] * n_pairs, off = counts[i] - expected;
        chi += off * off / expected;
    }
    check_chi_square(chi, 4, 0, what);
    check_mean(sum, n_pairs, 0, 1 / ((double)n - 1), what);
    check_mean(squares * ((double)n - 1), n_pairs, 1, 2, what);
}

TEST(epochs_have_nothing_in_common)
{
    check_pairs(1009, false);
    check_pairs(4096, false);
}

TEST(seeds_have_nothing_in_common)
{
    check_pairs(1009, true);
    check_pairs(4096, true);
}

TEST(seed_1_epoch_1_is_not_seed_2_epoch_0)
{
    double correlation;
    CHECK(key_of(1, 1) != key_of(2, 0));
    CHECK(compare_keys(100003, key_of(1, 1), key_of(2, 0), &correlation) < 8);
    CHECK(correlation * correlation * 100003 < 16);
}
