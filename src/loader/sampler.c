/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/sampler.h"

#include <stdlib.h>

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
