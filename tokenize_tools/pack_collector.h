/* pack_collector.h - what the corpus tells while it reads, kept beside the job that it belongs to:
 * messages are printed, and bad documents count, when their job's turn comes. */
#ifndef TOKMAP_PACK_COLLECTOR_H
#define TOKMAP_PACK_COLLECTOR_H

#include "pack_bad_file.h"
#include "pack_pipeline.h"

typedef struct pack_collector {
    const tokenizer *tokenizer;
    pack_bad_file *bad_file; /* NULL: not collected */
    char *told;              /* lines, each with its newline; of the read at hand */
    size_t n_told, told_capacity;
} pack_collector;

/* Beside a job. */
typedef struct pack_told {
    uint64_t bad_file_bytes; /* after the job */
    int bad_file_errno;
    size_t n_bytes, capacity;
    char lines[];
} pack_told;

/* The callbacks of corpus_options and pack_pipeline_options; the context is the collector. */
size_t pack_collector_safe_cut(void *context, const uint8_t *text, size_t n_bytes);
void pack_collector_collect(void *context, const uint8_t *data, size_t n_bytes, bool last);
void pack_collector_told(void *context, const char *text);
void pack_collector_after_read(void *context, pack_job *job);

#endif /* TOKMAP_PACK_COLLECTOR_H */
