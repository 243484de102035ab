/* SPDX-License-Identifier: Apache-2.0 */
/* encode_output.h - puts the ids of all jobs into one array, in the order of the texts, while other
 * threads still encode. */
#ifndef TOKMAP_ENCODE_OUTPUT_H
#define TOKMAP_ENCODE_OUTPUT_H

#include "system/platform_thread.h"
#include "tokenizer/library/encode_plan.h"

typedef struct encode_output {
    encode_job *jobs;
    size_t n_jobs;
    uint32_t *ids;
    size_t n_ids, capacity;
    int64_t *offsets; /* those of a job count from its first id until it is placed */

    tokmap_i_mutex lock;
    tokmap_i_condition changed;
    size_t n_known; /* jobs whose first id is known: all before them are done */
    unsigned n_copying;
    bool stopped; /* the call fails: nothing more is placed */
    bool no_memory;
} encode_output;

/* Grows if there are more ids than expected. false: out of memory. */
bool encode_output_begin(encode_output *o, const encode_plan *plan, uint64_t n_texts,
                         size_t n_ids_expected);
/* Frees the arrays, unless the caller has set them to NULL. */
void encode_output_free(encode_output *o);

/* Job k has n_ids. */
void encode_output_done(encode_output *o, size_t k, size_t n_ids);
void encode_output_stop(encode_output *o);
/* Copies the ids of job k, which is done, to their place. With `wait`, waits until the place is
 * known. false: not yet, or stopped. */
bool encode_output_place(encode_output *o, size_t k, const uint32_t *ids, bool wait);

#endif /* TOKMAP_ENCODE_OUTPUT_H */
