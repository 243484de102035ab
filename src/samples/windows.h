/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - the windows of a source, and the tokens of each: docs/ORDER.md, section 3. Constant
 * time for windows of equal length and for rows of documents; within documents, a search and a scan
 * of 256 documents. */
#pragma once

#include "dataset/index_cache.h"
#include "order/order_key.h"
#include "rows/rows.h"
#include "samples/document_list.h"
#include "tokmap_loader.h"
#include "views/view.h"

/* The part of a dataset that is used: docs/ORDER.md, section 3. */
typedef struct tokmap_i_range {
    uint64_t first_document, end_document;
    tokmap_i_extent tokens;  /* of the dataset, including those of documents that are not used */
    bool is_part;            /* some documents are not in the range */
    const tokmap_view *view; /* of the documents; NULL: all that are in the range */
    /* the token numbers that windows count: numbers within the view, or `tokens` without one */
    tokmap_i_extent window_tokens;
    tokmap_i_document_list *list; /* NULL: the documents are in their own order */
} tokmap_i_range;

/* Sets *bits to the documents of a group of 64 that are used. reader: of the calling thread. */
static inline tokmap_status tokmap_i_range_group(const tokmap_i_range *range,
                                                 tokmap_i_view_reader *reader, uint64_t group,
                                                 uint64_t *bits, tokmap_error *err)
{
    const uint64_t first = group * TOKMAP_I_GROUP_DOCUMENTS, begin = range->first_document,
                   end = range->end_document;
    uint64_t in_range = begin < first + 64 && end > first ? UINT64_MAX : 0;
    if (in_range && begin > first)
        in_range &= UINT64_MAX << (begin - first);
    if (in_range && end < first + 64)
        in_range &= UINT64_MAX >> (first + 64 - end);
    *bits = in_range;
    if (!in_range || !range->view)
        return TOKMAP_OK;
    const tokmap_status status = tokmap_i_view_group(range->view, reader, group, bits, err);
    *bits &= in_range;
    return status;
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
    tokmap_dataset **datasets;
    tokmap_i_range *ranges;    /* for each dataset */
    bool has_views, has_lists; /* a dataset has a view, a list */
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
                                    tokmap_i_view_reader *views, uint64_t *n_packed,
                                    tokmap_error *err);
void tokmap_i_windows_close(tokmap_i_windows *w);
/* Sets dataset and tokens of a sample, and their number, in a dataset without a list. The tokens
 * may wrap around in the range, and with a view and CONCAT they are counted as the view counts
 * them. window < n_windows. views->index: the cache of the calling thread; NULL: documents are
 * looked up in the map. */
tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_view_reader *views,
                                    uint64_t epoch, uint64_t window, tokmap_sample *out,
                                    tokmap_error *err);

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
/* Returns the size of the view files of a source. */
uint64_t tokmap_i_windows_view_bytes(const tokmap_i_windows *w);
