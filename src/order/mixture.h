/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.h - finds the source of sample g, and the number of the sample in its source:
 * docs/ORDER.md, section 5. Constant time for any g. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOKMAP_I_MIXTURE_SOURCES 65535u
#define TOKMAP_I_MIXTURE_PHASES 65535u
#define TOKMAP_I_MIXTURE_PERIOD ((uint32_t)1 << 20)

/* Computes quotas[0 .. n_sources) for the weights, by the rule of section 5. Returns false if a
 * weight is negative, none is above 0, their sum is not finite, or there are too many sources; or
 * if source *too_small (else UINT32_MAX) has less than one of TOKMAP_I_MIXTURE_PERIOD samples. */
bool tokmap_i_quotas(const double *weights, uint32_t n_sources, uint32_t *quotas,
                     uint32_t *too_small);

typedef struct tokmap_i_mixture tokmap_i_mixture;

typedef struct tokmap_i_mixture_source {
    uint64_t n_windows;  /* of an epoch; at least 1 */
    uint64_t max_epochs; /* 0: no limit */
} tokmap_i_mixture_source;

/* Makes a mixture without phases; add them in order, at most max_phases. NULL: out of memory. */
tokmap_i_mixture *tokmap_i_mixture_new(const tokmap_i_mixture_source *sources, uint32_t n_sources,
                                       uint32_t max_phases);
void tokmap_i_mixture_free(tokmap_i_mixture *m);
/* Adds a phase. quotas has an entry for each source. The first phase begins at sample 0, each other
 * one after the previous one. Returns false, and changes nothing, if the sum of the quotas is not 1
 * to TOKMAP_I_MIXTURE_PERIOD, or when out of memory. */
bool tokmap_i_mixture_add_phase(tokmap_i_mixture *m, uint64_t from, const uint32_t *quotas);

typedef struct tokmap_i_mixture_phase {
    uint64_t from;
    const uint32_t *quotas;
    uint32_t period; /* their sum */
} tokmap_i_mixture_phase;
/* Returns phase i < n_phases. */
tokmap_i_mixture_phase tokmap_i_mixture_get_phase(const tokmap_i_mixture *m, uint32_t i);

/* Returns the number of samples: the mixture ends when a source with max_epochs has none left, and
 * *source becomes that one. UINT64_MAX: it does not end before 2^63. */
uint64_t tokmap_i_mixture_end(const tokmap_i_mixture *m, uint32_t *source);

typedef struct tokmap_i_mixture_sample {
    uint32_t source;
    uint64_t epoch, place; /* the window is number `place` in that epoch of the source */
} tokmap_i_mixture_sample;

/* Finds sample g, which must be below the end and below 2^63. */
void tokmap_i_mixture_at(const tokmap_i_mixture *m, uint64_t g, tokmap_i_mixture_sample *out);
/* Makes what find needs, once for all phases. Returns false when out of memory. */
bool tokmap_i_mixture_prepare_find(tokmap_i_mixture *m);
/* Returns the sample that is number j of a source. UINT64_MAX: there is none below 2^63. */
uint64_t tokmap_i_mixture_find(const tokmap_i_mixture *m, uint32_t source, uint64_t j);
/* Counts the samples of each source before sample g, in counts[0 .. n_sources). */
void tokmap_i_mixture_counts(const tokmap_i_mixture *m, uint64_t g, uint64_t *counts);

/* Returns the memory of the mixture. Phases with the same quotas share a table. */
uint64_t tokmap_i_mixture_bytes(const tokmap_i_mixture *m);
/* Returns the hash for the state: docs/ORDER.md, section 8. */
uint64_t tokmap_i_mixture_hash(const tokmap_i_mixture *m);
uint32_t tokmap_i_mixture_n_phases(const tokmap_i_mixture *m);
