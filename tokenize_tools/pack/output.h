/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - the datasets of one run, P and a P-NAME for each split: opens, checkpoints and
 * finishes them together.
 *
 * Each writer keeps its checkpoints in a journal of its own, P first, so a run may be killed
 * between two of them: all outputs then go back to the last checkpoint that all have. When
 * everything is packed, one more checkpoint records that; then the outputs get their names one by
 * one, P last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request/error.h"
#include "request/fingerprint.h"
#include "tokmap_writer.h"

typedef struct pack_output {
    char prefix[PATH_PREFIX_BYTES];
    char index_path[PATH_PREFIX_BYTES + 8]; /* unambiguous, whatever P ends in */
    const pack_split *split;                /* NULL: P itself, for documents of no split */
    tokmap_writer *writer;                  /* NULL: not open, or complete already */
    uint64_t tokens, documents;
    bool was_complete; /* P had its name before this run, and the run may not replace it */
} pack_output;

typedef struct pack_outputs {
    pack_output list[PACK_MAX_SPLITS + 1]; /* P first */
    size_t n;
} pack_outputs;

/* Sets their names. */
void pack_outputs_init(pack_outputs *outputs, const pack_options *options);
typedef struct pack_start { /* how an earlier run has left the outputs (resume.h) */
    uint64_t checkpoint;    /* to resume at; 0: start */
    bool discard;           /* the existing files are of this run, or may be discarded */
    bool finishing;         /* everything is packed; only the names are missing */
} pack_start;
/* Opens the writers. Returns an exit code, and prints the error. */
int pack_outputs_open(pack_outputs *outputs, const pack_parts *parts, pack_start from);
/* --also: the files of another program are written when all outputs have their names, from their
 * indexes; before, those of datasets that are replaced are removed, so that none is ever beside
 * other tokens. The first call refuses files that exist, unless they may be replaced, and any
 * without the option; the others then do nothing. `rest`: only the files that a killed run had
 * not written. */
int pack_outputs_check_also(const pack_outputs *outputs, const pack_options *options);
int pack_outputs_remove_also(const pack_outputs *outputs, const pack_options *options,
                             pack_error *err);
int pack_outputs_write_also(const pack_outputs *outputs, const pack_options *options, bool rest);
/* Whether there is a checkpoint, so that work is kept on closing. */
bool pack_outputs_keep(const pack_outputs *outputs);
/* Takes the names from the outputs 1 to end - 1, which have just got them, when a later one failed
 * and the run cannot be resumed: else the next run would be refused. */
void pack_outputs_withdraw(const pack_outputs *outputs, size_t end);
void pack_outputs_close(pack_outputs *outputs);
