/* SPDX-License-Identifier: Apache-2.0 */
/* resume.h - finds what an earlier run left, and decides whether this run may resume it. */
#pragma once

#include "pack/skipped.h"
#include "pack/documents.h"
#include "pack/output.h"
#include "request/fingerprint.h"
#include "plan/cell_state.h"

/* What a checkpoint records. Only u64 members: it is stored as an array of them. */
typedef struct pack_note {
    uint64_t n_values; /* of this struct; other versions have other numbers */
    uint64_t fingerprint_hash;
    uint64_t done_hash;      /* pack_fingerprint_hash of the inputs before place.input */
    uint64_t begun_hash;     /* and of that one, if something of it was read */
    uint64_t on_error;       /* not part of the fingerprint */
    uint64_t finishing;      /* everything is packed; only the names are missing */
    uint64_t limited;        /* a limit was reached */
    uint64_t encoded_tokens; /* made by the encoders */
    uint64_t max_document;   /* the same */
    pack_skipped_mark skipped;
    corpus_place place;
    pack_position position;
    uint64_t tokens[PACK_MAX_SPLITS + 1], documents[PACK_MAX_SPLITS + 1]; /* of each output */
    /* Bits of the fields of --meta that some input has, and that some input lacks. Notes of earlier
     * versions end before these. */
    uint64_t fields_found, fields_lacking;
    uint64_t fields_seen; /* bits of the fields that the input that goes on has had so far */
} pack_note;

/* The note as it is stored. In the first checkpoint, as many lines of the fingerprint as fit
 * follow. */
size_t pack_note_encode(const pack_note *note, const pack_fingerprint *fingerprint,
                        uint8_t bytes[TOKMAP_MAX_NOTE_BYTES]);

/* Counts the bad documents, and those that were left out because of a special token. */
static inline uint64_t pack_note_n_bad(const pack_note *note)
{
    return note->place.counts.bad_documents + note->position.special_documents;
}

typedef struct pack_resume {
    uint64_t checkpoint; /* the same as in pack_start */
    bool discard;
    pack_note note; /* of the checkpoint */
    /* How the inputs differ from those of the earlier run, if they do. */
    char difference[PACK_DIFFERENCE_BYTES];
} pack_resume;

/* Looks for unfinished work. That of a different run is refused, unless --restart is given. But
 * inputs after those that were packed may have changed: then the run resumes at the last checkpoint
 * at which nothing was read of the first one that has. Returns an exit code, and prints the
 * error. */
int pack_resume_find(pack_resume *from, const pack_outputs *outputs, const pack_options *options,
                     const pack_fingerprint *fingerprint);

/* What an earlier process has left of a cell. */
typedef struct cell_work {
    cell_report report;
    bool has_note; /* of an unfinished cell: */
    pack_note note;
    bool discard; /* unfinished work that is not of this cell is discarded, with --force */
} cell_work;

/* Looks at the cell; CELL_FOREIGN also if unfinished work is of another plan or cell. Prints
 * nothing. */
void pack_resume_look(cell_work *work, const plan_file *plan, size_t cell, bool verify);
/* Compares the inputs of a cell that is done with the plan, as far as they exist, in its folder:
 * CELL_CHANGED if one has changed. */
void pack_resume_compare(cell_report *report, const plan_file *plan, size_t cell);
