/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - the calls that say which samples a source or a document has. */
#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "loader/loader.h"
#include "samples/look_back.h"

tokmap_status tokmap_loader_sources_of(const tokmap_loader *l, uint64_t first_sample,
                                       size_t n_samples, uint32_t *sources, tokmap_error *err)
{
    tokmap_i_mixture_sample at;
    uint64_t end;
    tokmap_i_error_clear(err);
    if (!l || (!sources && n_samples > 0))
        return FAIL_NULL(err);
    const bool overflows = __builtin_add_overflow(first_sample, n_samples, &end);
    const tokmap_status status =
        tokmap_i_samples_check(&l->samples, overflows ? UINT64_MAX : end, err);
    for (size_t i = 0; i < n_samples && !status; i++) {
        tokmap_i_mixture_at(l->samples.mixture, first_sample + i, &at);
        sources[i] = at.source;
    }
    return status;
}

tokmap_status tokmap_loader_count_samples(const tokmap_loader *l, uint64_t sample, uint64_t *counts,
                                          tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!l || !counts)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_loader_check_fork(l, err);
    if (!status)
        status = tokmap_i_samples_check(&l->samples, sample, err);
    if (!status)
        tokmap_i_mixture_counts(l->samples.mixture, sample, counts);
    return status;
}

tokmap_status tokmap_loader_find(tokmap_loader *l, tokmap_loader_search *search, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_search, n_found)};
    tokmap_loader_search s;
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    status = tokmap_i_take_options(&s, search, &kind, err);
    if (!status && !s.samples && s.max_samples > 0)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "samples is NULL");
    if (!status)
        status = tokmap_i_look_back_find(&l->samples, &l->sampler, &s, err);
    if (!status)
        status = tokmap_i_give_struct(search, &s, &kind, err);
    return tokmap_i_loader_leave(l, status);
}

tokmap_status tokmap_loader_count_labels(tokmap_loader *l, const tokmap_loader_labels *options,
                                         tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_labels, labels)};
    tokmap_loader_labels o;
    tokmap_status status = tokmap_i_loader_enter(l, err);
    if (status)
        return status;
    status = tokmap_i_take_options(&o, options, &kind, err);
    if (!status && !o.labels)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "labels is NULL");
    if (!status)
        status = tokmap_i_look_back_count(&l->samples, &l->sampler, &o, err);
    return tokmap_i_loader_leave(l, status);
}
