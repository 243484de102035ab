/* SPDX-License-Identifier: Apache-2.0 */
/* blend_by_error.c - the sources of a blend, chosen as Megatron's helpers do. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokmap_loader.h"

#define MOST_SOURCES 32766u /* of Megatron, which keeps their numbers in 16 bits */

/* A source that still has samples. */
typedef struct chosen_from {
    double weight, n_chosen;
    uint64_t limit;
    uint32_t source;
} chosen_from;

static tokmap_status check(const double *weights, const uint64_t *limits, uint32_t n_sources,
                           uint64_t n, tokmap_error *err)
{
    if (n_sources < 1 || n_sources > MOST_SOURCES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "a blend has %u sources: must be 1 to %u", n_sources,
                    MOST_SOURCES);
    uint64_t n_samples = 0;
    for (uint32_t k = 0; k < n_sources; k++) {
        if (!(weights[k] > 0 && weights[k] <= DBL_MAX))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "the weight of source %u of a blend is %g: must be finite and above 0", k,
                        weights[k]);
        const uint64_t most = limits && limits[k] < n - n_samples ? limits[k] : n - n_samples;
        n_samples += most;
    }
    if (n_samples < n)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the sources of a blend have %llu samples together, which is less than %llu",
                    (unsigned long long)n_samples, (unsigned long long)n);
    return TOKMAP_OK;
}

/* How far a source is behind its share at sample i. The two kinds differ here alone; the Makefile
 * keeps compilers from making the second the first. */
static double behind(const chosen_from *from, double i, bool is_fused)
{
    return is_fused ? fma(from->weight, i, -from->n_chosen) : from->weight * i - from->n_chosen;
}

static uint32_t farthest_behind(const chosen_from *from, uint32_t n_left, double i, bool is_fused)
{
    uint32_t found = 0;
    double most = behind(&from[0], i, is_fused);
    for (uint32_t k = 1; k < n_left; k++) {
        const double one = behind(&from[k], i, is_fused);
        if (one > most) {
            most = one;
            found = k;
        }
    }
    return found;
}

tokmap_status tokmap_blend_by_error(const double *weights, const uint64_t *limits,
                                    uint32_t n_sources, int32_t is_fused, uint64_t n,
                                    uint16_t *sources, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!weights || !sources)
        return FAIL_NULL(err);
    const tokmap_status status = check(weights, limits, n_sources, n, err);
    if (status)
        return status;
    chosen_from *from = malloc(n_sources * sizeof(*from));
    if (!from)
        return FAIL_MEMORY(err);
    uint32_t n_left = 0;
    for (uint32_t k = 0; k < n_sources; k++)
        if (!limits || limits[k] > 0)
            from[n_left++] = (chosen_from){weights[k], 0, limits ? limits[k] : UINT64_MAX, k};
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t k = farthest_behind(from, n_left, i > 0 ? (double)i : 1, is_fused);
        sources[i] = (uint16_t)from[k].source;
        from[k].n_chosen++;
        if (--from[k].limit == 0)
            memmove(&from[k], &from[k + 1], (--n_left - k) * sizeof(*from));
    }
    free(from);
    return TOKMAP_OK;
}
