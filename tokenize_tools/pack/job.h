/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a batch of documents on its way through tokmap pack: their text, then their ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"
#include "pack/marks.h"
#include "pack/reports.h"
#include "tokenizer/encode/tokenizer.h"

/* What comes before an end in the batch. */
typedef struct pack_end {
    size_t n_ids;
    uint64_t specials_seen;
} pack_end;

typedef struct pack_job {
    corpus_batch batch;
    id_buffer ids;  /* including those that begin and end documents */
    pack_end *ends; /* for each of batch.ends */
    size_t ends_capacity;
    /* The documents that cannot be encoded, such as those with a special token with
     * SPECIALS_ERROR, in order: indexes in batch.ends. They have no ids. */
    size_t *specials;
    size_t n_specials;
    uint64_t specials_seen; /* in the text of this batch */
    pack_reports reports;
} pack_job;

/* Encodes the batch. False: out of memory. */
bool pack_job_encode(pack_job *job, pack_marks *marks, encoder *e);
void pack_job_free(pack_job *job);
