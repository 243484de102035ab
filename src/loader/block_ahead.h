/* SPDX-License-Identifier: Apache-2.0 */
/* block_ahead.h - with block shuffle: reads whole blocks into the page cache, one after another,
 * before their first row is needed.
 *
 * The rows of a group come from all of its blocks, so reading them row by row would be random
 * reads. While the windows of a group are used, the blocks of the next group are requested one by
 * one, each in one large read. So a group is in memory when it begins. Belongs to one thread. */
#pragma once

#include "samples/sampler.h"

/* What changes is behind pointers, because another thread may copy this struct. */
typedef struct tokmap_i_block_ahead {
    tokmap_i_sampler *sampler; /* the sampler of this thread */
    uint64_t *counts;          /* for each source: windows used so far */
    uint64_t *n_asked;         /* for each source: blocks requested, over all epochs */
    tokmap_i_extent *mapped;   /* for each source: blocks that were also faulted into the map */
    bool maps;                 /* set by the caller: fault blocks into the map */
    uint32_t n_sources;
} tokmap_i_block_ahead;

/* Allocates the memory. Returns false when out of memory. */
bool tokmap_i_block_ahead_open(tokmap_i_block_ahead *a, tokmap_i_sampler *sampler,
                               uint32_t n_sources);
void tokmap_i_block_ahead_close(tokmap_i_block_ahead *a);
/* Requests blocks for the next sample, which may be any, and faults blocks into the map: one call
 * for a block costs less than one for each row, or for each piece of a row. */
void tokmap_i_block_ahead_advance(tokmap_i_block_ahead *a, uint64_t sample);
/* Whether all blocks of the group of a sample, whose row is located, are in the map. Not for a row
 * that wraps around in a view: its last pieces are in another block. */
bool tokmap_i_block_ahead_is_mapped(const tokmap_i_block_ahead *a, uint64_t sample,
                                    const tokmap_sample *row);
