/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - finds the tokens of a sample by its number, with mixture, shuffle and windows. */
#pragma once

#include "order/mixture.h"
#include "order/shuffle.h"
#include "samples/windows.h"

/* One source of a loader; does not change after open. */
typedef struct tokmap_i_source {
    uint32_t first_dataset;   /* in the list of all sources */
    uint8_t (*order_ids)[16]; /* one for each dataset: docs/ORDER.md, section 1 */
    tokmap_i_windows windows;
    /* Without cached permutations; samplers copy it. With a list of windows it is NONE, and its
     * windows are places in the list. */
    tokmap_i_shuffle shuffle;
    tokmap_i_numbers window_list; /* its numbers may be changed by the caller */
    void *own_window_list;        /* their memory; NULL if that is the caller's */
    uint64_t window_list_hash;
    bool looks_up; /* its windows are rows of documents, or it has a list */
    uint32_t token_bytes;
    bool masked;
    tokmap_i_roles *own_roles; /* unless it is masked: the roles whose labels count; NULL: the usual
                                  ones */
} tokmap_i_source;

/* Returns the roles whose labels count, unless the source is masked. */
static inline const tokmap_i_roles *tokmap_i_source_roles(const tokmap_i_source *s)
{
    return s->own_roles ? s->own_roles : &tokmap_i_usual_roles;
}

/* Finds samples for one thread; several samplers may share the sources. */
typedef struct tokmap_i_sampler {
    const tokmap_i_mixture *mixture;
    const tokmap_i_source *sources;
    tokmap_i_shuffle *shuffles; /* one for each source, with the last permutations of this thread */
    /* the cache of this thread; NULL: documents are looked up in the map */
    tokmap_i_index_cache *index;
    /* BEST_FIT: the pieces of the last sample; else NULL. Behind a pointer, because another thread
     * may copy this struct. */
    tokmap_i_rows_reader *rows;
    tokmap_i_view_reader *views; /* the reader of the views of this thread; never NULL */
    tokmap_piece *pieces;        /* without BEST_FIT, those of the last sample */
    tokmap_i_extent *ranges;     /* of a sample of a list of documents; NULL if there is none */
} tokmap_i_sampler;

/* Opens a sampler. Returns false when out of memory. */
bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_source *sources, uint32_t n_sources);
void tokmap_i_sampler_close(tokmap_i_sampler *s);
/* Gives the sampler a cache for all its lookups. The sampler closes the cache. */
void tokmap_i_sampler_set_index(tokmap_i_sampler *s, tokmap_i_index_cache *index);
/* Finds a sample, which must be below the end, and its pieces, at least one, which are valid until
 * the next call. TOKMAP_ERR_CORRUPT: the document index is damaged; TOKMAP_ERR_IO: it cannot be
 * read; TOKMAP_ERR_MISMATCH: a list does not go with the data. */
tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err);
