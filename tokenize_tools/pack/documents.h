/* SPDX-License-Identifier: Apache-2.0 */
/* documents.h - writes the documents of the jobs, in order, to the outputs: decides to which output
 * a document belongs, which ones are left out, and where a limit ends the run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "request/error.h"
#include "request/fingerprint.h"
#include "pack/job.h"
#include "pack/fields.h"
#include "pack/output.h"
#include "request/input_group.h"
#include "pack/skipped.h"

/* The complete state between two jobs. */
typedef struct pack_position {
    uint64_t documents, tokens; /* in all outputs */
    uint64_t specials_seen;     /* in the text of documents */
    uint64_t special_documents; /* left out because of a special token, */
    uint64_t special_bytes;     /* and the bytes of their records */
    uint64_t text_bytes;        /* of all finished documents, including those left out */
    uint64_t input;             /* finished inputs */
    uint64_t input_documents;   /* of the current input, including those left out here */
    uint64_t file_bytes;        /* stored bytes of the finished inputs that are files */
} pack_position;

/* The messages about documents of an input, of which only the first ones are printed. */
typedef struct pack_said {
    uint64_t input;
    unsigned n;
} pack_said;
/* Counts one more. Whether it is printed. */
bool pack_said_add(pack_said *said, uint64_t of);

/* The caller sets the first members; all others are 0. */
typedef struct pack_documents {
    const pack_parts *parts;
    pack_outputs *outputs;
    cli_progress *progress; /* cleared before a message */
    pack_position *at;      /* moves on with each document */
    pack_fields *fields;

    size_t next_special; /* in job->specials */
    size_t next_values;  /* in job->batch.values */
    pack_said said;
    input_group repaired; /* inputs with U+FFFD in place of bytes, which were read to their ends */
    uint64_t n_repaired;  /* documents of these */
} pack_documents;

/* Writes the documents of the job. skipped: gets the places of those that are left out; NULL: none
 * may be. If a limit is reached, sets *n_ends to the number of its ends that count, else to 0. */
int pack_documents_take(pack_documents *d, const pack_job *job, pack_skipped *skipped,
                        size_t *n_ends, pack_error *err);
