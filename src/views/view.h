/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - the documents of a dataset that a view keeps, and their tokens one after another.
 *
 * A view is a file, or the same bytes in memory. The table of chunks is always in memory; chunks of
 * a file are read through a cache and checked when they are first needed. */
#pragma once

#include "dataset/index_cache.h"
#include "dataset/side_file.h"
#include "dataset/token_files.h"
#include "format/view_file.h"
#include "tokmap_loader.h"

struct tokmap_view {
    const tokmap_dataset *ds;
    tokmap_i_view_header header;
    tokmap_i_view_chunk *chunks;
    uint8_t *bytes;     /* of the whole file; NULL: they are in the file */
    tokmap_i_side file; /* fd -1: in memory */
    char *where;        /* the expression it was opened with, or NULL */
};

/* What one thread has cached of view files and of the index, and the ranges that it found last. */
typedef struct tokmap_i_view_reader {
    tokmap_i_index_cache *index; /* of the caller; NULL: documents are looked up in the map */
    tokmap_i_index_cache *files; /* NULL: all views are in memory */
    tokmap_i_extent *ranges;
    size_t n_ranges, capacity;
} tokmap_i_view_reader;

/* Opens a reader. n_bytes: size of all files, 0 if there are none. Returns false when out of
 * memory. */
bool tokmap_i_view_reader_open(tokmap_i_view_reader *reader, uint64_t n_bytes);
void tokmap_i_view_reader_close(tokmap_i_view_reader *reader);

/* Sets *bits to the documents of a group of 64 that are kept. */
tokmap_status tokmap_i_view_group(const tokmap_view *v, tokmap_i_view_reader *reader,
                                  uint64_t group, uint64_t *bits, tokmap_error *err);
/* Counts the tokens of kept documents before this document; document <= n_documents. */
tokmap_status tokmap_i_view_before(const tokmap_view *v, tokmap_i_view_reader *reader,
                                   uint64_t document, uint64_t *n_tokens, tokmap_error *err);
/* Sets the ranges of the reader to where n_tokens tokens of the view are in the dataset, from token
 * `first` of the view on. `within`: the tokens of the view that are used; the range wraps around in
 * it. */
tokmap_status tokmap_i_view_ranges(const tokmap_view *v, tokmap_i_view_reader *reader,
                                   uint64_t first, uint64_t n_tokens, tokmap_i_extent within,
                                   tokmap_error *err);

/* Reads the file at `path`. *exists: there is such a file. */
tokmap_status tokmap_i_view_open_file(tokmap_view *v, const char *path, bool *exists,
                                      tokmap_error *err);
