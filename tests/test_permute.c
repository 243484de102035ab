/* The permutation of docs/FORMAT.md, section 10.2: that it is one, that it can be undone, and that
 * what it gives looks random. All keys are fixed, so a statistic passes always or never. */
#include "check.h"

#include "../src/order_key.h"
#include "../src/permute.h"

enum {
    MAX_SAMPLES = 100000
};

/* ---- Helpers ---- */

static uint64_t random_number(uint64_t *state)
{
    *state += TOKMAP_I_GOLDEN;
    return tokmap_i_mix(*state);
}

static uint64_t key_of(uint64_t seed, uint64_t epoch)
{
    const tokmap_i_order_id id = {seed, 0, 0};
    return tokmap_i_order_key(&id, TOKMAP_I_KEY_FULL, epoch, 0);
}

static tokmap_i_permutation permutation(uint64_t n, uint64_t key)
{
    tokmap_i_permutation p;
    tokmap_i_permutation_init(&p, n, key);
    return p;
}

/* Every number stays below n and comes back: so no two go to the same place. */
static void check_all(uint64_t n, uint64_t key)
{
    const tokmap_i_permutation p = permutation(n, key);
    uint64_t x[64];
    for (uint64_t first = 0; first < n; first += 64) {
        const uint64_t n_x = n - first < 64 ? n - first : 64;
        for (uint64_t i = 0; i < n_x; i++)
            x[i] = first + i;
        tokmap_i_permute_all(&p, x, n_x);
        for (uint64_t i = 0; i < n_x; i++)
            if (x[i] >= n || tokmap_i_unpermute(&p, x[i]) != first + i)
                CHECK_FAIL("N %" PRIu64 ": %" PRIu64 " becomes %" PRIu64, n, first + i, x[i]);
    }
}

static void check_one(const tokmap_i_permutation *p, uint64_t x)
{
    const uint64_t y = tokmap_i_permute(p, x), before = tokmap_i_unpermute(p, x);
    if (y >= p->n || tokmap_i_unpermute(p, y) != x || before >= p->n ||
        tokmap_i_permute(p, before) != x)
        CHECK_FAIL("N %" PRIu64 ": %" PRIu64 " becomes %" PRIu64, p->n, x, y);
}

/* Both ends, the last row of digits, and numbers anywhere. */
static void check_some(uint64_t n, uint64_t key)
{
    const tokmap_i_permutation p = permutation(n, key);
    const uint64_t n_edge = p.b + 2 < n ? (uint64_t)p.b + 2 : n;
    uint64_t state = n ^ key;
    for (uint64_t i = 0; i < n_edge; i += i < 100 || i + 100 > n_edge ? 1 : p.b / 100 + 1) {
        check_one(&p, i);
        check_one(&p, n - 1 - i);
    }
    for (int i = 0; i < (check_long() ? 20000 : 1000); i++)
        check_one(&p, tokmap_i_scale(random_number(&state), n));
}

/* Section 10.2 as it stands there. */
static uint64_t plain_permute(uint64_t x, uint64_t n, uint64_t key)
{
    uint64_t a = 1 << 24, k[6];
    for (uint64_t step = 1 << 23; step > 0; step /= 2)
        a -= a > step && (a - step) * (a - step) >= n ? step : 0;
    const uint64_t b = (n + a - 1) / a;
    for (unsigned i = 0; i < 6; i++)
        k[i] = tokmap_i_mix(key + (i + 1) * TOKMAP_I_GOLDEN);
    do {
        uint64_t digit[2] = {x / b, x % b}, m[2] = {a, b};
        for (unsigned i = 0; i < 6; i++) {
            uint64_t z = (digit[1 - i % 2] ^ k[i]) * 0xBF58476D1CE4E5B9u;
            z = (z ^ z >> 32) * 0x94D049BB133111EBu;
            digit[i % 2] = (digit[i % 2] + tokmap_i_scale(z, m[i % 2])) % m[i % 2];
        }
        x = digit[0] * b + digit[1];
    } while (x >= n);
    return x;
}

/* ---- What it gives ---- */

static const struct {
    uint64_t n, key, x, y;
} vectors[] = {
    {1U, 0x0000000000000005U, 0U, 0U},
    {2U, 0x0000000000000000U, 0U, 0U},
    {3U, 0x0000000000000001U, 2U, 2U},
    {5U, 0x0000000000000002U, 4U, 3U},
    {10U, 0x0123456789ABCDEFU, 7U, 0U},
    {97U, 0xFFFFFFFFFFFFFFFFU, 96U, 72U},
    {1000U, 0x000000000000002AU, 0U, 971U},
    {65536U, 0x0000000000000007U, 65535U, 31420U},
    {1000003U, 0x9E3779B97F4A7C15U, 500000U, 512158U},
    {16777216U, 0x0000000000000000U, 1U, 7618020U},
    {4294967295U, 0x8000000000000000U, 2147483648U, 441968263U},
    {4294967297U, 0x0000000000000003U, 4294967296U, 331857058U},
    {3000000019U, 0xFEEDFACECAFEBEEFU, 2999999999U, 1034412304U},
    {1000000000000U, 0x8000000000000001U, 123456789012U, 75377933877U},
    {140737488355329U, 0x000000000000000BU, 140737488355328U, 82016734464980U},
    {281474976710656U, 0x00000000DEADBEEFU, 281474976710655U, 259224413182489U},
};

TEST(permute_gives_the_published_vectors)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const tokmap_i_permutation p = permutation(vectors[i].n, vectors[i].key);
        CHECK_EQ(tokmap_i_permute(&p, vectors[i].x), vectors[i].y);
        CHECK_EQ(tokmap_i_unpermute(&p, vectors[i].y), vectors[i].x);
    }
}

TEST(keys_are_the_published_vectors)
{
    const tokmap_i_order_id ids[] = {{1, 0, 0}, {1, 0, 0}, {2, 0, 0}, {UINT64_MAX, 0x123, 7}};
    CHECK_EQ(tokmap_i_order_key(&ids[0], 1, 0, 0), 0x952C051CE59C4B70U);
    CHECK_EQ(tokmap_i_order_key(&ids[1], 1, 1, 0), 0x5D02777B858A90C5U);
    CHECK_EQ(tokmap_i_order_key(&ids[2], 1, 0, 0), 0x5C99B86C7A10AEB5U);
    CHECK_EQ(tokmap_i_order_key(&ids[3], 3, 9, 1000), 0x93D4FDB8114FAB7DU);
}

TEST(permute_equals_the_rule_as_it_is_written)
{
    uint64_t state = 1;
    for (int i = 0; i < (check_long() ? 20000 : 2000); i++) {
        const uint64_t top = TOKMAP_I_PERMUTE_MAX >> random_number(&state) % 48;
        const uint64_t n = 1 + tokmap_i_scale(random_number(&state), top);
        const uint64_t key = random_number(&state);
        const tokmap_i_permutation p = permutation(n, key);
        for (int k = 0; k < 8; k++) {
            const uint64_t x = tokmap_i_scale(random_number(&state), n);
            CHECK_EQ(tokmap_i_permute(&p, x), plain_permute(x, n, key));
        }
    }
}

/* a * a and the two numbers beside it, for every a where it matters, the largest included. */
TEST(first_digit_is_the_exact_square_root)
{
    for (uint64_t a = 1; a <= 1 << 24; a += a < 5000 || a + 5000 > 1 << 24 ? 1 : 997) {
        const uint64_t square = a * a;
        for (uint64_t n = square > 1 ? square - 1 : 1; n <= square + 1; n++) {
            if (n > TOKMAP_I_PERMUTE_MAX)
                break;
            const tokmap_i_permutation p = permutation(n, 0);
            CHECK_EQ(p.a, n > square ? a + 1 : a);
            CHECK_EQ(p.b, (n + p.a - 1) / p.a);
        }
    }
}

/* The division of x by b is a multiplication: numbers at both sides of each multiple. */
TEST(digits_are_those_of_a_division)
{
    uint64_t state = 2;
    for (int i = 0; i < (check_long() ? 100000 : 10000); i++) {
        const uint64_t top = TOKMAP_I_PERMUTE_MAX >> random_number(&state) % 48;
        const uint64_t n = top - random_number(&state) % (top / 2 + 1);
        const tokmap_i_permutation p = permutation(n, i);
        const uint64_t multiple = tokmap_i_scale(random_number(&state), p.a) * p.b;
        if (multiple < n)
            check_one(&p, multiple);
        if (multiple > 0)
            check_one(&p, multiple - 1);
        if (multiple > 0)
            CHECK_EQ(tokmap_i_permute(&p, multiple - 1), plain_permute(multiple - 1, n, i));
    }
}

TEST(many_at_once_are_the_same_as_one_by_one)
{
    uint64_t one[70], many[70], state = 3;
    for (size_t n_x = 0; n_x <= 70; n_x++) {
        const uint64_t n = 1 + tokmap_i_scale(random_number(&state), n_x < 35 ? 100 : 1u << 30);
        const tokmap_i_permutation p = permutation(n, n_x);
        for (size_t i = 0; i < 70; i++)
            one[i] = many[i] = tokmap_i_scale(random_number(&state), n);
        for (size_t i = 0; i < n_x; i++)
            one[i] = tokmap_i_permute(&p, one[i]);
        tokmap_i_permute_all(&p, many, n_x);
        for (size_t i = 0; i < 70; i++)
            CHECK_EQ(many[i], one[i]);
    }
}

/* ---- That it is a permutation ---- */

TEST(every_n_to_2_13_is_permuted)
{
    for (uint64_t n = 1; n <= 1 << 13; n += check_sanitized() ? 7 : 1)
        check_all(n, key_of(1, n));
}

TEST(random_n_to_2_20_are_permuted)
{
    uint64_t state = 4;
    const int n_cases = check_sanitized() ? 6 : check_long() ? 1000 : 50;
    for (int i = 0; i < n_cases; i++)
        check_all(1 + tokmap_i_scale(random_number(&state), 1 << 20), random_number(&state));
}

TEST(n_beside_powers_of_two_are_permuted)
{
    const int exhaustive = check_sanitized() ? 16 : check_long() ? 24 : 20;
    for (int k = 0; k <= 48; k++) {
        const uint64_t power = (uint64_t)1 << k;
        for (uint64_t n = power - (k > 0); n <= power + (k < 48); n++) {
            if (k <= exhaustive)
                check_all(n, key_of(n, 0));
            else
                check_some(n, key_of(n, 0));
        }
    }
}

TEST(all_orders_of_four_come_about_equally_often)
{
    uint32_t seen[256] = {0};
    int n_seen = 0;
    for (uint64_t key = 0; key < 24000; key++) {
        const tokmap_i_permutation p = permutation(4, key);
        uint64_t order = 0;
        for (uint64_t x = 0; x < 4; x++)
            order = order << 2 | tokmap_i_permute(&p, x);
        seen[order]++;
    }
    for (int i = 0; i < 256; i++) {
        n_seen += seen[i] > 0;
        CHECK(seen[i] == 0 || (seen[i] > 800 && seen[i] < 1200));
    }
    CHECK_INT(n_seen, 24);
}

/* ---- That it looks random ---- */

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
    const uint64_t n_seeds = check_sanitized() ? 1 : check_long() ? 8 : 2;
    for (uint64_t i = 0; i < 3 * 5 * n_seeds; i++) {
        const uint64_t n = n_values[i % 3], stride = strides[i / 3 % 5], seed = i / 15;
        const uint64_t r = (7 * seed + 1) % stride, n_there = (n - r) / stride;
        const size_t n_y = n_there < MAX_SAMPLES ? n_there : MAX_SAMPLES;
        const tokmap_i_permutation p = permutation(n, key_of(seed, 0));
        for (size_t k = 0; k < n_y; k++)
            y[k] = r + k * stride;
        tokmap_i_permute_all(&p, y, n_y);
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
    const unsigned n_cases = check_long() && !check_sanitized() ? 20000 : 2000;
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
