/* SPDX-License-Identifier: Apache-2.0 */
/* duplicates.h - finds documents with the same tokens. */
#pragma once

#include "tokmap.h"

typedef struct duplicates_job {
    const tokmap_dataset *ds;
    uint64_t memory; /* bytes of the table of hashes, at most; less memory takes more passes */
    void *context;   /* for the callbacks */
    /* Called for each document that has the tokens of an earlier one, in each pass in the order of
     * their numbers. `first` is the first document that has them. An error ends the search. */
    tokmap_status (*on_duplicate)(void *context, uint64_t document, uint64_t first,
                                  tokmap_error *err);
    void (*on_progress)(void *context, uint64_t n_tokens); /* since the last call */
} duplicates_job;

/* Returns in how many passes duplicates_run reads the tokens of n documents. */
uint64_t duplicates_n_passes(const duplicates_job *job, uint64_t n_documents);
tokmap_status duplicates_run(const duplicates_job *job, tokmap_error *err);
