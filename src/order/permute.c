/* SPDX-License-Identifier: Apache-2.0 */
/* permute.c - docs/ORDER.md, section 2.
 *
 * A number is two digits, x = l * b + r, and each round adds to one of them a hash of the other.
 * Sums stay below twice their modulus, and a walk continues with the digits that it has. So the
 * only division is that of x by b, and it is done by a multiplication. */
#include "order/permute.h"

#include "base/base.h"
#include "order/order_key.h"

#define FEW_ROUNDS 7 /* the fewest; small networks have more */

typedef struct digits {
    uint64_t l, r;
} digits;

/* Returns the smallest even a with a * a >= n. It is even so that additions to l are odd
 * permutations as often as even ones. */
static uint32_t even_root_up(uint64_t n)
{
    uint64_t below = 0; /* the largest with below * below < n */
    for (uint64_t bit = (uint64_t)1 << 23; bit > 0; bit >>= 1) {
        const uint64_t next = below | bit;
        below = next * next < n ? next : below;
    }
    return (uint32_t)(below / 2 + 1) * 2;
}

/* Fills the table by a Fisher-Yates shuffle. */
static void fill_table(tokmap_i_permutation *p, uint64_t key)
{
    for (unsigned i = 0; i < p->n; i++)
        p->table[i] = (uint8_t)i;
    for (unsigned i = (unsigned)p->n - 1; i > 0; i--) {
        const uint64_t j = tokmap_i_scale(tokmap_i_mix(key + i * TOKMAP_I_GOLDEN), i + 1);
        const uint8_t other = p->table[j];
        p->table[j] = p->table[i];
        p->table[i] = other;
    }
}

void tokmap_i_permutation_init(tokmap_i_permutation *p, uint64_t n, uint64_t key)
{
    p->n = n;
    if (n <= TOKMAP_I_PERMUTE_TABLE) {
        fill_table(p, key);
        return;
    }
    p->a = even_root_up(n);
    p->b = (uint32_t)div_up(n, p->a);
    p->inverse = UINT64_MAX / p->b;
    /* With R rounds, two numbers keep the difference of a digit too often, by one part in b^((R -
     * 3) / 2). So the smaller b is, the more rounds are needed. */
    p->n_rounds = n < 1 << 8    ? 15
                  : n < 1 << 10 ? 13
                  : n < 1 << 13 ? 11
                  : n < 1 << 20 ? 9
                                : FEW_ROUNDS;
    for (unsigned i = 0; i < p->n_rounds; i++)
        p->keys[i] = tokmap_i_mix(key + (i + 1) * TOKMAP_I_GOLDEN);
}

/* Splits x into its digits. x * inverse / 2^64 is less than x / b by at most x / 2^64 < 1, so the
 * quotient is right or one too small. */
static inline digits split_digits(const tokmap_i_permutation *p, uint64_t x)
{
    const uint64_t b = p->b;
    uint64_t l = tokmap_i_scale(x, p->inverse);
    uint64_t r = x - l * b;
    l += r >= b;
    r = MIN(r, r - b); /* r - b wraps where r < b */
    return (digits){l, r};
}

/* Returns a number below m that depends on the other digit. */
static inline uint64_t hash_below(uint64_t digit, uint64_t key, uint32_t m)
{
    uint64_t z = (digit ^ key) * TOKMAP_I_MIX_1;
    z = (z ^ z >> 32) * TOKMAP_I_MIX_2;
    return tokmap_i_scale(z, m);
}

/* Returns the sum modulo m of two digits below m. Uses MIN, because no compiler turns it into a
 * branch, which would be mispredicted every second time. */
static inline uint64_t add_modulo(uint64_t x, uint64_t y, uint32_t m)
{
    const uint64_t sum = x + y;
    return MIN(sum, sum - m);
}

static inline digits two_rounds(const tokmap_i_permutation *p, unsigned i, digits d)
{
    d.r = add_modulo(d.r, hash_below(d.l, p->keys[i], p->b), p->b);
    d.l = add_modulo(d.l, hash_below(d.r, p->keys[i + 1], p->a), p->a);
    return d;
}

/* The first round changes l, then r and l alternate. The loop is rarely run twice. */
uint64_t tokmap_i_permute(const tokmap_i_permutation *p, uint64_t x)
{
    if (p->n <= TOKMAP_I_PERMUTE_TABLE)
        return p->table[x];
    digits d = split_digits(p, x);
    do {
        d.l = add_modulo(d.l, hash_below(d.r, p->keys[0], p->a), p->a);
        for (unsigned i = 1; i < FEW_ROUNDS; i += 2)
            d = two_rounds(p, i, d);
        for (unsigned i = FEW_ROUNDS; i < p->n_rounds; i += 2)
            d = two_rounds(p, i, d);
        x = d.l * p->b + d.r;
    } while (x >= p->n);
    return x;
}

void tokmap_i_permute_many(const tokmap_i_permutation *p, uint64_t x,
                           uint64_t out[TOKMAP_I_PERMUTE_MANY])
{
    digits d[TOKMAP_I_PERMUTE_MANY];
    if (p->n <= TOKMAP_I_PERMUTE_TABLE) {
        for (unsigned k = 0; k < TOKMAP_I_PERMUTE_MANY; k++)
            out[k] = p->table[x + k];
        return;
    }
    for (unsigned k = 0; k < TOKMAP_I_PERMUTE_MANY; k++) {
        d[k] = split_digits(p, x + k);
        d[k].l = add_modulo(d[k].l, hash_below(d[k].r, p->keys[0], p->a), p->a);
    }
    for (unsigned i = 1; i < p->n_rounds; i += 2)
        for (unsigned k = 0; k < TOKMAP_I_PERMUTE_MANY; k++)
            d[k] = two_rounds(p, i, d[k]);
    for (unsigned k = 0; k < TOKMAP_I_PERMUTE_MANY; k++) {
        const uint64_t y = d[k].l * p->b + d[k].r;
        out[k] = y < p->n ? y : tokmap_i_permute(p, y);
    }
}

static uint64_t subtract_modulo(uint64_t x, uint64_t y, uint32_t m)
{
    return x >= y ? x - y : x + m - y;
}

uint64_t tokmap_i_permute_back(const tokmap_i_permutation *p, uint64_t y)
{
    uint64_t x = 0;
    if (p->n <= TOKMAP_I_PERMUTE_TABLE) {
        while (p->table[x] != y)
            x++;
        return x;
    }
    digits d = split_digits(p, y);
    do {
        for (unsigned i = p->n_rounds; i-- > 0;) {
            if (i % 2)
                d.r = subtract_modulo(d.r, hash_below(d.l, p->keys[i], p->b), p->b);
            else
                d.l = subtract_modulo(d.l, hash_below(d.r, p->keys[i], p->a), p->a);
        }
        x = d.l * p->b + d.r;
    } while (x >= p->n);
    return x;
}
