/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - looks through the documents of a dataset, with several threads. */
#pragma once

#include "scan/ngrams.h"
#include "tokmap.h"

typedef struct scan_job {
    const tokmap_dataset *ds;
    ngrams *const *indexes; /* of different n; what they find in a document is added up */
    size_t n_indexes;
    uint32_t n_threads;
    void *context; /* for the callbacks, which one thread at a time calls */
    /* Called for each document that has an n-gram, in any order. An error ends the scan. */
    tokmap_status (*on_match)(void *context, uint64_t document, const ngrams_found *found,
                              tokmap_error *err);
    void (*on_progress)(void *context, uint64_t n_tokens); /* since the last call */
} scan_job;

tokmap_status scan_run(const scan_job *job, tokmap_error *err);
