/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/sampler.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"

/* ---- Within documents ---- */

uint64_t tokmap_i_windows_in(uint64_t n_tokens, uint32_t length)
{
    return n_tokens < 2 ? 0 : (n_tokens - 2) / length + 1;
}

/* Counts the windows of dataset d, which keep within documents. */
static tokmap_status count_within(tokmap_i_windows *w, uint32_t d, uint64_t *n_windows,
                                  tokmap_error *err)
{
    const tokmap_dataset *ds = w->datasets[d];
    tokmap_i_windows_of_documents *within = &w->within[d];
    const uint64_t n_groups = ds->documents.layout.n_groups;
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], end = 0;
    if (ds->header.n_tokens > 0 && ds->header.n_documents == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its document boundaries are not known; windows within documents need them",
                    ds->index_path);
    within->n_counts = div_up(n_groups, TOKMAP_I_GROUPS_PER_COUNT);
    within->counts = malloc(MAX(within->n_counts, 1) * sizeof *within->counts);
    if (!within->counts)
        return FAIL_MEMORY(err);
    *n_windows = 0;
    for (uint64_t g = 0; g < n_groups; g++) {
        if (g % TOKMAP_I_GROUPS_PER_COUNT == 0)
            within->counts[g / TOKMAP_I_GROUPS_PER_COUNT] = *n_windows;
        const uint32_t n = tokmap_i_documents_group(&ds->documents, NULL, g, ends);
        bool sound = n > 0;
        for (uint32_t j = 0; sound && j < n; j++) {
            sound = ends[j] >= end;
            *n_windows += sound ? tokmap_i_windows_in(ends[j] - end, w->length) : 0;
            end = ends[j];
        }
        if (!sound)
            return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: the document index is damaged",
                        ds->index_path);
    }
    return TOKMAP_OK;
}

/* The index of the last of the ascending counts that is not above x; the first one is 0. */
static uint64_t find_count(const uint64_t *counts, uint64_t n, uint64_t x)
{
    uint64_t at = 0;
    while (n > 1) {
        const uint64_t half = n / 2;
        at += counts[at + half] <= x ? half : 0;
        n -= half;
    }
    return at;
}

static tokmap_status span_within(const tokmap_i_windows *w, tokmap_i_index_cache *index,
                                 uint64_t window, tokmap_i_span *out)
{
    tokmap_i_pieces *from = tokmap_i_index_cache_of(index, w->datasets[out->dataset]);
    const tokmap_i_documents *docs = &w->datasets[out->dataset]->documents;
    const tokmap_i_windows_of_documents *within = &w->within[out->dataset];
    const uint64_t at = find_count(within->counts, within->n_counts, window);
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS], begin = 0, group = at * TOKMAP_I_GROUPS_PER_COUNT;
    uint64_t n_left = window - within->counts[at];
    if (group > 0) {
        const uint32_t n_before = tokmap_i_documents_group(docs, from, group - 1, ends);
        if (n_before == 0)
            return TOKMAP_ERR_CORRUPT;
        begin = ends[n_before - 1];
    }
    for (; group < docs->layout.n_groups; group++) {
        const uint32_t n = tokmap_i_documents_group(docs, from, group, ends);
        for (uint32_t j = 0; j < n; j++) {
            const uint64_t n_here =
                ends[j] < begin ? 0 : tokmap_i_windows_in(ends[j] - begin, w->length);
            if (n_left < n_here) {
                out->first_token = begin + n_left * w->length;
                out->n_tokens = (uint32_t)MIN(w->length + 1ull, ends[j] - out->first_token);
                return TOKMAP_OK;
            }
            n_left -= n_here;
            begin = ends[j];
        }
        if (n == 0)
            break;
    }
    return TOKMAP_ERR_CORRUPT; /* the index has changed since its windows were counted */
}

/* ---- Windows of any kind ---- */

tokmap_status tokmap_i_windows_open(tokmap_i_windows *w, tokmap_error *err)
{
    w->n_windows = 0;
    w->before = calloc(w->n_datasets, sizeof *w->before);
    w->within =
        w->kind == TOKMAP_WINDOWS_WITHIN_DOCUMENT ? calloc(w->n_datasets, sizeof *w->within) : NULL;
    if (!w->before || (w->kind == TOKMAP_WINDOWS_WITHIN_DOCUMENT && !w->within))
        return FAIL_MEMORY(err);
    for (uint32_t d = 0; d < w->n_datasets; d++) {
        const uint64_t n_tokens = w->datasets[d]->header.n_tokens;
        uint64_t n = n_tokens == 0 ? 0 : (n_tokens - 1) / w->length;
        const tokmap_status status = w->within ? count_within(w, d, &n, err) : TOKMAP_OK;
        if (status)
            return status;
        w->before[d] = w->n_windows;
        w->n_windows += n; /* no overflow: at most 2^48 each, and less than 2^16 datasets */
    }
    if (w->n_windows > (uint64_t)1 << 48)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its source has more than 2^48 windows",
                    w->datasets[0]->index_path);
    if (w->n_windows == 0 && w->within)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: no document has two tokens, which a row needs: an input and its label",
                    w->datasets[0]->token_path);
    if (w->n_windows == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: %" PRIu64 " tokens are too few for sequence_length %" PRIu32
                    " and one label more",
                    w->datasets[0]->token_path, w->datasets[0]->header.n_tokens, w->length);
    return TOKMAP_OK;
}

void tokmap_i_windows_close(tokmap_i_windows *w)
{
    for (uint32_t d = 0; w->within && d < w->n_datasets; d++)
        free(w->within[d].counts);
    free(w->within);
    free(w->before);
}

uint64_t tokmap_i_windows_offset(const tokmap_i_windows *w, uint64_t epoch, uint32_t dataset)
{
    if (!w->random_offset)
        return 0;
    return tokmap_i_scale(tokmap_i_order_key(&w->id, TOKMAP_I_KEY_OFFSET, epoch, dataset),
                          w->length);
}

tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_index_cache *index,
                                    uint64_t epoch, uint64_t window, tokmap_i_span *out)
{
    out->dataset = (uint32_t)find_count(w->before, w->n_datasets, window);
    window -= w->before[out->dataset];
    if (w->within)
        return span_within(w, index, window, out);
    const uint64_t offset = tokmap_i_windows_offset(w, epoch, out->dataset);
    out->first_token = offset + window * w->length; /* below n_tokens, as offset < length */
    out->n_tokens = w->length + 1;
    return TOKMAP_OK;
}

/* ---- Samples ---- */

bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_loader_source *sources, uint32_t n_sources)
{
    *s = (tokmap_i_sampler){.mixture = mixture,
                            .sources = sources,
                            .shuffles = malloc(n_sources * sizeof *s->shuffles)};
    for (uint32_t k = 0; s->shuffles && k < n_sources; k++)
        s->shuffles[k] = sources[k].shuffle;
    return s->shuffles != NULL;
}

void tokmap_i_sampler_close(tokmap_i_sampler *s)
{
    free(s->shuffles);
    tokmap_i_index_cache_close(s->index);
    *s = (tokmap_i_sampler){0};
}

tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err)
{
    tokmap_i_mixture_sample at;
    tokmap_i_span span;
    tokmap_i_mixture_at(s->mixture, sample, &at);
    const tokmap_i_loader_source *source = &s->sources[at.source];
    const uint64_t window = tokmap_i_shuffle_window(&s->shuffles[at.source], at.epoch, at.place);
    const tokmap_status status =
        tokmap_i_windows_span(&source->windows, s->index, at.epoch, window, &span);
    if (status)
        return tokmap_i_index_cache_fail(s->index, source->datasets[span.dataset], err);
    *out = (tokmap_sample){.source = at.source,
                           .dataset = span.dataset,
                           .epoch = at.epoch,
                           .window = window,
                           .first_token = span.first_token,
                           .n_tokens = span.n_tokens};
    return TOKMAP_OK;
}
