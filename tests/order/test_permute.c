/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation of docs/ORDER.md, section 2: that it is one, and that it can be undone. */
#include "support/check.h"
#include "order/order_key.h"
#include "order/permute.h"

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

/* The number that is permuted to y: the rule of ORDER.md, from its end to its beginning. */
static uint64_t unpermute(const tokmap_i_permutation *p, uint64_t y)
{
    const uint64_t m[2] = {p->a, p->b};
    if (p->n <= TOKMAP_I_PERMUTE_TABLE)
        return (uint64_t)((const uint8_t *)memchr(p->table, (int)y, p->n) - p->table);
    do {
        uint64_t digit[2] = {y / p->b, y % p->b};
        for (unsigned i = p->n_rounds; i-- > 0;) {
            uint64_t z = (digit[1 - i % 2] ^ p->keys[i]) * 0xBF58476D1CE4E5B9u;
            z = (z ^ z >> 32) * 0x94D049BB133111EBu;
            digit[i % 2] = (digit[i % 2] + m[i % 2] - tokmap_i_scale(z, m[i % 2])) % m[i % 2];
        }
        y = digit[0] * p->b + digit[1];
    } while (y >= p->n);
    return y;
}

/* Every number stays below n and comes back: so no two go to the same place. */
static void check_all(uint64_t n, uint64_t key)
{
    const tokmap_i_permutation p = permutation(n, key);
    for (uint64_t x = 0; x < n; x++) {
        const uint64_t y = tokmap_i_permute(&p, x);
        if (y >= n || unpermute(&p, y) != x)
            CHECK_FAIL("N %" PRIu64 ": %" PRIu64 " becomes %" PRIu64, n, x, y);
    }
}

static void check_one(const tokmap_i_permutation *p, uint64_t x)
{
    const uint64_t y = tokmap_i_permute(p, x), before = unpermute(p, x);
    if (y >= p->n || unpermute(p, y) != x || before >= p->n || tokmap_i_permute(p, before) != x)
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

/* Section 2 as ORDER.md has it. */
static uint64_t plain_shuffle(uint64_t x, uint64_t n, uint64_t key)
{
    uint64_t t[128];
    for (uint64_t i = 0; i < n; i++)
        t[i] = i;
    for (uint64_t i = n - 1; i >= 1; i--) {
        const uint64_t j = tokmap_i_scale(tokmap_i_mix(key + i * TOKMAP_I_GOLDEN), i + 1);
        const uint64_t held = t[i];
        t[i] = t[j];
        t[j] = held;
    }
    return t[x];
}

static uint64_t plain_permute(uint64_t x, uint64_t n, uint64_t key)
{
    static const uint64_t below[] = {256, 1024, 8192, 1048576};
    uint64_t a = 1 << 24, k[15];
    unsigned n_rounds = 15;
    if (n <= 128)
        return plain_shuffle(x, n, key);
    for (uint64_t step = 1 << 23; step > 1; step /= 2)
        a -= a > step && (a - step) * (a - step) >= n ? step : 0;
    const uint64_t b = (n + a - 1) / a;
    for (int i = 0; i < 4; i++)
        n_rounds -= n >= below[i] ? 2 : 0;
    for (unsigned i = 0; i < n_rounds; i++)
        k[i] = tokmap_i_mix(key + (i + 1) * TOKMAP_I_GOLDEN);
    do {
        uint64_t digit[2] = {x / b, x % b}, m[2] = {a, b};
        for (unsigned i = 0; i < n_rounds; i++) {
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
    {10U, 0x0123456789ABCDEFU, 7U, 5U},
    {97U, 0xFFFFFFFFFFFFFFFFU, 96U, 36U},
    {1000U, 0x000000000000002AU, 0U, 844U},
    {65536U, 0x0000000000000007U, 65535U, 10887U},
    {1000003U, 0x9E3779B97F4A7C15U, 500000U, 356903U},
    {16777216U, 0x0000000000000000U, 1U, 5828068U},
    {4294967295U, 0x8000000000000000U, 2147483648U, 1208018567U},
    {4294967297U, 0x0000000000000003U, 4294967296U, 976117148U},
    {3000000019U, 0xFEEDFACECAFEBEEFU, 2999999999U, 1858090035U},
    {1000000000000U, 0x8000000000000001U, 123456789012U, 4711933877U},
    {140737488355329U, 0x000000000000000BU, 140737488355328U, 117613630255082U},
    {281474976710656U, 0x00000000DEADBEEFU, 281474976710655U, 225152370514457U},
};

TEST(permute_gives_the_published_vectors)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const tokmap_i_permutation p = permutation(vectors[i].n, vectors[i].key);
        CHECK_EQ(tokmap_i_permute(&p, vectors[i].x), vectors[i].y);
        CHECK_EQ(unpermute(&p, vectors[i].y), vectors[i].x);
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

/* a * a and the two numbers beside it, for every a where it matters, the largest included. */
TEST(first_digit_is_the_exact_even_square_root)
{
    for (uint64_t a = 12; a <= 1 << 24; a += a < 5000 || a + 5000 > 1 << 24 ? 1 : 997) {
        const uint64_t square = a * a;
        for (uint64_t n = square - 1; n <= square + 1; n++) {
            if (n > TOKMAP_I_PERMUTE_MAX)
                break;
            const uint64_t root = n > square ? a + 1 : a;
            const tokmap_i_permutation p = permutation(n, 0);
            CHECK_EQ(p.a, root + root % 2);
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
        if (n <= TOKMAP_I_PERMUTE_TABLE)
            continue;
        const uint64_t multiple = tokmap_i_scale(random_number(&state), p.a) * p.b;
        if (multiple < n)
            check_one(&p, multiple);
        if (multiple == 0 || multiple > n) /* a is even, and the last row may be past the end */
            continue;
        check_one(&p, multiple - 1);
        CHECK_EQ(tokmap_i_permute(&p, multiple - 1), plain_permute(multiple - 1, n, i));
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
    const int n_cases = check_sanitized() ? 6 : check_long() ? 400 : 50;
    for (int i = 0; i < n_cases; i++)
        check_all(1 + tokmap_i_scale(random_number(&state), 1 << 20), random_number(&state));
}

TEST(n_beside_powers_of_two_are_permuted)
{
    const int exhaustive = check_sanitized() ? 16 : check_long() ? 21 : 19;
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
