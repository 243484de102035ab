/* SPDX-License-Identifier: Apache-2.0 */
/* look_back.h - finds the samples that have given tokens, and counts what a run was trained on. */
#pragma once

#include "samples/samples.h"

/* Do the work of tokmap_loader_find, which sets s->n_found, and of tokmap_loader_count_labels. The
 * caller has taken their arguments. sampler: of the calling thread. */
tokmap_status tokmap_i_look_back_find(const tokmap_i_samples *samples, tokmap_i_sampler *sampler,
                                      tokmap_loader_search *s, tokmap_error *err);
tokmap_status tokmap_i_look_back_count(const tokmap_i_samples *samples, tokmap_i_sampler *sampler,
                                       const tokmap_loader_labels *o, tokmap_error *err);
