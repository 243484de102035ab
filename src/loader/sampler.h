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

/* What of a dataset is served: docs/ORDER.md, section 3. */
typedef struct tokmap_i_range {
    uint64_t first_document, end_document;
    tokmap_i_extent tokens;
    bool is_part; /* there are other documents */
} tokmap_i_range;

static inline bool tokmap_i_in_range(const tokmap_i_range *range, uint64_t document)
{
    return document >= range->first_document && document < range->end_document;
}

enum {
    TOKMAP_I_GROUPS_PER_COUNT = 4 /* of 64 documents: 8 bytes for each 256, and short searches */
};

typedef struct tokmap_i_windows {
    tokmap_windows kind;
    uint32_t length; /* inputs in a window */
    bool random_offset;
    tokmap_i_rows_kind rows_kind; /* with BEST_FIT, else 0 */
    tokmap_i_order_id id;         /* of the source */
    const tokmap_dataset **datasets;
    tokmap_i_range *ranges; /* of each dataset */
    uint32_t n_datasets;

    uint64_t *before;             /* windows before each dataset */
    uint64_t n_windows, n_labels; /* of an epoch */
    uint64_t **within;            /* of each dataset: windows before every 256th document */
    tokmap_i_rows *rows;          /* BEST_FIT: likewise */
    uint64_t *whole_before, *short_before; /* likewise: whole chunks, and rows of short ones */
    uint64_t n_whole;                      /* chunks of chunk_rows rows */
    uint32_t chunk_rows;
} tokmap_i_windows;

/* The caller has set the fields of w; this fills in the last part. rows_files: NULL, or of each
 * dataset NULL or a path. *n_packed: documents that were packed in memory so far. No windows may
 * be left for a source: TOKMAP_ERR_MISMATCH, as when document boundaries are not known. */
tokmap_status tokmap_i_windows_open(tokmap_i_windows *w, const char *const *rows_files,
                                    uint64_t *n_packed, tokmap_error *err);
void tokmap_i_windows_close(tokmap_i_windows *w);
/* Sets dataset, tokens and their number of a sample, whose tokens may wrap around in the range.
 * window < n_windows. index: of the calling thread; NULL: documents are looked up in the map. After
 * an error, tokmap_i_index_cache_fail fills in the details, with the dataset of *out. */
tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_index_cache *index,
                                    uint64_t epoch, uint64_t window, tokmap_sample *out);

/* BEST_FIT: blocks count rows of whole chunks first, then those of the others. From such a number
 * to a window, and back. */
uint64_t tokmap_i_windows_of_block(const tokmap_i_windows *w, uint64_t x);
uint64_t tokmap_i_windows_in_block(const tokmap_i_windows *w, uint64_t window);
/* The dataset of a window. */
uint32_t tokmap_i_windows_dataset(const tokmap_i_windows *w, uint64_t window);

/* Of a document, within documents. */
uint64_t tokmap_i_windows_in(uint64_t n_tokens, uint32_t length);
/* The first token of the first window of a dataset. */
uint64_t tokmap_i_windows_offset(const tokmap_i_windows *w, uint64_t epoch, uint32_t dataset);

/* ---- Samples ---- */

/* Does not change after open. */
typedef struct tokmap_i_loader_source {
    uint32_t first_dataset;   /* in the list of all sources */
    uint8_t (*order_ids)[16]; /* of each dataset: docs/ORDER.md, section 1 */
    tokmap_i_windows windows;
    tokmap_i_shuffle shuffle; /* without cached permutations; samplers copy it */
    uint32_t token_bytes;
    bool masked;
} tokmap_i_loader_source;

/* Belongs to one thread; several may share the sources. */
typedef struct tokmap_i_sampler {
    const tokmap_i_mixture *mixture;
    const tokmap_i_loader_source *sources;
    tokmap_i_shuffle *shuffles;  /* of each source, with the last permutations of this thread */
    tokmap_i_index_cache *index; /* of this thread; NULL: documents are looked up in the map */
    /* BEST_FIT: the pieces of the last sample; else NULL. Not in this struct, which another thread
     * may copy. */
    tokmap_i_rows_reader *rows;
} tokmap_i_sampler;

/* false: no memory. */
bool tokmap_i_sampler_open(tokmap_i_sampler *s, const tokmap_i_mixture *mixture,
                           const tokmap_i_loader_source *sources, uint32_t n_sources);
void tokmap_i_sampler_close(tokmap_i_sampler *s);
/* sample must be below the end. TOKMAP_ERR_CORRUPT: the document index is damaged; TOKMAP_ERR_IO:
 * it cannot be read. */
tokmap_status tokmap_i_sampler_locate(tokmap_i_sampler *s, uint64_t sample, tokmap_sample *out,
                                      tokmap_error *err);
