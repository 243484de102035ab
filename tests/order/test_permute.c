/* SPDX-License-Identifier: Apache-2.0 */
/* The permutation of docs/ORDER.md, section 2: that it is one, and that it can be undone. That it
 * is the published one is in test_order.py. */
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

/* Whether several numbers from x on, found together, are those found alone. */
static bool are_those_found_alone(const tokmap_i_permutation *p, uint64_t x)
{
    uint64_t found[TOKMAP_I_PERMUTE_MANY];
    const unsigned sizes[] = {TOKMAP_I_PERMUTE_SOME, TOKMAP_I_PERMUTE_MANY};
    bool same = true;
    for (int i = 0; i < 2; i++) {
        if (p->n < sizes[i] || x > p->n - sizes[i])
            continue;
        tokmap_i_permute_many(p, x, sizes[i], found);
        for (uint64_t k = 0; k < sizes[i]; k++)
            same &= found[k] == tokmap_i_permute(p, x + k);
    }
    return same;
}

/* Every number stays below n and comes back: so no two go to the same place. */
static void check_all(uint64_t n, uint64_t key)
{
    const tokmap_i_permutation p = permutation(n, key);
    for (uint64_t x = 0; x < n; x++) {
        const uint64_t y = tokmap_i_permute(&p, x);
        if (y >= n || tokmap_i_permute_back(&p, y) != x ||
            (x % TOKMAP_I_PERMUTE_MANY == 0 && !are_those_found_alone(&p, x)))
            CHECK_FAIL("N %" PRIu64 ": %" PRIu64 " becomes %" PRIu64, n, x, y);
    }
}

static void check_one(const tokmap_i_permutation *p, uint64_t x)
{
    const uint64_t y = tokmap_i_permute(p, x), before = tokmap_i_permute_back(p, x);
    if (y >= p->n || tokmap_i_permute_back(p, y) != x || before >= p->n ||
        tokmap_i_permute(p, before) != x || !are_those_found_alone(p, x))
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

/* ---- Digits ---- */

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
    const int n_cases = check_sanitized() ? 6 : check_long() ? 400 : 17;
    for (int i = 0; i < n_cases; i++) {
        const uint64_t n = 1 + tokmap_i_scale(random_number(&state), 1 << 20);
        check_all(n, random_number(&state));
    }
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
