/* mixture.c - docs/FORMAT.md, section 10.5.
 *
 * A stage keeps a table of its period: for each slot the source, and how many slots that source has
 * before it. What a sample is follows from its slot and the number of whole periods before it. */
#include "mixture.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "order_key.h"

typedef struct stage {
    uint64_t from;
    uint32_t period;
    uint64_t *base;    /* of each source: its samples in earlier stages; owns what follows */
    uint32_t *quotas;  /* of each source */
    uint32_t *before;  /* of each slot: slots of its source before it */
    uint16_t *sources; /* of each slot */
} stage;

struct tokmap_i_mixture {
    uint32_t n_sources, n_stages, max_stages;
    stage *stages;
    tokmap_i_mixture_source sources[];
};

/* ---- Weights to quotas ---- */

/* Never inlined, so that the product is rounded before anything is taken from it: a compiler that
 * fuses the two would give other quotas on other machines. */
__attribute__((noinline)) static double product(double a, double b)
{
    return a * b;
}

/* From 2^52 on all doubles are whole, so the sum is rounded to a whole number, halves to even. */
static double nearest(double x)
{
    return x < 0x1p52 ? (x + 0x1p52) - 0x1p52 : x;
}

/* a mod b for whole numbers above 0. Exact: what is subtracted is more than half of a. */
static double rest_of(double a, double b)
{
    while (a >= b) {
        double multiple = b;
        while (multiple <= a / 2)
            multiple *= 2;
        a -= multiple;
    }
    return a;
}

static bool are_nearly_whole(const double *weights, uint32_t n, double scale)
{
    for (uint32_t k = 0; k < n; k++) {
        const double scaled = product(weights[k], scale), whole = nearest(scaled);
        const double off = scaled < whole ? whole - scaled : scaled - whole;
        if (weights[k] > 0 && !(whole >= 1 && off <= whole * 1e-9))
            return false;
    }
    return true;
}

/* Of the scaled weights above 0; 0 where it makes a quota larger than any period. */
static double common_divisor(const double *weights, uint32_t n, double scale)
{
    double divisor = 0, largest = 0;
    for (uint32_t k = 0; k < n; k++) {
        double a = nearest(product(weights[k], scale));
        if (weights[k] == 0)
            continue;
        divisor = largest == 0 ? a : divisor;
        largest = MAX(largest, a);
        for (double rest; (rest = rest_of(a, divisor)) > 0;) {
            a = divisor;
            divisor = rest;
        }
        if (largest / divisor > TOKMAP_I_MIXTURE_PERIOD)
            return 0;
    }
    return divisor;
}

/* false: there are no small whole numbers in the ratio of the weights. */
static bool whole_quotas(const double *weights, uint32_t n, uint32_t *quotas)
{
    static const double scales[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    const double *end = scales + sizeof scales / sizeof *scales, *s = scales;
    while (s < end && !are_nearly_whole(weights, n, *s))
        s++;
    if (s == end)
        return false;
    const double scale = *s;
    const double divisor = common_divisor(weights, n, scale);
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n && divisor > 0; k++) {
        quotas[k] = (uint32_t)(nearest(product(weights[k], scale)) / divisor);
        sum += quotas[k];
    }
    return divisor > 0 && sum <= TOKMAP_I_MIXTURE_PERIOD;
}

typedef struct rounding {
    const double *weights;
    double total;
    uint32_t n_sources, *quotas;
} rounding;

static double share_of(const rounding *r, uint32_t k)
{
    return product(r->weights[k] / r->total, TOKMAP_I_MIXTURE_PERIOD);
}

/* What a quota lacks, as a number in the same order; 0 for sources without one. */
static uint64_t lack_of(const rounding *r, uint32_t k)
{
    const double lack = share_of(r, k) - r->quotas[k];
    uint64_t bits;
    memcpy(&bits, &lack, sizeof bits);
    if (r->quotas[k] == 0)
        return 0;
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t n_lacking(const rounding *r, uint64_t least)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < r->n_sources; k++)
        n += lack_of(r, k) >= least;
    return n;
}

/* One more for each of the n sources that lack most: the n-th lack is found bit by bit. */
static void give(const rounding *r, uint64_t n)
{
    uint64_t level = 0;
    for (uint64_t bit = (uint64_t)1 << 63; bit > 0; bit >>= 1)
        level |= n_lacking(r, level | bit) >= n ? bit : 0;
    uint64_t n_at_level = n - n_lacking(r, level + 1);
    for (uint32_t k = 0; k < r->n_sources; k++) {
        const uint64_t lack = lack_of(r, k);
        const bool takes = lack > level || (lack == level && n_at_level > 0);
        n_at_level -= takes && lack == level;
        r->quotas[k] += takes;
    }
}

static uint64_t sum_above(const rounding *r, uint32_t level)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < r->n_sources; k++)
        sum += r->quotas[k] > level ? r->quotas[k] - level : 0;
    return sum;
}

/* n times one less for the largest: they sink to a common level, and some to the one below. */
static void take(const rounding *r, uint64_t n)
{
    uint32_t level = 0; /* the highest that would take more than n, and then the next */
    for (uint32_t bit = TOKMAP_I_MIXTURE_PERIOD; bit > 0; bit >>= 1)
        level += sum_above(r, level + bit) > n ? bit : 0;
    level++;
    n -= sum_above(r, level);
    for (uint32_t k = 0; k < r->n_sources; k++) {
        if (r->quotas[k] < level)
            continue;
        r->quotas[k] = level - (n > 0);
        n -= n > 0;
    }
}

static void rounded_quotas(const rounding *r)
{
    for (uint32_t k = 0; k < r->n_sources; k++) {
        const uint32_t quota = (uint32_t)share_of(r, k);
        r->quotas[k] = r->weights[k] > 0 ? MAX(quota, 1) : 0;
    }
    const uint64_t sum = sum_above(r, 0);
    if (sum < TOKMAP_I_MIXTURE_PERIOD)
        give(r, TOKMAP_I_MIXTURE_PERIOD - sum);
    else if (sum > TOKMAP_I_MIXTURE_PERIOD)
        take(r, sum - TOKMAP_I_MIXTURE_PERIOD);
}

bool tokmap_i_quotas(const double *weights, uint32_t n_sources, uint32_t *quotas)
{
    double total = 0;
    if (n_sources > TOKMAP_I_MIXTURE_SOURCES)
        return false;
    for (uint32_t k = 0; k < n_sources; k++) {
        if (!(weights[k] >= 0 && weights[k] <= DBL_MAX))
            return false;
        total += weights[k];
    }
    if (!(total > 0))
        return false;
    if (whole_quotas(weights, n_sources, quotas))
        return true;
    if (!(total <= DBL_MAX))
        return false;
    rounded_quotas(&(rounding){weights, total, n_sources, quotas});
    return true;
}

/* ---- The slots of a period ---- */

/* Who may have slot i, and when his next slot is due. */
typedef struct plan {
    const stage *s;
    uint64_t *due; /* a heap of (slot before which it is due, source), the smallest first */
    uint32_t n_due;
    uint32_t *given; /* of each source: slots so far */
    uint16_t *next;  /* of each source: the one after it in its list, plus 1 */
    uint16_t *first; /* of each slot: the first source that may have a slot from here on, plus 1 */
} plan;

static void sink(plan *p, uint64_t entry)
{
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < p->n_due; at = child) {
        child += child + 1 < p->n_due && p->due[child + 1] < p->due[child];
        if (entry <= p->due[child])
            break;
        p->due[at] = p->due[child];
    }
    p->due[at] = entry;
}

static void rise(plan *p, uint64_t entry)
{
    uint32_t at = p->n_due++;
    for (; at > 0 && entry < p->due[(at - 1) / 2]; at = (at - 1) / 2)
        p->due[at] = p->due[(at - 1) / 2];
    p->due[at] = entry;
}

static uint64_t entry_of(const plan *p, uint32_t k)
{
    const uint64_t due = div_up((uint64_t)(p->given[k] + 1) * p->s->period, p->s->quotas[k]);
    return due << 16 | k;
}

/* From `slot` on source k may have its next one. */
static void add_to_list(plan *p, uint64_t slot, uint32_t k)
{
    p->next[k] = p->first[slot];
    p->first[slot] = (uint16_t)(k + 1);
}

/* n * P < q * (i + 1) first holds at i = n * P / q. Where that is behind slot i already, because
 * others were due before it, the source stays in the heap. */
static void give_slot(plan *p, uint32_t i)
{
    for (uint32_t k1 = p->first[i]; k1 > 0; k1 = p->next[k1 - 1])
        rise(p, entry_of(p, k1 - 1));
    const uint32_t k = (uint16_t)p->due[0], quota = p->s->quotas[k];
    p->s->sources[i] = (uint16_t)k;
    p->s->before[i] = p->given[k]++;
    if (p->given[k] < quota) {
        const uint64_t open = (uint64_t)p->given[k] * p->s->period / quota;
        if (open <= i) {
            sink(p, entry_of(p, k));
            return;
        }
        add_to_list(p, open, k);
    }
    p->n_due--;
    sink(p, p->due[p->n_due]);
}

static bool fill_period(const stage *s, uint32_t n_sources)
{
    const size_t n_bytes = n_sources * sizeof(uint64_t) + n_sources * sizeof(uint32_t) +
                           (n_sources + s->period) * sizeof(uint16_t);
    uint64_t *due = calloc(1, n_bytes);
    if (!due)
        return false;
    plan p = {.s = s, .due = due, .given = (uint32_t *)(due + n_sources)};
    p.next = (uint16_t *)(p.given + n_sources);
    p.first = p.next + n_sources;
    for (uint32_t k = 0; k < n_sources; k++)
        if (s->quotas[k] > 0)
            add_to_list(&p, 0, k);
    for (uint32_t i = 0; i < s->period; i++)
        give_slot(&p, i);
    free(due);
    return true;
}

/* ---- Stages ---- */

tokmap_i_mixture *tokmap_i_mixture_new(const tokmap_i_mixture_source *sources, uint32_t n_sources)
{
    const size_t n_bytes = n_sources * sizeof *sources;
    tokmap_i_mixture *m = malloc(sizeof *m + n_bytes);
    if (!m)
        return NULL;
    *m = (tokmap_i_mixture){.n_sources = n_sources};
    memcpy(m->sources, sources, n_bytes);
    return m;
}

void tokmap_i_mixture_free(tokmap_i_mixture *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_stages; i++)
        free(m->stages[i].base);
    free(m->stages);
    free(m);
}

static bool make_room(tokmap_i_mixture *m)
{
    if (m->n_stages < m->max_stages)
        return true;
    const uint32_t max_stages = m->max_stages > 0 ? 2 * m->max_stages : 1;
    stage *stages = realloc(m->stages, max_stages * sizeof *stages);
    if (!stages)
        return false;
    m->stages = stages;
    m->max_stages = max_stages;
    return true;
}

bool tokmap_i_mixture_add_stage(tokmap_i_mixture *m, uint64_t from, const uint32_t *quotas)
{
    const uint32_t n = m->n_sources;
    uint64_t period = 0;
    for (uint32_t k = 0; k < n; k++)
        period += quotas[k];
    if (period == 0 || period > TOKMAP_I_MIXTURE_PERIOD)
        return false;
    stage s = {.from = from, .period = (uint32_t)period};
    s.base = calloc(1, n * (sizeof *s.base + sizeof *s.quotas) +
                           s.period * (sizeof *s.before + sizeof *s.sources));
    if (!s.base)
        return false;
    s.quotas = (uint32_t *)(s.base + n);
    s.before = s.quotas + n;
    s.sources = (uint16_t *)(s.before + s.period);
    memcpy(s.quotas, quotas, n * sizeof *quotas);
    if (!make_room(m) || !fill_period(&s, n)) {
        free(s.base);
        return false;
    }
    if (m->n_stages > 0)
        tokmap_i_mixture_counts(m, from, s.base);
    m->stages[m->n_stages++] = s;
    return true;
}

/* The last that does not begin above g. */
static const stage *stage_at(const tokmap_i_mixture *m, uint64_t g)
{
    uint32_t low = 0, high = m->n_stages;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (m->stages[middle].from <= g)
            low = middle;
        else
            high = middle;
    }
    return &m->stages[low];
}

void tokmap_i_mixture_at(const tokmap_i_mixture *m, uint64_t g, tokmap_i_mixture_sample *out)
{
    const stage *s = stage_at(m, g);
    const uint64_t h = g - s->from, n_periods = h / s->period, slot = h % s->period;
    const uint32_t k = s->sources[slot];
    const uint64_t j = s->base[k] + n_periods * s->quotas[k] + s->before[slot];
    out->source = k;
    out->epoch = j / m->sources[k].n_windows;
    out->place = j % m->sources[k].n_windows;
}

void tokmap_i_mixture_counts(const tokmap_i_mixture *m, uint64_t g, uint64_t *counts)
{
    const stage *s = stage_at(m, g);
    const uint64_t h = g - s->from, n_periods = h / s->period;
    for (uint32_t k = 0; k < m->n_sources; k++)
        counts[k] = s->base[k] + n_periods * s->quotas[k];
    for (uint64_t slot = 0; slot < h % s->period; slot++)
        counts[s->sources[slot]]++;
}

/* ---- The end ---- */

/* The number of the first sample of source k that there is not. */
static uint64_t limit_of(const tokmap_i_mixture *m, uint32_t k)
{
    const tokmap_i_mixture_source *source = &m->sources[k];
    uint64_t limit;
    if (source->max_epochs == 0 ||
        __builtin_mul_overflow(source->max_epochs, source->n_windows, &limit))
        return UINT64_MAX;
    return limit;
}

/* Where the stage, if it went on for ever, would need a sample that there is not. */
static uint64_t end_of(const tokmap_i_mixture *m, const stage *s, uint32_t *source)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t slot = 0; slot < s->period; slot++) {
        const uint32_t k = s->sources[slot];
        const uint64_t limit = limit_of(m, k);
        if (limit == UINT64_MAX)
            continue;
        uint64_t g;
        const uint64_t left = limit - s->base[k], n_periods = left / s->quotas[k];
        if (left % s->quotas[k] != s->before[slot] ||
            __builtin_mul_overflow(n_periods, s->period, &g) ||
            __builtin_add_overflow(g, s->from + slot, &g) || g >= end)
            continue;
        end = g;
        *source = k;
    }
    return end;
}

/* Each stage is asked only where those before it have not come to the end, so no source has had
 * more than its limit. */
uint64_t tokmap_i_mixture_end(const tokmap_i_mixture *m, uint32_t *source)
{
    for (uint32_t i = 0; i < m->n_stages; i++) {
        uint32_t k = 0;
        const uint64_t end = end_of(m, &m->stages[i], &k);
        const bool is_last = i + 1 == m->n_stages;
        if (end >> 63 || (!is_last && end >= m->stages[i + 1].from))
            continue;
        *source = k;
        return end;
    }
    return UINT64_MAX;
}

/* ---- For the state ---- */

uint64_t tokmap_i_mixture_hash(const tokmap_i_mixture *m)
{
    uint64_t h = TOKMAP_I_HASH_START;
    for (uint32_t i = 0; i < m->n_stages; i++) {
        h = tokmap_i_hash_add(h, m->stages[i].from);
        for (uint32_t k = 0; k < m->n_sources; k++)
            h = tokmap_i_hash_add(h, m->stages[i].quotas[k]);
    }
    for (uint32_t k = 0; k < m->n_sources; k++)
        h = tokmap_i_hash_add(h, m->sources[k].max_epochs);
    return h;
}

uint32_t tokmap_i_mixture_n_stages(const tokmap_i_mixture *m)
{
    return m->n_stages;
}
