/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - the main loop of packing: takes the jobs of the pipeline one by one into the outputs,
 * with checkpoints in between, until the inputs end, a limit is reached, or an error or a signal
 * stops it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "pack/skipped.h"
#include "pack/documents.h"
#include "request/fingerprint.h"
#include "pack/remaining.h"
#include "pack/resume.h"
#include "pack/use.h"

/* The session sets the first part; the rest is the state of the work. */
typedef struct pack_work {
    const pack_parts *parts;
    pack_fingerprint fingerprint;
    pack_outputs outputs; /* open */
    pack_resume from;
    pack_skipped *skipped; /* open, or NULL */
    bool keeps_skipped;    /* its file stays for another run */

    pack_documents documents;
    pack_fields fields;
    char verb[48]; /* "pack", or "cell 3/4" of a task */
    cli_progress progress;
    uint64_t tokens_before;         /* when this run began */
    uint64_t text_bytes;            /* packed by this run */
    pack_remaining own, *remaining; /* the cell's, or own */
    uint64_t stored_bytes;          /* read so far, of all inputs: for the progress line */
    pack_note at;    /* after the last job that was taken; a checkpoint sets the rest */
    bool consistent; /* the outputs are at at.place and at the documents' position */
    bool warned_once;
    pack_said said; /* about bad documents */
    pack_use use;
    uint64_t checkpoint_ns, next_checkpoint_ns; /* the interval; when the next one is due, since
                                                   the start */
} pack_work;

/* Sets the state from from.note. */
void pack_work_begin(pack_work *w);
int pack_work_run(pack_work *w, pack_error *err);
/* Compares what was read with what was written; CLI_DATASET if they differ. */
int pack_work_check_balance(const pack_work *w, pack_error *err);
/* Whether a checkpoint could be made here. */
bool pack_work_may_checkpoint(const pack_work *w);
int pack_work_checkpoint(pack_work *w, bool finishing, pack_error *err);
/* When everything is done: see cli_progress_end. */
void pack_work_print_end(pack_work *w);
