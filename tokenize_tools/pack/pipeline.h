/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - turns documents into ids, in the order of the inputs, on all cores.
 *
 *     corpus --> reader --> [ job | job | job | job ] --> pack_pipeline_next --> the caller
 *                              ^ encoders work here
 *
 * A job is a batch of text, and then its ids. The jobs are in a ring and are reused. One thread
 * reads text into the next free job, N threads turn text into ids, and the caller gets the jobs in
 * the order in which they were read, so the output depends neither on the number of threads nor on
 * timing. An error has its place in this order: everything read before it is handed out first. The
 * reader waits while the jobs hold more memory than they may, so at most one job is larger than
 * planned. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus.h"
#include "pack/error.h"
#include "pack/job.h"

typedef struct pack_pipeline_options {
    const pack_parts *parts;
    size_t batch_bytes;     /* the same as in corpus_options */
    pack_reports **reports; /* set before each read: what the callbacks of the corpus fill */
} pack_pipeline_options;

typedef enum pack_next {
    PACK_JOB,
    PACK_NOTHING_YET,
    PACK_END, /* the end of all inputs */
    PACK_FAILED
} pack_next;

typedef struct pack_pipeline pack_pipeline;

/* Starts the threads. Takes ownership of the corpus, also on failure. NULL: *err. */
pack_pipeline *pack_pipeline_start(corpus *c, const pack_pipeline_options *options,
                                   pack_error *err);
/* Waits at most wait_ms for the next job, which the caller has until the next call. */
pack_next pack_pipeline_next(pack_pipeline *p, unsigned wait_ms, pack_job **job, pack_error *err);
/* The --memory with which all threads would have had long documents to encode; 0: they had. */
uint64_t pack_pipeline_needed(const pack_pipeline *p);
/* Stops the threads at once. */
void pack_pipeline_close(pack_pipeline *p);
