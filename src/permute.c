/* permute.c - docs/FORMAT.md, section 10.2.
 *
 * A number is two digits, x = l * b + r, and each round adds to one of them a hash of the other.
 * Sums stay below twice their modulus and a walk goes on with the digits it has, so the only
 * division is that of x by b, and that is a multiplication. */
#include "permute.h"

#include "base.h"
#include "order_key.h"

enum {
    LANES = 4 /* numbers side by side: a round is a chain of three multiplications */
};

typedef struct digits {
    uint64_t l, r;
} digits;

/* The smallest a with a * a >= n. */
static uint32_t root_up(uint64_t n)
{
    uint64_t below = 0; /* the largest with below * below < n */
    for (uint64_t bit = (uint64_t)1 << 23; bit > 0; bit >>= 1) {
        const uint64_t next = below | bit;
        below = next * next < n ? next : below;
    }
    return (uint32_t)below + 1;
}

void tokmap_i_permutation_init(tokmap_i_permutation *p, uint64_t n, uint64_t key)
{
    p->n = n;
    p->a = root_up(n);
    p->b = (uint32_t)div_up(n, p->a);
    p->inverse = UINT64_MAX / p->b;
    for (unsigned i = 0; i < TOKMAP_I_PERMUTE_ROUNDS; i++)
        p->keys[i] = tokmap_i_mix(key + (i + 1) * TOKMAP_I_GOLDEN);
}

/* x * inverse / 2^64 is less than x / b by at most x / 2^64 < 1, so the quotient is right or one
 * too small. */
static inline digits split(const tokmap_i_permutation *p, uint64_t x)
{
    const uint64_t b = p->b;
    uint64_t l = tokmap_i_scale(x, p->inverse);
    uint64_t r = x - l * b;
    l += r >= b;
    r = MIN(r, r - b); /* r - b wraps where r < b */
    return (digits){l, r};
}

/* A number below m that depends on the other digit. */
static inline uint64_t noise(uint64_t digit, uint64_t key, uint32_t m)
{
    uint64_t z = (digit ^ key) * TOKMAP_I_MIX_1;
    z = (z ^ z >> 32) * TOKMAP_I_MIX_2;
    return tokmap_i_scale(z, m);
}

/* Of two digits below m. Minimums, because no compiler makes a jump of them: it would go the wrong
 * way every second time. */
static inline uint64_t add(uint64_t x, uint64_t y, uint32_t m)
{
    const uint64_t sum = x + y;
    return MIN(sum, sum - m);
}

static inline uint64_t subtract(uint64_t x, uint64_t y, uint32_t m)
{
    const uint64_t rest = x - y;
    return MIN(rest, rest + m);
}

static inline digits two_rounds(const tokmap_i_permutation *p, unsigned i, digits d)
{
    d.l = add(d.l, noise(d.r, p->keys[i], p->a), p->a);
    d.r = add(d.r, noise(d.l, p->keys[i + 1], p->b), p->b);
    return d;
}

/* Hardly ever goes round twice. */
static inline uint64_t walk(const tokmap_i_permutation *p, digits d)
{
    uint64_t x;
    do {
        for (unsigned i = 0; i < TOKMAP_I_PERMUTE_ROUNDS; i += 2)
            d = two_rounds(p, i, d);
        x = d.l * p->b + d.r;
    } while (x >= p->n);
    return x;
}

uint64_t tokmap_i_permute(const tokmap_i_permutation *p, uint64_t x)
{
    return walk(p, split(p, x));
}

uint64_t tokmap_i_unpermute(const tokmap_i_permutation *p, uint64_t y)
{
    digits d = split(p, y);
    do {
        for (unsigned i = TOKMAP_I_PERMUTE_ROUNDS; i > 0; i -= 2) {
            d.r = subtract(d.r, noise(d.l, p->keys[i - 1], p->b), p->b);
            d.l = subtract(d.l, noise(d.r, p->keys[i - 2], p->a), p->a);
        }
        y = d.l * p->b + d.r;
    } while (y >= p->n);
    return y;
}

void tokmap_i_permute_all(const tokmap_i_permutation *p, uint64_t *x, size_t n_x)
{
    size_t done = 0;
    for (; n_x - done >= LANES; done += LANES) {
        digits d[LANES];
        for (unsigned k = 0; k < LANES; k++)
            d[k] = split(p, x[done + k]);
        for (unsigned i = 0; i < TOKMAP_I_PERMUTE_ROUNDS; i += 2)
            for (unsigned k = 0; k < LANES; k++)
                d[k] = two_rounds(p, i, d[k]);
        for (unsigned k = 0; k < LANES; k++) {
            const uint64_t y = d[k].l * p->b + d[k].r;
            x[done + k] = y < p->n ? y : walk(p, d[k]);
        }
    }
    for (; done < n_x; done++)
        x[done] = tokmap_i_permute(p, x[done]);
}
