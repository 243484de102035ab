/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - the samples that options describe: checks the options, makes mixture and skips. */
#include "samples/samples.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"

#define MAX_LENGTH ((uint32_t)1 << 24)
#define MAX_DATASETS 65535u

static const tokmap_i_struct_kind source_kind = {STRUCT_KIND(tokmap_loader_source, weight)};
static const tokmap_i_struct_kind phase_kind = {STRUCT_KIND(tokmap_loader_phase, weights)};
static const tokmap_i_struct_kind skip_kind = {STRUCT_KIND(tokmap_loader_skip, end_sample)};

/* ---- Options ---- */

static tokmap_status check_arrays(const tokmap_loader_options *o, tokmap_error *err)
{
    if (o->n_sources == 0 || o->n_sources > TOKMAP_I_MIXTURE_SOURCES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_sources is %" PRIu32 ": must be 1 to 65,535",
                    o->n_sources);
    if (!o->sources)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "sources is NULL");
    if (o->n_phases >= TOKMAP_I_MIXTURE_PHASES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_phases is %" PRIu32 ": must be at most 65,534",
                    o->n_phases);
    if (o->n_phases > 0 && !o->phases)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "phases is NULL");
    if (o->n_skips > 0 && !o->skips)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "skips is NULL");
    tokmap_status status = tokmap_i_check_stride(o->source_stride, &source_kind, err);
    if (!status && o->n_phases > 0)
        status = tokmap_i_check_stride(o->phase_stride, &phase_kind, err);
    if (!status && o->n_skips > 0)
        status = tokmap_i_check_stride(o->skip_stride, &skip_kind, err);
    return status;
}

tokmap_status tokmap_i_samples_take_options(tokmap_loader_options *o,
                                            const tokmap_loader_options *options, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_loader_options, n_lanes)};
    *o = (tokmap_loader_options){0};
    tokmap_loader_options given;
    tokmap_status status = tokmap_i_take_options(&given, options, &kind, err);
    if (!status)
        status = tokmap_i_check_flag("mixed_tokenizers", given.mixed_tokenizers, err);
    if (!status)
        status = check_arrays(&given, err);
    if (status)
        return status;
    tokmap_loader_source *sources = calloc(given.n_sources, sizeof *sources);
    const size_t weights_bytes = given.n_sources * sizeof(double); /* they follow the phases */
    tokmap_loader_phase *phases = calloc(given.n_phases + 1, sizeof *phases + weights_bytes);
    double *weights = (double *)(phases + given.n_phases + 1);
    tokmap_loader_skip *skips = calloc((size_t)given.n_skips + 1, sizeof *skips);
    *o = given;
    o->sources = sources;
    o->phases = phases;
    o->skips = skips;
    status = sources && phases && skips ? TOKMAP_OK : FAIL_MEMORY(err);
    for (size_t k = 0; k < given.n_sources && !status; k++)
        status =
            tokmap_i_take_known(&sources[k], (const uint8_t *)given.sources + k * o->source_stride,
                                o->source_stride, &source_kind, err);
    for (size_t i = 0; i < given.n_phases && !status; i++) {
        status =
            tokmap_i_take_known(&phases[i], (const uint8_t *)given.phases + i * o->phase_stride,
                                o->phase_stride, &phase_kind, err);
        if (!status && phases[i].weights)
            phases[i].weights =
                memcpy(weights + i * given.n_sources, phases[i].weights, weights_bytes);
    }
    for (size_t i = 0; i < given.n_skips && !status; i++)
        status = tokmap_i_take_known(&skips[i], (const uint8_t *)given.skips + i * o->skip_stride,
                                     o->skip_stride, &skip_kind, err);
    return status;
}

void tokmap_i_samples_free_options(tokmap_loader_options *o)
{
    free((void *)(uintptr_t)o->sources);
    free((void *)(uintptr_t)o->phases);
    free((void *)(uintptr_t)o->skips);
}

static tokmap_i_rows_kind rows_kind_of(const tokmap_loader_options *o)
{
    return (tokmap_i_rows_kind){o->sequence_length, MAX(o->align, 1), o->max_documents,
                                o->whole_documents};
}

static tokmap_status check_best_fit(const tokmap_loader_options *o, tokmap_error *err)
{
    const bool is_set = o->align || o->max_documents || o->whole_documents;
    if (o->windows != TOKMAP_WINDOWS_BEST_FIT)
        return !is_set ? TOKMAP_OK
                       : FAIL(err, TOKMAP_ERR_ARGUMENT,
                              "align, max_documents and whole_documents are only for "
                              "windows of the kind best fit");
    if (o->block_windows)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "block_windows must be 0 with windows of the kind best fit, whose blocks are "
                    "the chunks in which rows were packed");
    const tokmap_i_rows_kind kind = rows_kind_of(o);
    if (o->group_blocks > TOKMAP_I_PERMUTE_MAX / tokmap_i_chunk_rows(o->sequence_length))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "group_blocks is %" PRIu64 ": a group has at most 2^48 rows", o->group_blocks);
    return tokmap_i_rows_check(&kind, err);
}

static tokmap_status check_windows(const tokmap_loader_options *o, tokmap_error *err)
{
    if (o->sequence_length == 0 || o->sequence_length > MAX_LENGTH)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "sequence_length is %" PRIu32 ": must be 1 to 2^24",
                    o->sequence_length);
    if (o->windows != TOKMAP_WINDOWS_CONCAT && o->windows != TOKMAP_WINDOWS_WITHIN_DOCUMENT &&
        o->windows != TOKMAP_WINDOWS_BEST_FIT)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "windows is %d: must be 0 to 2", (int)o->windows);
    if (o->random_offset && o->windows != TOKMAP_WINDOWS_CONCAT)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "random_offset is not possible with windows that follow documents");
    tokmap_status status = tokmap_i_check_flag("random_offset", o->random_offset, err);
    if (!status)
        status = tokmap_i_check_flag("weigh_tokens", o->weigh_tokens, err);
    return status ? status : check_best_fit(o, err);
}

static tokmap_status check_shuffle(const tokmap_loader_options *o, tokmap_error *err)
{
    if (o->shuffle != TOKMAP_SHUFFLE_FULL && o->shuffle != TOKMAP_SHUFFLE_NONE &&
        o->shuffle != TOKMAP_SHUFFLE_BLOCK)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "shuffle is %d: must be 0, 1 or 2", (int)o->shuffle);
    if (o->shuffle != TOKMAP_SHUFFLE_BLOCK && (o->block_windows || o->group_blocks))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "block_windows and group_blocks are only for TOKMAP_SHUFFLE_BLOCK");
    if (o->block_windows > TOKMAP_I_PERMUTE_MAX / TOKMAP_I_GROUP_BLOCKS ||
        o->group_blocks > TOKMAP_I_PERMUTE_MAX / TOKMAP_I_SHUFFLE_BYTES ||
        (o->block_windows > 0 && o->group_blocks > TOKMAP_I_PERMUTE_MAX / o->block_windows))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%" PRIu64 " blocks of %" PRIu64 " windows: a group has at most 2^48 windows, "
                    "a block 2^42, and there are at most 2^28 blocks in a group",
                    o->group_blocks, o->block_windows);
    return TOKMAP_OK;
}

static tokmap_status check_sources(const tokmap_loader_options *o, tokmap_error *err)
{
    for (size_t k = 0; k < o->n_sources; k++) {
        const tokmap_loader_source *s = &o->sources[k];
        if (s->n_datasets == 0 || s->n_datasets > MAX_DATASETS)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu has %" PRIu32 " datasets: must be 1 to 65,535", k,
                        s->n_datasets);
        if (!s->datasets)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "source %zu: datasets is NULL", k);
        for (uint32_t d = 0; d < s->n_datasets; d++)
            if (!s->datasets[d])
                return FAIL(err, TOKMAP_ERR_ARGUMENT, "source %zu: dataset %" PRIu32 " is NULL", k,
                            d);
        if (s->masked != 0 && s->masked != 1)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu: masked is %" PRId32 ": must be 0 or 1", k, s->masked);
        for (size_t role = 0; s->train_roles && role <= TOKMAP_I_OWN_ROLES; role++) {
            const bool may_count = role >= TOKMAP_SPAN_UNCOUNTED && role < TOKMAP_I_OWN_ROLES;
            if (s->train_roles[role] > may_count)
                return FAIL(err, TOKMAP_ERR_ARGUMENT,
                            "source %zu: train_roles[%zu] is %u: must be 0%s", k, role,
                            s->train_roles[role], may_count ? " or 1" : "");
        }
        if (s->rows_files && o->windows != TOKMAP_WINDOWS_BEST_FIT)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "source %zu: rows_files are only for windows of the kind best fit", k);
    }
    return TOKMAP_OK;
}

/* ---- Mixture ---- */

/* Fails because of weights that are not shares. */
static tokmap_status fail_weights(const double *weights, uint32_t n, uint64_t from,
                                  tokmap_error *err)
{
    for (uint32_t k = 0; k < n; k++)
        if (!(weights[k] >= 0 && weights[k] <= DBL_MAX))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "the weights from sample %" PRIu64 " on: source %" PRIu32
                        " has weight %g: must be at least 0, and finite",
                        from, k, weights[k]);
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "the weights from sample %" PRIu64 " on: one of the %" PRIu32
                " sources must have a weight above 0, and the sum must be finite",
                from, n);
}

static tokmap_status add_phase(const tokmap_i_samples *samples, const tokmap_loader_options *o,
                               tokmap_i_mixture *m, uint64_t from, const double *weights,
                               tokmap_error *err)
{
    const uint32_t n_sources = o->n_sources;
    uint32_t too_small, *quotas = malloc(n_sources * sizeof *quotas);
    double total = 0, *shares = malloc(n_sources * sizeof *shares); /* shares of samples */
    tokmap_status status = TOKMAP_OK;
    for (uint32_t k = 0; shares && k < n_sources; k++) {
        const tokmap_i_windows *w = &samples->sources[k].windows;
        total += weights[k];
        shares[k] = weights[k];
        if (o->weigh_tokens)
            shares[k] /= (double)w->n_labels / (double)w->n_windows;
    }
    if (!quotas || !shares)
        status = FAIL_MEMORY(err);
    else if (tokmap_i_quotas(shares, n_sources, quotas, &too_small))
        status = tokmap_i_mixture_add_phase(m, from, quotas) ? TOKMAP_OK : FAIL_MEMORY(err);
    else if (too_small == UINT32_MAX)
        status = fail_weights(weights, n_sources, from, err);
    else
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "the weights from sample %" PRIu64 " on: source %" PRIu32
                      " has weight %g, less than the smallest share, which is 1 of %" PRIu32
                      " samples: set it to %.3g or more, or 0 to leave it out",
                      from, too_small, weights[too_small], TOKMAP_I_MIXTURE_PERIOD,
                      total / TOKMAP_I_MIXTURE_PERIOD);
    free(quotas);
    free(shares);
    return status;
}

tokmap_status tokmap_i_samples_make_mixture(const tokmap_i_samples *samples,
                                            const tokmap_loader_options *o, tokmap_i_mixture **out,
                                            tokmap_error *err)
{
    const uint32_t n = o->n_sources;
    tokmap_i_mixture_source *sources = calloc(n, sizeof *sources);
    double *weights = calloc(n, sizeof *weights);
    for (uint32_t k = 0; sources && weights && k < n; k++) {
        sources[k] = (tokmap_i_mixture_source){samples->sources[k].shuffle.n_windows,
                                               o->sources[k].max_epochs};
        weights[k] = n == 1 && o->sources[k].weight == 0 ? 1 : o->sources[k].weight;
    }
    tokmap_i_mixture *m =
        sources && weights ? tokmap_i_mixture_new(sources, n, o->n_phases + 1) : NULL;
    tokmap_status status = m ? add_phase(samples, o, m, 0, weights, err) : FAIL_MEMORY(err);
    free(sources);
    free(weights);
    *out = m;
    for (size_t i = 0; i < o->n_phases && !status; i++) {
        const tokmap_loader_phase *phase = &o->phases[i];
        const uint64_t before = i ? phase[-1].first_sample : 0;
        if (!phase->weights)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "phase %zu: weights is NULL", i);
        if (phase->first_sample <= before || phase->first_sample >= TOKMAP_I_MAX_SAMPLE)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "phase %zu: first_sample is %" PRIu64 ": must be above %" PRIu64
                        " and below 2^62",
                        i, phase->first_sample, before);
        status = add_phase(samples, o, m, phase->first_sample, phase->weights, err);
    }
    return status;
}

tokmap_status tokmap_i_samples_make_skips(const tokmap_loader_options *o, uint64_t end,
                                          tokmap_i_skips *out, tokmap_error *err)
{
    *out = (tokmap_i_skips){.gaps = calloc((size_t)o->n_skips + 1, sizeof *out->gaps)};
    if (!out->gaps)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < o->n_skips; i++) {
        const tokmap_loader_skip *skip = &o->skips[i];
        if (skip->end_sample > end)
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "skip %zu: samples %" PRIu64 " to %" PRIu64
                        " do not all exist: the loader has %" PRIu64,
                        i, skip->first_sample, skip->end_sample, end);
        if (!tokmap_i_skips_add(out, skip->first_sample, skip->end_sample))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "skip %zu: from sample %" PRIu64 " up to %" PRIu64
                        ": must have a sample, and begin after the skip before it",
                        i, skip->first_sample, skip->end_sample);
    }
    return TOKMAP_OK;
}

/* ---- Samples ---- */

tokmap_status tokmap_i_samples_check(const tokmap_i_samples *samples, uint64_t sample,
                                     tokmap_error *err)
{
    const uint64_t end = MIN(samples->end, TOKMAP_I_MAX_SAMPLE);
    if (sample <= end)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "cannot continue at sample %" PRIu64 ": the loader has %" PRIu64 " samples", sample,
                end);
}

uint64_t tokmap_i_samples_after(const tokmap_i_samples *samples, uint64_t sample, uint64_t n_rows)
{
    const tokmap_i_skips *skips = &samples->skips;
    return tokmap_i_skips_sample(skips, tokmap_i_skips_position(skips, sample) + n_rows);
}

tokmap_status tokmap_i_samples_open(tokmap_i_samples *samples, tokmap_error *err)
{
    const tokmap_loader_options *o = &samples->o;
    tokmap_status status = check_windows(o, err);
    if (!status)
        status = check_shuffle(o, err);
    if (!status)
        status = check_sources(o, err);
    if (status)
        return status;
    samples->length = o->sequence_length;
    if (o->windows == TOKMAP_WINDOWS_BEST_FIT)
        samples->rows_kind = rows_kind_of(o);
    status = tokmap_i_sources_open(samples, err);
    if (!status)
        status = tokmap_i_samples_make_mixture(samples, o, &samples->mixture, err);
    if (status)
        return status;
    samples->end = tokmap_i_mixture_end(samples->mixture, &samples->end_source);
    samples->end = samples->end > TOKMAP_I_MAX_SAMPLE ? UINT64_MAX : samples->end;
    return tokmap_i_samples_make_skips(o, MIN(samples->end, TOKMAP_I_MAX_SAMPLE), &samples->skips,
                                       err);
}

void tokmap_i_samples_close(tokmap_i_samples *samples)
{
    tokmap_i_sources_close(samples);
    tokmap_i_mixture_free(samples->mixture);
    free(samples->skips.gaps);
    tokmap_i_samples_free_options(&samples->o);
}
