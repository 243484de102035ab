/* SPDX-License-Identifier: Apache-2.0 */
/* index_cache.h - finds documents and spans without the map of the index, and rows in their file.
 *
 * Accessing the map of a file that was shortened raises SIGBUS, which the caller cannot handle in a
 * thread of the library. The cache instead reads blocks of the index with pread, which makes such a
 * file a TOKMAP_ERR_IO, and keeps them. An index of up to 16 MiB (four million documents) is read
 * once. For a larger one, a lookup at a random token reads 0.7 blocks with 10^7 documents, 2.5 with
 * 10^9. A cache belongs to one thread. */
#pragma once

#include "dataset/dataset.h"

typedef struct tokmap_i_index_cache tokmap_i_index_cache;

/* A file in which the cache looks things up, valid as long as the cache. */
typedef struct tokmap_i_cached_file {
    const void *owner; /* different for each file */
    int fd;
    const char *path;
    uint64_t n_bytes;
    uint64_t offset; /* lookups count from there */
    uint64_t key;    /* any number, but always the same for a file */
} tokmap_i_cached_file;

/* Opens a cache for files of n_bytes together. NULL: out of memory. */
tokmap_i_index_cache *tokmap_i_index_cache_open(uint64_t n_bytes);
void tokmap_i_index_cache_close(tokmap_i_index_cache *c);
/* Returns the memory of the cache, used or not; c may be NULL. */
uint64_t tokmap_i_index_cache_bytes(const tokmap_i_index_cache *c);

/* Returns the pieces for lookups in the documents section of a dataset, valid until the next call;
 * NULL if c is NULL: then lookups use the map. */
tokmap_i_pieces *tokmap_i_index_cache_of(tokmap_i_index_cache *c, const tokmap_dataset *ds);
/* The same as tokmap_i_index_cache_of, with the spans section, which must exist. */
tokmap_i_pieces *tokmap_i_index_cache_spans(tokmap_i_index_cache *c, const tokmap_dataset *ds);
/* The same as tokmap_i_index_cache_of, with any file. After a piece that is NULL,
 * tokmap_i_index_cache_check says why, until the next file is set. */
tokmap_i_pieces *tokmap_i_index_cache_set(tokmap_i_index_cache *c,
                                          const tokmap_i_cached_file *file);
tokmap_status tokmap_i_index_cache_check(const tokmap_i_index_cache *c, tokmap_error *err);
/* Returns why a lookup in this dataset failed: TOKMAP_ERR_IO if a block could not be read, else
 * TOKMAP_ERR_CORRUPT. */
tokmap_status tokmap_i_index_cache_fail(const tokmap_i_index_cache *c, const tokmap_dataset *ds,
                                        tokmap_error *err);
