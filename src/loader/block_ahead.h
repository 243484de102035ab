/* block_ahead.h - with shuffling by blocks: has the page cache read whole blocks, one after
 * another, before the first of their rows is asked for.
 *
 * The rows of a group come from all of its blocks at once, so that row by row they would be random
 * reads. As a source gives its windows, the blocks of its next group are asked for one by one, each
 * in one large read: a group is in memory when it begins, and another one is on its way. Belongs to
 * one thread. */
#ifndef TOKMAP_BLOCK_AHEAD_H
#define TOKMAP_BLOCK_AHEAD_H

#include "loader/sampler.h"

typedef struct tokmap_i_block_ahead {
    const tokmap_i_mixture *mixture;
    const tokmap_i_loader_source *sources;
    tokmap_i_shuffle *shuffles; /* of each source, with what was asked for last */
    uint64_t *counts;           /* of each source: windows it has given, */
    uint64_t *n_asked;          /* and blocks that were asked for, over all epochs */
    uint32_t n_sources;
    tokmap_i_index_cache *index; /* of this thread, not its own; NULL: the map */
} tokmap_i_block_ahead;

/* false: no memory. */
bool tokmap_i_block_ahead_open(tokmap_i_block_ahead *a, const tokmap_i_mixture *mixture,
                               const tokmap_i_loader_source *sources, uint32_t n_sources);
void tokmap_i_block_ahead_close(tokmap_i_block_ahead *a);
/* The next sample is this one; it may be any. */
void tokmap_i_block_ahead_reach(tokmap_i_block_ahead *a, uint64_t sample);

#endif /* TOKMAP_BLOCK_AHEAD_H */
