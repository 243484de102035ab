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

/* A file of lookups, for as long as its cache. */
typedef struct tokmap_i_cached_file {
    const void *owner; /* no two files have the same */
    int fd;
    const char *path;
    uint64_t n_bytes;
    uint64_t offset; /* lookups count from there */
    uint64_t key;    /* any number, but always the same one */
} tokmap_i_cached_file;

/* n_bytes: of all files together. NULL: no memory. */
tokmap_i_index_cache *tokmap_i_index_cache_open(uint64_t n_bytes);
void tokmap_i_index_cache_close(tokmap_i_index_cache *c);
/* The memory of the cache, used or not; c may be NULL. */
uint64_t tokmap_i_index_cache_bytes(const tokmap_i_index_cache *c);

/* The pieces for lookups in a dataset, valid until the next call. With c NULL returns NULL: lookups
 * then use the map. */
tokmap_i_pieces *tokmap_i_index_cache_of(tokmap_i_index_cache *c, const tokmap_dataset *ds);
/* The same for its spans, which it has. */
tokmap_i_pieces *tokmap_i_index_cache_spans(tokmap_i_index_cache *c, const tokmap_dataset *ds);
/* The same for any file. After a piece that is NULL, tokmap_i_index_cache_check says why, until the
 * next file. */
tokmap_i_pieces *tokmap_i_index_cache_set(tokmap_i_index_cache *c,
                                          const tokmap_i_cached_file *file);
tokmap_status tokmap_i_index_cache_check(const tokmap_i_index_cache *c, tokmap_error *err);
/* Why a lookup in this dataset failed: TOKMAP_ERR_IO if a block could not be read, else
 * TOKMAP_ERR_CORRUPT. */
tokmap_status tokmap_i_index_cache_fail(const tokmap_i_index_cache *c, const tokmap_dataset *ds,
                                        tokmap_error *err);
