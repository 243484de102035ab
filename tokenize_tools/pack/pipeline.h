/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - turns documents into ids, in the order of the inputs, on all cores.
 *
 *     segments of inputs --> readers --> [ job | job | job ] --> pack_pipeline_next --> the caller
 *                                          ^ encoders work here
 *
 * A segment is a few small inputs, a large one, or a part of a file of Parquet (segments.h), whose
 * places and checksums are then joined here, so that a checkpoint has those of the file. A job is a
 * batch of text, and then its tokens. Each reader is a thread that reads one segment
 * after another (segments.h) into jobs; N threads turn text into tokens, that of the oldest segment
 * first; and the caller gets the jobs in the order of the inputs. So the output depends neither on
 * the number of threads nor on timing. An error has its place in this order: everything read before
 * it is handed out first.
 *
 * There is one reader, until encoders wait for text while processors are idle: then there are more,
 * up to 64. The segment whose jobs the caller gets has the turn. Its reader waits for room only
 * while it has a job in memory, so at most one job is larger than planned. The readers of later
 * segments wait while the jobs hold 7/8 of the memory that they may. Where they hold half of it,
 * jobs of later segments that are encoded go to a file (spill.h). Memory for inputs, such as the
 * windows of decompressors, is waited for only by a segment that has one before it that is still
 * read. So there is always something to do for the segment with the turn, and no thread waits for
 * one that waits for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request/error.h"
#include "pack/job.h"
#include "pack/use.h"

typedef struct pack_pipeline_options {
    const pack_parts *parts;
    const corpus_options *corpus; /* for all inputs; the pipeline sets context and reserve */
    const corpus_place *from;     /* where to begin; NULL: at the first input */
} pack_pipeline_options;

typedef enum pack_next {
    PACK_JOB,
    PACK_NOTHING_YET,
    PACK_END, /* the end of all inputs */
    PACK_FAILED
} pack_next;

typedef struct pack_pipeline pack_pipeline;

/* Starts the threads. What the options point to must stay valid. NULL: *err. */
pack_pipeline *pack_pipeline_start(const pack_pipeline_options *options, pack_error *err);
/* Waits at most wait_ms for the next job, which the caller has until the next call. */
pack_next pack_pipeline_next(pack_pipeline *p, unsigned wait_ms, pack_job **job, pack_error *err);
/* Stops the threads at once. Sets in *use what only the pipeline knows, unless that is NULL. */
void pack_pipeline_close(pack_pipeline *p, pack_use *use);
