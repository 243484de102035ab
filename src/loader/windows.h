/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - the windows of a source, and the tokens of each: docs/ORDER.md, section 3. Constant
 * time for windows of equal length; within documents, a search and a scan of 256 documents. */
#ifndef TOKMAP_WINDOWS_H
#define TOKMAP_WINDOWS_H

#include "dataset/dataset.h"
#include "dataset/index_cache.h"
#include "order/order_key.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_span {
    uint32_t dataset;     /* index in its source */
    uint32_t n_tokens;    /* inputs, and one more for the last label */
    uint64_t first_token; /* in the dataset; the span may wrap around to its token 0 */
} tokmap_i_span;

typedef struct tokmap_i_windows_of_documents {
    uint64_t *counts; /* windows before every 256th document */
    uint64_t n_counts;
} tokmap_i_windows_of_documents;

typedef struct tokmap_i_windows {
    tokmap_windows kind;
    uint32_t length; /* inputs in a window */
    bool random_offset;
    tokmap_i_order_id id; /* of the source */
    const tokmap_dataset *const *datasets;
    uint32_t n_datasets;

    uint64_t *ends; /* windows up to the end of each dataset */
    uint64_t n_windows;
    tokmap_i_windows_of_documents *within; /* of each dataset; or NULL */
} tokmap_i_windows;

/* The caller has set the fields of w; this fills in the last part. TOKMAP_ERR_MISMATCH: there are
 * no windows, or document boundaries are not known. */
tokmap_status tokmap_i_windows_open(tokmap_i_windows *w, tokmap_error *err);
void tokmap_i_windows_close(tokmap_i_windows *w);
/* window < n_windows. index: of the calling thread; NULL: documents are looked up in the map. After
 * an error, tokmap_i_index_cache_fail fills in the details, with the dataset of *out. */
tokmap_status tokmap_i_windows_span(const tokmap_i_windows *w, tokmap_i_index_cache *index,
                                    uint64_t epoch, uint64_t window, tokmap_i_span *out);

#endif /* TOKMAP_WINDOWS_H */
