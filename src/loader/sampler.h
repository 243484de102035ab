/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - finds the tokens of a sample by its number, with mixture, shuffle and windows. A
 * sampler belongs to one thread; several may share the sources. */
#ifndef TOKMAP_SAMPLER_H
#define TOKMAP_SAMPLER_H

#include "order/mixture.h"
#include "order/shuffle.h"
#include "tokmap_loader.h"
#include "loader/windows.h"

/* Does not change after open. */
typedef struct tokmap_i_loader_source {
    const tokmap_dataset **datasets; /* a copy of the caller's list */
    tokmap_i_windows windows;
    tokmap_i_shuffle shuffle; /* without cached permutations; samplers copy it */
    uint32_t token_bytes;
    bool masked;
} tokmap_i_loader_source;

typedef struct tokmap_i_sampler {
    const tokmap_i_mixture *mixture;
    const tokmap_i_loader_source *sources;
    tokmap_i_shuffle *shuffles;  /* of each source, with the last permutations of this thread */
    tokmap_i_index_cache *index; /* of this thread; NULL: documents are looked up in the map */
} tokmap_i_sampler;

/* false: no memory. */
bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_loader_source *sources, uint32_t n_sources);
void tokmap_i_sampler_close(tokmap_i_sampler *s);
/* sample must be below the end. TOKMAP_ERR_CORRUPT: the document index is damaged; TOKMAP_ERR_IO:
 * it cannot be read. */
tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err);

#endif /* TOKMAP_SAMPLER_H */
