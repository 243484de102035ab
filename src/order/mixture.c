/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.c - docs/ORDER.md, section 5.
 *
 * A table describes one period: the source of each slot, and how many slots that source has before
 * it. Phases with the same quotas share a table. The source of a sample, and the number of the
 * sample in its source, follow from its slot and the number of whole periods before it. */
#include "order/mixture.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "order/order_key.h"

/* Weights whose ratios are whole numbers are met exactly with a period of up to EXACT_PERIOD, or up
 * to the largest period if a source is rare. Other weights are approximated, with up to
 * USUAL_PERIOD if that is enough. */
#define EXACT_PERIOD ((uint32_t)1 << 17)
#define EXACT 1e-11
#define USUAL_PERIOD ((uint32_t)1 << 14)
#define CLOSE 1e-3
#define VERY_CLOSE 1e-9

#define BUCKETS 256

typedef struct table {
    struct table *next; /* in the same bucket */
    uint64_t hash;      /* of the quotas */
    uint32_t period;
    uint32_t *quotas;  /* one for each source */
    uint32_t *before;  /* for each slot: slots of its source before it */
    uint16_t *sources; /* of each slot */
    uint32_t *slots;   /* the slots of source 0, of source 1, ...; NULL: not needed yet */
    uint32_t *first;   /* for each source: its first slot in `slots` */
} table;

typedef struct phase {
    uint64_t from;
    uint64_t *base; /* for each source: its samples in earlier phases */
    const table *t;
} phase;

struct tokmap_i_mixture {
    uint32_t n_sources, n_phases;
    phase *phases; /* behind the sources */
    table *buckets[BUCKETS];
    uint64_t n_bytes;
    tokmap_i_mixture_source sources[];
};

/* ---- Weights to quotas ---- */

typedef struct shares {
    const double *weights;
    double total;
    uint32_t n_sources, n_weights; /* n_weights: weights above 0 */
    uint32_t critical;             /* the source that failed last; at first the rarest source */
    uint32_t *quotas;
} shares;

/* Multiplies. Never inlined, so that the product is rounded before anything is subtracted from it:
 * a compiler that fuses the two would compute other quotas on other machines. */
__attribute__((noinline)) static double product(double a, double b)
{
    return a * b;
}

/* Rounds x to a whole number, halves to even: from 2^52 on all doubles are whole. */
static double round_to_whole(double x)
{
    return (x + 0x1p52) - 0x1p52;
}

/* Returns the exact share of a source in a period, in slots. */
static double slots_of(const shares *s, uint32_t k, uint32_t period)
{
    return product(s->weights[k] / s->total, period);
}

/* Returns the distance of the nearest quota from that share, relative to the quota; 1 for a quota
 * of 0. */
static double error_of(const shares *s, uint32_t k, uint32_t period)
{
    const double slots = slots_of(s, k, period), quota = round_to_whole(slots);
    const double off = slots < quota ? quota - slots : slots - quota;
    return quota > 0 ? off / quota : 1;
}

/* Returns the largest error of all sources; `limit` if it is not below that, or if the quotas do
 * not add up to the period. The source that failed last is checked first, because it is the
 * likeliest to fail again. */
static double largest_error(shares *s, uint32_t period, double limit)
{
    double largest = error_of(s, s->critical, period), sum = 0;
    for (uint32_t k = 0; k < s->n_sources && largest < limit; k++) {
        if (s->weights[k] == 0)
            continue;
        const double error = error_of(s, k, period);
        if (error >= limit)
            s->critical = k;
        largest = MAX(largest, error);
        sum += round_to_whole(slots_of(s, k, period));
    }
    return largest < limit && sum == period ? largest : limit;
}

/* Returns the period with the smallest error below `limit`, or the first one with an error below
 * `enough`; 0: there is none. */
static uint32_t find_period(shares *s, uint32_t first, uint32_t last, double limit, double enough)
{
    uint32_t best = 0;
    for (uint32_t period = MAX(first, s->n_weights); period <= last; period++) {
        const double error = largest_error(s, period, limit);
        if (error >= limit)
            continue;
        best = period;
        limit = error;
        if (error < enough)
            break;
    }
    return best;
}

/* Returns how much a quota is below its share, as an integer of the same order; 0 for sources
 * without a quota. */
static uint64_t lack_of(const shares *s, uint32_t k)
{
    const double lack = slots_of(s, k, TOKMAP_I_MIXTURE_PERIOD) - s->quotas[k];
    uint64_t bits;
    memcpy(&bits, &lack, sizeof bits);
    if (s->quotas[k] == 0)
        return 0;
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t n_lacking(const shares *s, uint64_t least)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < s->n_sources; k++)
        n += lack_of(s, k) >= least;
    return n;
}

/* Gives one more slot to each of the n sources that lack most. Finds the n-th largest lack bit by
 * bit. */
static void raise_quotas(const shares *s, uint64_t n)
{
    uint64_t level = 0;
    for (uint64_t bit = (uint64_t)1 << 63; bit > 0; bit >>= 1)
        level |= n_lacking(s, level | bit) >= n ? bit : 0;
    uint64_t n_at_level = n - n_lacking(s, level + 1);
    for (uint32_t k = 0; k < s->n_sources; k++) {
        const uint64_t lack = lack_of(s, k);
        const bool takes = lack > level || (lack == level && n_at_level > 0);
        n_at_level -= takes && lack == level;
        s->quotas[k] += takes;
    }
}

static void set_quotas(shares *s)
{
    const uint32_t last = TOKMAP_I_MIXTURE_PERIOD;
    uint32_t period = find_period(s, 1, EXACT_PERIOD, EXACT, EXACT);
    if (period == 0)
        period = find_period(s, 1, USUAL_PERIOD, CLOSE, VERY_CLOSE);
    if (period == 0)
        period = find_period(s, EXACT_PERIOD + 1, last, EXACT, EXACT);
    if (period == 0)
        period = find_period(s, USUAL_PERIOD + 1, last, CLOSE, CLOSE);
    for (uint32_t k = 0; k < s->n_sources && period > 0; k++)
        s->quotas[k] = (uint32_t)round_to_whole(slots_of(s, k, period));
    if (period > 0)
        return;
    /* Rounded down, the quotas cannot add up to more than the period, whatever the rounding of
     * doubles. */
    uint64_t sum = 0;
    for (uint32_t k = 0; k < s->n_sources; k++)
        sum += s->quotas[k] = (uint32_t)slots_of(s, k, last);
    if (sum < last)
        raise_quotas(s, last - sum);
}

bool tokmap_i_quotas(const double *weights, uint32_t n_sources, uint32_t *quotas,
                     uint32_t *too_small)
{
    shares s = {.weights = weights, .n_sources = n_sources, .quotas = quotas};
    *too_small = UINT32_MAX;
    if (n_sources > TOKMAP_I_MIXTURE_SOURCES)
        return false;
    for (uint32_t k = 0; k < n_sources; k++) {
        if (!(weights[k] >= 0))
            return false;
        if (weights[k] > 0 && (s.n_weights == 0 || weights[k] < weights[s.critical]))
            s.critical = k;
        s.n_weights += weights[k] > 0;
        s.total += weights[k];
    }
    if (!(s.total > 0 && s.total <= DBL_MAX))
        return false;
    if (slots_of(&s, s.critical, TOKMAP_I_MIXTURE_PERIOD) < 1) {
        *too_small = s.critical;
        return false;
    }
    set_quotas(&s);
    return true;
}

/* ---- The slots of a period ---- */

/* The sources that may have slot i, and when the next slot of each is due. */
typedef struct slot_heap {
    const table *t;
    uint64_t *due; /* a heap of (slot before which it is due, source), smallest first */
    uint32_t n_due;
    uint32_t *given; /* for each source: its slots so far */
    uint16_t *next;  /* for each source: the next one in its list, plus 1 */
    uint16_t *first; /* for each slot: the first source that may have a slot from here on, plus 1 */
} slot_heap;

static void sift_down(slot_heap *p, uint64_t entry)
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

static uint64_t entry_of(const slot_heap *p, uint32_t k)
{
    const uint64_t due = div_up((uint64_t)(p->given[k] + 1) * p->t->period, p->t->quotas[k]);
    return due << 16 | k;
}

/* Lets source k have its next slot from `slot` on. */
static void add_to_list(slot_heap *p, uint64_t slot, uint32_t k)
{
    p->next[k] = p->first[slot];
    p->first[slot] = (uint16_t)(k + 1);
}

/* Assigns slot i. n * P < q * (i + 1) first holds at i = n * P / q. If that slot is i or before,
 * because other sources were due first, the source stays in the heap. */
static void assign_slot(slot_heap *p, uint32_t i)
{
    for (uint32_t k1 = p->first[i]; k1 > 0; k1 = p->next[k1 - 1]) {
        const uint64_t entry = entry_of(p, k1 - 1);
        uint32_t at = p->n_due++;
        for (; at > 0 && entry < p->due[(at - 1) / 2]; at = (at - 1) / 2)
            p->due[at] = p->due[(at - 1) / 2];
        p->due[at] = entry;
    }
    const uint32_t k = (uint16_t)p->due[0], quota = p->t->quotas[k];
    p->t->sources[i] = (uint16_t)k;
    p->t->before[i] = p->given[k]++;
    if (p->given[k] < quota) {
        const uint64_t open = (uint64_t)p->given[k] * p->t->period / quota;
        if (open <= i) {
            sift_down(p, entry_of(p, k));
            return;
        }
        add_to_list(p, open, k);
    }
    p->n_due--;
    sift_down(p, p->due[p->n_due]);
}

static bool fill_period(const table *t, uint32_t n_sources)
{
    const size_t n_bytes = n_sources * sizeof(uint64_t) + n_sources * sizeof(uint32_t) +
                           (n_sources + t->period) * sizeof(uint16_t);
    uint64_t *due = calloc(1, n_bytes);
    if (!due)
        return false;
    slot_heap p = {.t = t, .due = due, .given = (uint32_t *)(due + n_sources)};
    p.next = (uint16_t *)(p.given + n_sources);
    p.first = p.next + n_sources;
    for (uint32_t k = 0; k < n_sources; k++)
        if (t->quotas[k] > 0)
            add_to_list(&p, 0, k);
    for (uint32_t i = 0; i < t->period; i++)
        assign_slot(&p, i);
    free(due);
    return true;
}

/* ---- Tables ---- */

/* Returns the table that other phases with these quotas use, or a new one. NULL: out of memory. */
static const table *table_of(tokmap_i_mixture *m, const uint32_t *quotas, uint32_t period)
{
    const uint32_t n = m->n_sources;
    const size_t n_bytes =
        sizeof(table) + n * sizeof(uint32_t) + period * (sizeof(uint32_t) + sizeof(uint16_t));
    uint64_t hash = TOKMAP_I_HASH_START;
    for (uint32_t k = 0; k < n; k++)
        hash = tokmap_i_hash_add(hash, quotas[k]);
    table **at = &m->buckets[hash % BUCKETS];
    while (*at && ((*at)->hash != hash || memcmp((*at)->quotas, quotas, n * sizeof *quotas) != 0))
        at = &(*at)->next;
    table *t = *at ? NULL : malloc(n_bytes);
    if (!t)
        return *at;
    *t = (table){.hash = hash, .period = period, .quotas = (uint32_t *)(t + 1)};
    t->before = t->quotas + n;
    t->sources = (uint16_t *)(t->before + period);
    memcpy(t->quotas, quotas, n * sizeof *quotas);
    if (!fill_period(t, n)) {
        free(t);
        return NULL;
    }
    m->n_bytes += n_bytes;
    *at = t;
    return t;
}

/* ---- Phases ---- */

tokmap_i_mixture *tokmap_i_mixture_new(const tokmap_i_mixture_source *sources, uint32_t n_sources,
                                       uint32_t max_phases)
{
    const size_t n_bytes = n_sources * sizeof *sources, phases_bytes = max_phases * sizeof(phase);
    tokmap_i_mixture *m = malloc(sizeof *m + n_bytes + phases_bytes);
    if (!m)
        return NULL;
    *m = (tokmap_i_mixture){.n_sources = n_sources,
                            .phases = (phase *)(m->sources + n_sources),
                            .n_bytes = sizeof *m + n_bytes + phases_bytes};
    memcpy(m->sources, sources, n_bytes);
    return m;
}

void tokmap_i_mixture_free(tokmap_i_mixture *m)
{
    if (!m)
        return;
    for (int i = 0; i < BUCKETS; i++) {
        for (table *t = m->buckets[i], *next; t; t = next) {
            next = t->next;
            free(t->slots);
            free(t);
        }
    }
    for (uint32_t i = 0; i < m->n_phases; i++)
        free(m->phases[i].base);
    free(m);
}

bool tokmap_i_mixture_add_phase(tokmap_i_mixture *m, uint64_t from, const uint32_t *quotas)
{
    uint64_t period = 0;
    for (uint32_t k = 0; k < m->n_sources; k++)
        period += quotas[k];
    if (period == 0 || period > TOKMAP_I_MIXTURE_PERIOD)
        return false;
    phase s = {.from = from, .t = table_of(m, quotas, (uint32_t)period)};
    s.base = s.t ? calloc(m->n_sources, sizeof *s.base) : NULL;
    if (!s.base)
        return false;
    m->n_bytes += m->n_sources * sizeof *s.base;
    if (m->n_phases > 0)
        tokmap_i_mixture_counts(m, from, s.base);
    m->phases[m->n_phases++] = s;
    return true;
}

tokmap_i_mixture_phase tokmap_i_mixture_get_phase(const tokmap_i_mixture *m, uint32_t i)
{
    const phase *p = &m->phases[i];
    return (tokmap_i_mixture_phase){
        .from = p->from, .quotas = p->t->quotas, .period = p->t->period};
}

uint64_t tokmap_i_mixture_bytes(const tokmap_i_mixture *m)
{
    return m->n_bytes;
}

/* Returns the last phase that begins at sample x or before; with `source`, the last phase before
 * which there were at most x samples of that source. */
static inline const phase *find_phase(const tokmap_i_mixture *m, const uint32_t *source, uint64_t x)
{
    uint32_t low = 0, high = m->n_phases;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const phase *s = &m->phases[middle];
        if ((source ? s->base[*source] : s->from) <= x)
            low = middle;
        else
            high = middle;
    }
    return &m->phases[low];
}

void tokmap_i_mixture_at(const tokmap_i_mixture *m, uint64_t g, tokmap_i_mixture_sample *out)
{
    const phase *s = find_phase(m, NULL, g);
    const uint64_t h = g - s->from, n_periods = h / s->t->period, slot = h % s->t->period;
    const uint32_t k = s->t->sources[slot];
    const uint64_t j = s->base[k] + n_periods * s->t->quotas[k] + s->t->before[slot];
    out->source = k;
    out->epoch = j / m->sources[k].n_windows;
    out->place = j % m->sources[k].n_windows;
}

bool tokmap_i_mixture_prepare_find(tokmap_i_mixture *m)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (table *t = m->buckets[i]; t; t = t->next) {
            uint32_t n = 0;
            if (t->slots)
                continue;
            t->slots = malloc((t->period + m->n_sources) * sizeof *t->slots);
            if (!t->slots)
                return false;
            t->first = t->slots + t->period;
            for (uint32_t k = 0; k < m->n_sources; n += t->quotas[k++])
                t->first[k] = n;
            for (uint32_t slot = 0; slot < t->period; slot++)
                t->slots[t->first[t->sources[slot]] + t->before[slot]] = slot;
            m->n_bytes += (t->period + m->n_sources) * sizeof *t->slots;
        }
    }
    return true;
}

uint64_t tokmap_i_mixture_find(const tokmap_i_mixture *m, uint32_t source, uint64_t j)
{
    const phase *s = find_phase(m, &source, j);
    uint64_t g;
    const uint32_t quota = s->t->quotas[source];
    const uint64_t n = j - s->base[source];
    if (quota == 0 || __builtin_mul_overflow(n / quota, s->t->period, &g))
        return UINT64_MAX;
    g += s->from + s->t->slots[s->t->first[source] + n % quota];
    return g < (uint64_t)1 << 63 ? g : UINT64_MAX;
}

void tokmap_i_mixture_counts(const tokmap_i_mixture *m, uint64_t g, uint64_t *counts)
{
    const phase *s = find_phase(m, NULL, g);
    const uint64_t h = g - s->from, n_periods = h / s->t->period;
    for (uint32_t k = 0; k < m->n_sources; k++)
        counts[k] = s->base[k] + n_periods * s->t->quotas[k];
    for (uint64_t slot = 0; slot < h % s->t->period; slot++)
        counts[s->t->sources[slot]]++;
}

/* ---- The end ---- */

/* Returns the number of samples that source k has. */
static uint64_t limit_of(const tokmap_i_mixture *m, uint32_t k)
{
    const tokmap_i_mixture_source *source = &m->sources[k];
    uint64_t limit;
    if (source->max_epochs == 0 ||
        __builtin_mul_overflow(source->max_epochs, source->n_windows, &limit))
        return UINT64_MAX;
    return limit;
}

/* Returns a lower bound of the sample at which source k has no sample left, if this phase
 * continues. */
static uint64_t least_end(const tokmap_i_mixture *m, const phase *s, uint32_t k)
{
    const uint64_t limit = limit_of(m, k);
    uint64_t g;
    if (limit == UINT64_MAX || s->t->quotas[k] == 0 ||
        __builtin_mul_overflow((limit - s->base[k]) / s->t->quotas[k], s->t->period, &g) ||
        __builtin_add_overflow(g, s->from, &g))
        return UINT64_MAX;
    return g;
}

/* Returns the first sample for which a source has none left, if this phase continued forever. */
static uint64_t end_of(const tokmap_i_mixture *m, const phase *s, uint32_t *source)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t slot = 0; slot < s->t->period; slot++) {
        const uint32_t k = s->t->sources[slot];
        uint64_t g = least_end(m, s, k);
        if (g == UINT64_MAX ||
            (limit_of(m, k) - s->base[k]) % s->t->quotas[k] != s->t->before[slot] ||
            __builtin_add_overflow(g, slot, &g) || g >= end)
            continue;
        end = g;
        *source = k;
    }
    return end;
}

/* A phase is examined only if the mixture does not end before it, so no source is beyond its limit.
 * Single slots are examined only near the end. */
uint64_t tokmap_i_mixture_end(const tokmap_i_mixture *m, uint32_t *source)
{
    for (uint32_t i = 0; i < m->n_phases; i++) {
        const uint64_t next = i + 1 < m->n_phases ? m->phases[i + 1].from : UINT64_MAX;
        const uint64_t before = MIN(next, (uint64_t)1 << 63);
        uint32_t k = 0;
        while (k < m->n_sources && least_end(m, &m->phases[i], k) >= before)
            k++;
        if (k == m->n_sources)
            continue;
        const uint64_t end = end_of(m, &m->phases[i], &k);
        if (end >= before)
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
    for (uint32_t i = 0; i < m->n_phases; i++) {
        h = tokmap_i_hash_add(h, m->phases[i].from);
        for (uint32_t k = 0; k < m->n_sources; k++)
            h = tokmap_i_hash_add(h, m->phases[i].t->quotas[k]);
    }
    for (uint32_t k = 0; k < m->n_sources; k++)
        h = tokmap_i_hash_add(h, m->sources[k].max_epochs);
    return h;
}

uint32_t tokmap_i_mixture_n_phases(const tokmap_i_mixture *m)
{
    return m->n_phases;
}
