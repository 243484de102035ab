/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - P.tmj.partial: the checkpoints of an unfinished dataset, one record each.
 *
 * Each record is on the disk before the next one is started, so only the last one can be torn, and
 * it is then ignored. Anything else that is wrong is damage. Only the holder of the lock on
 * P.tmi.partial may write. */
#pragma once

#include "base/array.h"
#include "format/journal_record.h"
#include "tokmap.h"

typedef struct tokmap_i_journal {
    const char *path; /* owned by the caller */
    int fd;           /* -1: there is no file */
    uint64_t n_bytes; /* size of the file when it was opened */
    uint64_t end;     /* end of the records read or written so far */
    tokmap_i_journal_header header;
    tokmap_i_checkpoint last; /* last record read or written; all zero before the first */
    /* Describes the last record read: */
    tokmap_i_record_parts parts;
    tokmap_i_bytes payload;
} tokmap_i_journal;

/* A closed journal, for tokmap_i_journal_close. */
#define TOKMAP_I_NO_JOURNAL ((tokmap_i_journal){.fd = -1})

/* Opens the file, to continue writing it or only to read it. TOKMAP_END if there is no file, or no
 * checkpoint in it; TOKMAP_ERR_CORRUPT, TOKMAP_ERR_VERSION. */
tokmap_status tokmap_i_journal_open(tokmap_i_journal *j, const char *path, bool writable,
                                    tokmap_error *err);
/* Reads the next record into j->last and j->parts. TOKMAP_END after the last one. */
tokmap_status tokmap_i_journal_next(tokmap_i_journal *j, tokmap_error *err);
/* Cuts off, durably, what comes after the last record read. */
tokmap_status tokmap_i_journal_cut(tokmap_i_journal *j, tokmap_error *err);

/* Creates the file; an existing one is removed. header: widths and vocabulary. */
tokmap_status tokmap_i_journal_create(tokmap_i_journal *j, const char *path,
                                      const tokmap_i_journal_header *header, tokmap_error *err);
/* Adds a record and flushes it to the disk. parts: measured against j->last. */
tokmap_status tokmap_i_journal_append(tokmap_i_journal *j, const tokmap_i_checkpoint *now,
                                      const tokmap_i_record_parts *parts, tokmap_error *err);
void tokmap_i_journal_close(tokmap_i_journal *j);
