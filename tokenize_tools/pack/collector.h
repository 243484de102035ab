/* collector.h - what the corpus tells while it reads, kept beside the job that it belongs to:
 * messages are printed, and bad documents count, when their job's turn comes. */
#ifndef TOKMAP_PACK_COLLECTOR_H
#define TOKMAP_PACK_COLLECTOR_H

#include "pack/bad_file.h"
#include "pack/pipeline.h"

/* How far all was when a document or an input ended: where a limit ends the run, nothing counts
 * that was read behind it. */
typedef struct pack_moment {
    corpus_counts counts;
    pack_bad_mark bad_file;
    size_t lines_bytes; /* bytes of the lines that were told */
} pack_moment;

/* What is kept of the read at hand. */
typedef struct pack_collector {
    const tokenizer *tokenizer;
    pack_bad_file *bad_file; /* NULL: not collected */
    char *lines;             /* lines, each with its newline */
    size_t lines_bytes, lines_capacity;
    pack_moment *moments; /* one for each of the batch's ends, if they are asked for */
    size_t n_moments, moments_capacity;
    bool no_memory;
} pack_collector;

/* Beside a job; in one piece of memory. */
typedef struct pack_record {
    pack_bad_mark bad_file; /* after the job */
    int bad_file_errno;
    size_t capacity; /* of what follows, in bytes */
    pack_moment *moments;
    char *lines;
    size_t n_bytes; /* of the lines */
} pack_record;

/* The callbacks of corpus_options and pack_pipeline_options; the context is the collector. */
size_t pack_collector_safe_cut(void *context, const uint8_t *text, size_t n_bytes);
void pack_collector_collect(void *context, const uint8_t *data, size_t n_bytes, bool last);
void pack_collector_report(void *context, const char *text);
void pack_collector_ended(void *context, const corpus_counts *counts);
/* job->record is NULL where memory was short. */
void pack_collector_after_read(void *context, pack_job *job);
void pack_collector_free(pack_collector *c);

#endif /* TOKMAP_PACK_COLLECTOR_H */
