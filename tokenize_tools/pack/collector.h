/* SPDX-License-Identifier: Apache-2.0 */
/* collector.h - keeps what the corpus reports while it reads, beside the job that it belongs to:
 * messages are printed, and bad documents counted, when it is the job's turn. */
#ifndef TOKMAP_PACK_COLLECTOR_H
#define TOKMAP_PACK_COLLECTOR_H

#include "pack/bad_file.h"
#include "pack/pipeline.h"

/* The counts at the end of a document or an input. If a limit ends the run there, nothing that was
 * read after it counts. */
typedef struct pack_moment {
    corpus_counts counts;
    pack_bad_mark bad_file;
    size_t lines_bytes; /* bytes of the lines so far */
} pack_moment;

/* What was reported during the current read. */
typedef struct pack_collector {
    const tokenizer *tokenizer;
    pack_bad_file *bad_file; /* NULL: bad documents are not collected */
    char *lines;             /* messages, each with a newline */
    size_t lines_bytes, lines_capacity;
    pack_moment *moments; /* one for each end in the batch, if they are needed */
    size_t n_moments, moments_capacity;
    bool no_memory;
} pack_collector;

/* The record of one job, in one piece of memory. */
typedef struct pack_record {
    pack_bad_mark bad_file; /* at the end of the job */
    int bad_file_errno;
    size_t capacity; /* of the members below, in bytes */
    pack_moment *moments;
    char *lines;
    size_t n_bytes; /* of the lines */
} pack_record;

/* The callbacks of corpus_options and pack_pipeline_options; the context is the collector. */
size_t pack_collector_safe_cut(void *context, const uint8_t *text, size_t n_searched,
                               size_t n_bytes);
void pack_collector_collect(void *context, const uint8_t *data, size_t n_bytes, bool last);
void pack_collector_report(void *context, const char *text);
void pack_collector_ended(void *context, const corpus_counts *counts);
/* Sets job->record; NULL: out of memory. */
void pack_collector_after_read(void *context, pack_job *job);
void pack_collector_free(pack_collector *c);

#endif /* TOKMAP_PACK_COLLECTOR_H */
