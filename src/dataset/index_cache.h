/* index_cache.h - looks documents up without the map of the index.
 *
 * Accessing the map of a file that was cut raises SIGBUS, which nobody can handle in a thread of
 * the library. A cache reads blocks of the index by pread instead, where a cut file is
 * TOKMAP_ERR_IO, and keeps them. An index of up to 16 MiB (four million documents) is read once; of
 * a larger one, a lookup at a random token reads 0.7 blocks with 10^7 documents, 2.5 with 10^9.
 * Belongs to one thread. */
#ifndef TOKMAP_INDEX_CACHE_H
#define TOKMAP_INDEX_CACHE_H

#include "dataset/dataset.h"

typedef struct tokmap_i_index_cache tokmap_i_index_cache;

/* For indexes of n_bytes together; NULL: no memory. */
tokmap_i_index_cache *tokmap_i_index_cache_open(uint64_t n_bytes);
void tokmap_i_index_cache_close(tokmap_i_index_cache *c);
/* Memory, used or not; c may be NULL. */
uint64_t tokmap_i_index_cache_bytes(const tokmap_i_index_cache *c);

/* For the next lookups in a dataset, until the next call. c NULL: NULL, for lookups in the map. */
tokmap_i_pieces *tokmap_i_index_cache_of(tokmap_i_index_cache *c, const tokmap_dataset *ds);
/* Why a lookup in this dataset failed: TOKMAP_ERR_IO when a block could not be read, else
 * TOKMAP_ERR_CORRUPT. */
tokmap_status tokmap_i_index_cache_fail(const tokmap_i_index_cache *c, const tokmap_dataset *ds,
                                        tokmap_error *err);

#endif /* TOKMAP_INDEX_CACHE_H */
