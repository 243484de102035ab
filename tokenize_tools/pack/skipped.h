/* SPDX-License-Identifier: Apache-2.0 */
/* skipped.h - the places of the documents that --on-error skip has left out, for --report.
 *
 * They are kept in P.skipped.partial, one JSON object a line, beside the checkpoints: a run that
 * resumes cuts the file to where packing was, and --report lists all of them, also if it was not
 * given before. The file goes when the run is done. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "request/error.h"
#include "request/options.h"
#include "cli/json_out.h"
#include "system/memory_file.h"
#include "system/output_file.h"

struct XXH3_state_s;

/* How much was written. */
typedef struct pack_skipped_mark {
    uint64_t n_bytes, checksum; /* XXH3-64 of these bytes */
    uint64_t n_documents;
} pack_skipped_mark;

typedef struct pack_skipped {
    output_file out;
    uint64_t n_bytes, n_documents; /* written and buffered */
    struct XXH3_state_s *checksum; /* of these bytes */
    FILE *lines;                   /* writes into the buffer */
    memory_file buffer;            /* not yet written to the file */
    int write_errno;               /* of the first write that failed */
} pack_skipped;

/* One document. */
typedef struct skipped_document {
    const char *input;
    corpus_record at;
    const char *reason;
    size_t reason_bytes;
} skipped_document;

/* *s is zeros. keep: what an earlier run wrote. Returns an exit code, and prints the error. */
int pack_skipped_open(pack_skipped *s, const pack_options *options, const pack_skipped_mark *keep);
int pack_skipped_add(pack_skipped *s, const skipped_document *d, pack_error *err);
/* Makes what was added durable. s may be NULL here and below. */
int pack_skipped_sync(pack_skipped *s, pack_error *err);
pack_skipped_mark pack_skipped_now(const pack_skipped *s);
/* Prints an array, the next value. */
int pack_skipped_print(pack_skipped *s, json_out *o);
/* keep: the file stays, for another run. */
void pack_skipped_close(pack_skipped *s, bool keep);
/* Removes the file that a killed run left, when its datasets are complete. */
void pack_skipped_remove(const char *prefix);
