/* tokmap_writer.h - write token datasets, or index a token file that already exists.
 *
 * Write     tokmap_writer_open; append and end_document for each document, end_source after
 *           each input; set_metadata; finish; close.
 * Adopt     tokmap_writer_adopt; scan until TOKMAP_END, add_document for each document; finish;
 *           close.
 * Resume    tokmap_writer_open with resumable; checkpoint now and then. After a kill, a failure or
 *           close: open with TOKMAP_UNFINISHED_RESUME; note; append what the note says is missing;
 *           finish; close. The files are those of a writer that was never interrupted.
 * Promise   A dataset is complete or absent. Work goes to P.bin.partial and P.tmi.partial;
 *           finish flushes both to the disk, names P.bin, then P.tmi, then flushes the folder.
 *           close without a finished finish removes what was begun, unless it can be resumed. A
 *           dataset that is being replaced is kept until the new one is there, and put back if
 *           that fails. What a killed process leaves, the next writer of the same P takes over, but
 *           what can be resumed only if it says so. Two writers of one P: the second is told
 *           TOKMAP_ERR_LOCKED.
 * Status    As in tokmap.h. After a failed call every later call but close repeats its status.
 * Memory    4 MiB (6 while merging), 8 bytes for each MiB of tokens, and the sources: 40 bytes each
 *           and their names; while finishing, 8 bytes for each 1,024 documents. Arrays that grow
 *           may take twice that. The same with checkpoints and after resuming.
 * Threads   One caller at a time. */
#ifndef TOKMAP_WRITER_H
#define TOKMAP_WRITER_H

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tokmap_writer tokmap_writer;

/* What to do with an unfinished dataset P that can be resumed. */
typedef enum tokmap_unfinished {
    TOKMAP_UNFINISHED_REFUSE = 0, /* TOKMAP_ERR_EXISTS */
    TOKMAP_UNFINISHED_RESUME = 1, /* go on with it; where there is none, begin */
    TOKMAP_UNFINISHED_DISCARD = 2 /* start over */
} tokmap_unfinished;

typedef struct tokmap_writer_options { /* 0 means the default */
    size_t struct_size;                /* sizeof(tokmap_writer_options) */
    uint64_t vocab_size;               /* 1 to 2^31; 0, with token_bytes: not known */
    int32_t has_eod;                   /* 1: eod_id ends documents, which readers are told; 0: no id
                                          does, and eod_id is 0 or TOKMAP_NO_ID */
    uint32_t eod_id;
    uint32_t token_bytes; /* 2 or 4; default: 2 for a vocabulary of at most 65,536, else 4 */
    int32_t replace;      /* 1: replace a dataset P that already exists */
    int32_t resumable;    /* 1: there will be checkpoints; RESUME implies it */
    tokmap_unfinished unfinished;
    uint64_t resume_checkpoint; /* with RESUME: go back to this one, from 1; default: the last */
} tokmap_writer_options;

/* P is the prefix: the files will be P.bin and P.tmi. A path that ends in .bin or .tmi means
 * its prefix. TOKMAP_ERR_EXISTS: P, its index for another token file, or something unfinished is
 * there. TOKMAP_ERR_LOCKED: another writer has P.
 *
 * With TOKMAP_UNFINISHED_RESUME vocab_size, eod_id and token_bytes must be those that it was begun
 * with (TOKMAP_ERR_MISMATCH). Journal and files are checked against each other first: when they do
 * not fit (TOKMAP_ERR_CORRUPT), or the journal is of another version of the library
 * (TOKMAP_ERR_VERSION), nothing is changed. TOKMAP_END, without a writer: P is complete, and
 * what a killed writer may have left beside it is removed. With `replace`, a complete P that has
 * nothing left beside it is replaced instead. A complete P of another vocab_size, eod_id or
 * token_bytes is TOKMAP_ERR_EXISTS. */
TOKMAP_API tokmap_status tokmap_writer_open(tokmap_writer **out, const char *prefix,
                                            const tokmap_writer_options *options,
                                            tokmap_error *err);

/* Adds tokens to the document at hand. An id at or above vocab_size, or too large for
 * token_bytes, is TOKMAP_ERR_ARGUMENT: the message names its place. */
TOKMAP_API tokmap_status tokmap_writer_append(tokmap_writer *w, const uint32_t *ids,
                                              size_t n_tokens, tokmap_error *err);
/* Ends the document at hand, which may be empty. A writer whose end_document is never called
 * makes a dataset without document borders; otherwise tokens after the last end are an error. */
TOKMAP_API tokmap_status tokmap_writer_end_document(tokmap_writer *w, tokmap_error *err);

/* Adds all tokens and documents of ds, and its sources, checking its checksums on the way
 * (TOKMAP_ERR_CORRUPT). ds must have the writer's token width, ids below its vocab_size, and
 * document borders unless it is empty; and not have been replaced since it was opened
 * (TOKMAP_ERR_MISMATCH). Copied inside the file system where it can do that. Not in the middle of a
 * document. A checkpoint comes before or after all of ds. */
TOKMAP_API tokmap_status tokmap_writer_append_dataset(tokmap_writer *w, const tokmap_dataset *ds,
                                                      tokmap_error *err);

/* Declares that all documents since the last end_source came from the input `name`. input_bytes
 * and input_checksum (XXH3-64 of the input as stored) may be 0. At the end no document may be
 * left without a source, unless there are no sources at all. */
TOKMAP_API tokmap_status tokmap_writer_end_source(tokmap_writer *w, const char *name,
                                                  uint64_t input_bytes, uint64_t input_checksum,
                                                  tokmap_error *err);

/* The metadata: a JSON object in UTF-8, copied; "{}" if never called. The caller answers for its
 * syntax. */
TOKMAP_API tokmap_status tokmap_writer_set_metadata(tokmap_writer *w, const char *json,
                                                    size_t n_bytes, tokmap_error *err);

/* ---- Checkpoints: work that survives ---- */

#define TOKMAP_MAX_NOTE_BYTES 65536

/* Makes everything so far durable, in the middle of a document too, and remembers it together with
 * the note: what the caller needs to go on from here, in bytes of his own. The metadata is not
 * part of it. Takes as long as flushing what is new to the disk. From the first one on, close
 * keeps P.bin.partial, P.tmi.partial and the journal P.tmj.partial. A failed one leaves those
 * before it as they are. */
TOKMAP_API tokmap_status tokmap_writer_checkpoint(tokmap_writer *w, const void *note,
                                                  size_t note_bytes, tokmap_error *err);
/* The note of the checkpoint resumed from, live as long as the writer; NULL: nothing was there to
 * resume, begin at the beginning. */
TOKMAP_API const void *tokmap_writer_note(const tokmap_writer *w, size_t *n_bytes);
/* Appended so far, in resumed runs too; documents that have ended. */
TOKMAP_API uint64_t tokmap_writer_n_tokens(const tokmap_writer *w);
TOKMAP_API uint64_t tokmap_writer_n_documents(const tokmap_writer *w);
/* The number of the last checkpoint, made or resumed from; 0 before the first. */
TOKMAP_API uint64_t tokmap_writer_n_checkpoints(const tokmap_writer *w);

typedef struct tokmap_checkpoint_info {
    size_t struct_size;     /* set by the caller: sizeof(tokmap_checkpoint_info) */
    uint64_t n_checkpoints; /* that P can be resumed from; 0: none */
    uint64_t n_tokens, n_documents, n_sources; /* at the one asked for; 0 when there is none */
    uint64_t vocab_size;                       /* as its writer was opened */
    uint32_t token_bytes, eod_id;
    size_t note_bytes;
} tokmap_checkpoint_info;

/* Asks, without the lock, what there is to resume: checkpoint 0 is the last one. note: room for
 * TOKMAP_MAX_NOTE_BYTES, or NULL. Several writers at work on one job go back to the smallest
 * n_checkpoints of all. Where the journal is damaged behind the one asked for, n_checkpoints counts
 * those before; when the last was asked for, that is TOKMAP_ERR_CORRUPT. TOKMAP_ERR_VERSION: the
 * journal is of another version of the library. */
TOKMAP_API tokmap_status tokmap_writer_get_checkpoint(const char *prefix, uint64_t checkpoint,
                                                      tokmap_checkpoint_info *info, void *note,
                                                      tokmap_error *err);

/* Makes the dataset durable and visible. Afterwards only tokmap_writer_close is left.
 * TOKMAP_ERR_EXISTS: somebody else has given a file the name meanwhile. TOKMAP_ERR_CORRUPT: the
 * partial index does not hold what was written to it. TOKMAP_ERR_MISMATCH: a partial file was
 * removed or replaced, or the token file that is adopted was changed; nothing is published. */
TOKMAP_API tokmap_status tokmap_writer_finish(tokmap_writer *w, tokmap_error *err);
TOKMAP_API void tokmap_writer_close(tokmap_writer *w);

/* ---- Adopt: an index for a token file that stays as it is ---- */

typedef struct tokmap_adopt_options {
    size_t struct_size;    /* sizeof(tokmap_adopt_options) */
    uint64_t token_offset; /* bytes before the first token: a multiple of token_bytes, up to 2^30 */
    uint64_t n_tokens;     /* must reach exactly to the end of the file */
    uint64_t vocab_size;   /* 0: not known */
    uint32_t token_bytes;  /* 2 or 4 */
    int32_t has_eod;       /* as in tokmap_writer_options */
    uint32_t eod_id;
    int32_t replace; /* 1: replace an index that already exists */
} tokmap_adopt_options;

/* token_path is the token file, P and a suffix of 2 to 15 bytes from its last dot on; the index
 * will be P.tmi. TOKMAP_ERR_MISMATCH: the file does not have n_tokens tokens. TOKMAP_ERR_EXISTS and
 * TOKMAP_ERR_LOCKED as above. */
TOKMAP_API tokmap_status tokmap_writer_adopt(tokmap_writer **out, const char *token_path,
                                             const tokmap_adopt_options *options,
                                             tokmap_error *err);
/* Reads and checksums the next tokens and hands them out at their stored width, at most 1 MiB. They
 * are valid until the next call. TOKMAP_END after the last. */
TOKMAP_API tokmap_status tokmap_writer_scan(tokmap_writer *w, const void **tokens, size_t *n_tokens,
                                            tokmap_error *err);
/* Declares the next document: its length. The documents must add up to n_tokens, or be none.
 * Any time before finish. */
TOKMAP_API tokmap_status tokmap_writer_add_document(tokmap_writer *w, uint64_t n_tokens,
                                                    tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_WRITER_H */
