/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a batch of documents on its way through tokmap pack: their text, then their ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"
#include "pack/marks.h"
#include "tokenizer/encode/tokenizer.h"

/* What comes before an end in the batch. */
typedef struct pack_end {
    size_t n_ids;
    uint64_t specials_seen;
} pack_end;

/* What the corpus reported: a message, or a document that is left out. */
typedef struct pack_item {
    size_t begin, n_bytes; /* in the text of the reports: the message, "PLACE: REASON" */
    bool is_bad;           /* with the members below */
    size_t n_place;        /* bytes before ": REASON" */
    uint64_t input;
    corpus_record at;
} pack_item;

/* The counts at the end of a document or an input. If a limit ends the run there, nothing that was
 * read after it counts. */
typedef struct pack_moment {
    corpus_counts counts;
    size_t n_items;
} pack_moment;

/* What the corpus reported while it read. */
typedef struct pack_reports {
    char *text;
    size_t n_bytes, capacity;
    pack_item *items;
    size_t n_items, items_capacity;
    pack_moment *moments; /* one for each end in the batch, if they are needed */
    size_t n_moments, moments_capacity;
    bool no_memory;
} pack_reports;

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
