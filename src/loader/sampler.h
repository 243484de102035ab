/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - finds the tokens of a sample by its number, with mixture, shuffle and windows:
 * docs/ORDER.md, section 3. Constant time for windows of equal length and for rows of documents;
 * within documents, a search and a scan of 256 documents. */
#pragma once

#include "dataset/index_cache.h"
#include "dataset/token_files.h"
#include "order/mixture.h"
#include "order/shuffle.h"
#include "rows/rows.h"
#include "tokmap_loader.h"

/* ---- The windows of a source, and the tokens of each ---- */

/* The part of a dataset that is used: docs/ORDER.md, section 3. */
typedef struct tokmap_i_range {
    uint64_t first_document, end_document;
    tokmap_i_extent tokens;
    bool is_part; /* some documents are not used */
} tokmap_i_range;

static inline bool tokmap_i_in_range(const tokmap_i_range *range, uint64_t document)
{
    return document >= range->first_document && document < range->end_document;
}

enum {
    TOKMAP_I_GROUPS_PER_COUNT = 4 /* 256 documents: 8 bytes for each count, and short searches */
};

typedef struct tokmap_i_windows {
    tokmap_windows kind;
    uint32_t length; /* inputs in a window */
    bool random_offset;
    tokmap_i_rows_kind rows_kind; /* with BEST_FIT, else 0 */
    tokmap_i_order_id id;         /* of the source */
    const tokmap_dataset **datasets;
    tokmap_i_range *ranges; /* for each dataset */
    uint32_t n_datasets;

    uint64_t *before;             /* windows before each dataset */
    uint64_t n_windows, n_labels; /* of an epoch */
    uint64_t **within;            /* for each dataset: windows before every 256th document */
    tokmap_i_rows *rows;          /* the same with BEST_FIT: its rows */
    /* BEST_FIT, for each dataset: whole chunks before it, and rows of the other chunks */
    uint64_t *whole_before, *short_before;
    uint64_t n_whole; /* chunks of chunk_rows rows */
    uint32_t chunk_rows;
} tokmap_i_windows;

/* Opens the windows of a source. The caller has set the first fields of w; this fills in the
 * others. rows_files: NULL, or for each dataset a path or NULL. *n_packed: documents that were
 * packed in memory so far. TOKMAP_ERR_MISMATCH: no windows are left, or document boundaries are not
 * known. */
tokmap_status tokmap_i_windows_open(tokmap_i_windows *w, const char *const *rows_files,
                                    uint64_t *n_packed, tokmap_error *err);
void tokmap_i_windows_close(tokmap_i_windows *w);
/* Sets dataset and tokens of a sample, and their number. The tokens may wrap around in the range.
 * window < n_windows. index: the cache of the calling thread; NULL: documents are looked up in the
 * map. After an error, tokmap_i_index_cache_fail fills in the details, with the dataset of *out. */
tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_index_cache *index,
                                    uint64_t epoch, uint64_t window, tokmap_sample *out);

/* Convert the number of a row as blocks count it to a window, and back. With BEST_FIT, blocks count
 * the rows of whole chunks first, then the other rows. */
uint64_t tokmap_i_windows_of_block(const tokmap_i_windows *w, uint64_t x);
uint64_t tokmap_i_windows_in_block(const tokmap_i_windows *w, uint64_t window);
/* Returns the dataset of a window. */
uint32_t tokmap_i_windows_dataset(const tokmap_i_windows *w, uint64_t window);

/* Returns the number of windows of a document of n_tokens, when windows stay within documents. */
uint64_t tokmap_i_windows_in(uint64_t n_tokens, uint32_t length);
/* Returns the first token of the first window of a dataset. */
uint64_t tokmap_i_windows_offset(const tokmap_i_windows *w, uint64_t epoch, uint32_t dataset);

/* ---- Samples ---- */

/* One source of a loader; does not change after open. */
typedef struct tokmap_i_loader_source {
    uint32_t first_dataset;   /* in the list of all sources */
    uint8_t (*order_ids)[16]; /* one for each dataset: docs/ORDER.md, section 1 */
    tokmap_i_windows windows;
    tokmap_i_shuffle shuffle; /* without cached permutations; samplers copy it */
    uint32_t token_bytes;
    bool masked;
} tokmap_i_loader_source;

/* Finds samples for one thread; several samplers may share the sources. */
typedef struct tokmap_i_sampler {
    const tokmap_i_mixture *mixture;
    const tokmap_i_loader_source *sources;
    tokmap_i_shuffle *shuffles; /* one for each source, with the last permutations of this thread */
    /* the cache of this thread; NULL: documents are looked up in the map */
    tokmap_i_index_cache *index;
    /* BEST_FIT: the pieces of the last sample; else NULL. Behind a pointer, because another thread
     * may copy this struct. */
    tokmap_i_rows_reader *rows;
} tokmap_i_sampler;

/* Opens a sampler. Returns false when out of memory. */
bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_loader_source *sources, uint32_t n_sources);
void tokmap_i_sampler_close(tokmap_i_sampler *s);
/* Finds a sample, which must be below the end. TOKMAP_ERR_CORRUPT: the document index is damaged;
 * TOKMAP_ERR_IO: it cannot be read. */
tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err);
