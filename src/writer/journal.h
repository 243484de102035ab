/* journal.h - P.tmj.partial: the checkpoints of an unfinished dataset, one record behind the other.
 *
 * Each record is on the disk before the next one is begun, so only the last one can be torn; it
 * is ignored then. Whatever else does not fit is damage. Who holds the lock on P.tmi.partial may
 * write. */
#ifndef TOKMAP_JOURNAL_H
#define TOKMAP_JOURNAL_H

#include "format/journal_record.h"
#include "tokmap.h"

typedef struct tokmap_i_journal {
    const char *path; /* the caller's */
    int fd;           /* -1: there is no file */
    uint64_t n_bytes; /* of the file when it was opened */
    uint64_t end;     /* of the records read or written so far */
    tokmap_i_journal_header header;
    tokmap_i_checkpoint last; /* read or written; all zero before the first */
    /* Of the record just read: */
    tokmap_i_record_parts parts;
    uint8_t *payload;
    uint64_t payload_capacity;
} tokmap_i_journal;

/* What tokmap_i_journal_close expects. */
#define TOKMAP_I_NO_JOURNAL ((tokmap_i_journal){.fd = -1})

/* Opens the file, to go on writing it or only to read. TOKMAP_END when there is none, or not a
 * single checkpoint in it; TOKMAP_ERR_CORRUPT, TOKMAP_ERR_VERSION. */
tokmap_status tokmap_i_journal_open(tokmap_i_journal *j, const char *path, bool writable,
                                    tokmap_error *err);
/* Reads the next record: j->last and j->parts. TOKMAP_END behind the last one. */
tokmap_status tokmap_i_journal_next(tokmap_i_journal *j, tokmap_error *err);
/* Drops, durably, what is behind the last record read. */
tokmap_status tokmap_i_journal_cut(tokmap_i_journal *j, tokmap_error *err);

/* Creates the file; whatever has its name is removed. header: widths and vocabulary. */
tokmap_status tokmap_i_journal_create(tokmap_i_journal *j, const char *path,
                                      const tokmap_i_journal_header *header, tokmap_error *err);
/* Adds a record and flushes it to the disk. parts: measured against j->last. */
tokmap_status tokmap_i_journal_append(tokmap_i_journal *j, const tokmap_i_checkpoint *now,
                                      const tokmap_i_record_parts *parts, tokmap_error *err);
void tokmap_i_journal_close(tokmap_i_journal *j);

#endif /* TOKMAP_JOURNAL_H */
