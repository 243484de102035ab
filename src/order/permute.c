/* SPDX-License-Identifier: Apache-2.0 */
/* permute.c - docs/ORDER.md, section 2.
 *
 * A number is two digits, x = l * b + r, and each round adds to one of them a hash of the other.
 * Sums stay below twice their modulus, and a walk continues with the digits that it has. So the
 * only division is that of x by b, and it is done by a multiplication. */
#include "order/permute.h"

#include <stdbool.h>

#include "base/base.h"
#include "order/order_key.h"

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
    p->n_rounds = n < 1 << 8 ? 15 : n < 1 << 10 ? 13 : n < 1 << 13 ? 11 : n < 1 << 20 ? 9 : 7;
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

#define INLINE static inline __attribute__((always_inline))

/* Returns z * m / 2^64. by_halves: from products of 64 bits, because vectors have none of 128. */
INLINE uint64_t scale(uint64_t z, uint32_t m, bool by_halves)
{
    return by_halves ? ((z >> 32) * m + ((uint32_t)z * (uint64_t)m >> 32)) >> 32
                     : tokmap_i_scale(z, m);
}

/* Returns a number below m that depends on the other digit. */
INLINE uint64_t hash_below(uint64_t digit, uint64_t key, uint32_t m, bool by_halves)
{
    uint64_t z = (digit ^ key) * TOKMAP_I_MIX_1;
    z = (z ^ z >> 32) * TOKMAP_I_MIX_2;
    return scale(z, m, by_halves);
}

/* Returns the sum modulo m of two digits below m. Uses MIN, because no compiler turns it into a
 * branch, which would be mispredicted every second time. */
INLINE uint64_t add_modulo(uint64_t x, uint64_t y, uint32_t m)
{
    const uint64_t sum = x + y;
    return MIN(sum, sum - m);
}

/* Passes n numbers through the network. The first round changes l, then r and l alternate. */
INLINE void run_rounds(const tokmap_i_permutation *p, uint64_t *restrict l, uint64_t *restrict r,
                       unsigned n, bool by_halves)
{
    for (unsigned k = 0; k < n; k++)
        l[k] = add_modulo(l[k], hash_below(r[k], p->keys[0], p->a, by_halves), p->a);
    for (unsigned i = 1; i < p->n_rounds; i += 2) {
        const uint64_t key = p->keys[i], next = p->keys[i + 1];
        for (unsigned k = 0; k < n; k++) {
            r[k] = add_modulo(r[k], hash_below(l[k], key, p->b, by_halves), p->b);
            l[k] = add_modulo(l[k], hash_below(r[k], next, p->a, by_halves), p->a);
        }
    }
}

/* The loop is rarely run twice. */
uint64_t tokmap_i_permute(const tokmap_i_permutation *p, uint64_t x)
{
    if (p->n <= TOKMAP_I_PERMUTE_TABLE)
        return p->table[x];
    digits d = split_digits(p, x);
    do {
        run_rounds(p, &d.l, &d.r, 1, false);
        x = d.l * p->b + d.r;
    } while (x >= p->n);
    return x;
}

static void run_portable(const tokmap_i_permutation *p, uint64_t *l, uint64_t *r, unsigned n)
{
    for (unsigned k = 0; k < n; k += TOKMAP_I_PERMUTE_SOME)
        run_rounds(p, l + k, r + k, TOKMAP_I_PERMUTE_SOME, false);
}

#if defined(__x86_64__)
/* A vector waits for its products, so several take turns. */
__attribute__((target("avx512f,avx512dq"))) static void
run_avx512(const tokmap_i_permutation *p, uint64_t *l, uint64_t *r, unsigned n)
{
    if (n == TOKMAP_I_PERMUTE_MANY)
        run_rounds(p, l, r, TOKMAP_I_PERMUTE_MANY, true);
    else
        for (unsigned k = 0; k < n; k += TOKMAP_I_PERMUTE_SOME)
            run_rounds(p, l + k, r + k, TOKMAP_I_PERMUTE_SOME, true);
}
#endif

void tokmap_i_permute_many(const tokmap_i_permutation *p, uint64_t x, unsigned n, uint64_t *out)
{
    uint64_t l[TOKMAP_I_PERMUTE_MANY], r[TOKMAP_I_PERMUTE_MANY];
    if (p->n <= TOKMAP_I_PERMUTE_TABLE) {
        for (unsigned k = 0; k < n; k++)
            out[k] = p->table[x + k];
        return;
    }
    for (unsigned at = 0; at < n; at += TOKMAP_I_PERMUTE_SOME) {
        const digits d = split_digits(p, x + at);
        for (unsigned k = 0; k < TOKMAP_I_PERMUTE_SOME; k++) { /* b is larger than SOME */
            const uint64_t next = d.r + k;
            l[at + k] = d.l + (next >= p->b);
            r[at + k] = MIN(next, next - p->b);
        }
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq"))
        run_avx512(p, l, r, n);
    else
#endif
        run_portable(p, l, r, n);
    for (unsigned k = 0; k < n; k++) {
        const uint64_t y = l[k] * p->b + r[k];
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
                d.r = subtract_modulo(d.r, hash_below(d.l, p->keys[i], p->b, false), p->b);
            else
                d.l = subtract_modulo(d.l, hash_below(d.r, p->keys[i], p->a, false), p->a);
        }
        x = d.l * p->b + d.r;
    } while (x >= p->n);
    return x;
}
