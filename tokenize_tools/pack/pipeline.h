/* pipeline.h - documents in, ids out, in the order of the inputs, on all cores.
 *
 *     corpus --> reader --> [ job | job | job | job ] --> pack_pipeline_next --> the caller
 *                              ^ encoders work here
 *
 * A job is a batch of text and then its ids. The jobs stand in a ring and are used again and
 * again. One thread reads text into the next free job, N threads turn text into ids, and the
 * caller takes the jobs in the order in which they were read: what comes out depends neither on
 * the number of threads nor on time. An error has its place in the row: everything that stood
 * before it comes out first. The reader waits while the jobs hold more than the memory they may,
 * so that only one can be larger than planned. */
#ifndef TOKMAP_PACK_PIPELINE_H
#define TOKMAP_PACK_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"
#include "pack/error.h"
#include "tokenizer/tokenizer.h"

/* What stands before an end of the batch. */
typedef struct pack_end {
    size_t n_ids;
    uint64_t specials_seen;
} pack_end;

typedef struct pack_job {
    corpus_batch batch;
    id_buffer ids;  /* with the ids that begin and end documents */
    pack_end *ends; /* for each of batch.ends */
    size_t ends_capacity;
    /* Documents with a special token where the policy is SPECIALS_ERROR, in order: by the places of
     * their ends in batch.ends, n_ends where it goes on. They have no ids. */
    size_t *specials;
    size_t n_specials, specials_capacity;
    uint64_t specials_seen; /* written in the texts of this batch */
    void *record;           /* the hook's own */
} pack_job;

typedef struct pack_pipeline_options {
    const tokenizer *tokenizer;
    encoder_options encoder;
    unsigned n_encoders;
    uint32_t bos_id, eod_id; /* put before and behind each document; MODEL_NO_ID: nothing */
    size_t batch_bytes;      /* as the corpus has it */
    size_t job_memory;       /* bytes that all jobs together may hold */
    /* Called by the reader after each read, with the context of the corpus: to keep what its
     * callbacks were told beside the job. May be NULL. job->record is freed by free(). */
    void (*after_read)(void *context, pack_job *job);
    void *context;
} pack_pipeline_options;

typedef enum pack_next {
    PACK_JOB,
    PACK_NOTHING_YET,
    PACK_END, /* of all inputs */
    PACK_FAILED
} pack_next;

typedef struct pack_pipeline pack_pipeline;

/* Starts the threads. Takes the corpus over and closes it, also when it fails. NULL: *err. */
pack_pipeline *pack_pipeline_start(corpus *c, const pack_pipeline_options *options,
                                   pack_error *err);
/* The next job, which is the caller's until the next call; waits for at most wait_ms for it. */
pack_next pack_pipeline_next(pack_pipeline *p, unsigned wait_ms, pack_job **job, pack_error *err);
/* Bytes of all inputs that are read, as stored: for a progress line. */
uint64_t pack_pipeline_stored_bytes(pack_pipeline *p);
/* Stops the threads, whatever they do. */
void pack_pipeline_close(pack_pipeline *p);

#endif /* TOKMAP_PACK_PIPELINE_H */
