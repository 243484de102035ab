/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a batch of documents on its way through tokmap pack: their text, then their tokens. */
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
    size_t n_tokens;
    uint64_t specials_seen;
    uint32_t output; /* where the document goes */
} pack_end;

/* The place of a job in the file of spill.h, and the hash of what lies there. */
typedef struct pack_spilled {
    bool is;
    uint32_t slot;
    uint64_t hash;
} pack_spilled;

typedef struct pack_job {
    /* The pipeline sets these three. */
    struct pack_job *next;
    size_t memory; /* as it is counted */
    bool is_done;  /* the tokens are complete */
    pack_spilled spilled;
    corpus_batch batch;
    uint64_t n_ids;  /* as the encoder counts them, for the balance */
    uint8_t *tokens; /* including those that begin and end documents */
    size_t n_tokens, tokens_capacity;
    uint32_t token_bytes; /* 4 unless is_stored */
    bool is_stored;       /* tokens are as the token file has them; else they are ids with their
                             marks, or one is too large */
    pack_end *ends;       /* for each of batch.ends */
    size_t ends_capacity;
    uint64_t *lengths; /* of the documents, for each of batch.ends */
    size_t lengths_capacity;
    /* The documents that cannot be encoded, such as one with a special token and SPECIALS_ERROR, in
     * order: indexes in batch.ends. They have no tokens. */
    size_t *specials;
    size_t n_specials;
    uint64_t specials_seen; /* in the text of this batch */
    pack_reports reports;
} pack_job;

/* How many bytes of its text decide to which split a document belongs. */
#define PACK_SPLIT_TEXT_BYTES ((size_t)64 * 1024)

/* Encodes the batch. False: out of memory. */
bool pack_job_encode(pack_job *job, pack_marks *marks, encoder *e);
/* What the job keeps in memory, without buffers for the next one. */
size_t pack_job_memory(const pack_job *job);
/* Frees what the next use of the job does not need. */
void pack_job_empty(pack_job *job);
void pack_job_free(pack_job *job);
