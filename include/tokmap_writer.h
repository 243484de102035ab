/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap_writer.h - writes token datasets, or indexes a token file that already exists.
 *
 * Example: writes a dataset of one document.
 *
 *     int write_document(const char *path, const uint32_t *ids, size_t n, tokmap_error *err)
 *     {
 *         tokmap_writer *w;
 *         tokmap_writer_options options = TOKMAP_INIT(tokmap_writer_options);
 *         options.vocab_size = 50257;
 *         int status = tokmap_writer_open(&w, path, &options, err);
 *         if (status == TOKMAP_OK)
 *             status = tokmap_writer_append(w, ids, n, err);
 *         if (status == TOKMAP_OK)
 *             status = tokmap_writer_end_document(w, err);
 *         if (status == TOKMAP_OK)
 *             status = tokmap_writer_finish(w, err);
 *         tokmap_writer_close(w);
 *         return status;
 *     }
 *
 * The rules in tokmap.h hold here too.
 *
 * Write     open; append and end_document for each document, or append_documents for many;
 *           end_input after each input file; set_metadata; finish; close.
 * Values    Documents can have values, such as a score or a language, in named columns: after open
 *           set_meta_columns; then add_meta before each end_document.
 * Resume    open with `resumable`; checkpoint from time to time. After a failure or a kill: open
 *           with TOKMAP_UNFINISHED_RESUME; read the note; append what is missing; finish; close.
 *           The files are the same as without an interruption.
 * Adopt     adopt, for a token file that already exists; scan until TOKMAP_END, and add_document
 *           for each document; finish; close.
 * Join      open_joined; join for each dataset; finish; close. The result is an index alone, whose
 *           tokens stay in the token files of the datasets: nothing is copied, and only their
 *           indexes are read.
 * Redact    open or open_joined; redact, with a dataset; set_metadata; finish; close.
 * Files     A dataset is complete or absent. The writer fills P.bin.partial and P.tmi.partial, and
 *           P.tmv.partial if documents have values. Finish flushes tokens and index to the disk,
 *           then gives them the names P.bin and P.tmi, in this order, then flushes the folder. If
 *           finish did not succeed, close removes the partial files, unless the writer can be
 *           resumed. When a dataset is replaced, the old one is kept until the new one is complete,
 *           and restored if that fails. The next writer of the same P removes what a killed writer
 *           left. Files that can be resumed are removed only if `unfinished` is
 *           TOKMAP_UNFINISHED_DISCARD. Only one writer at a time can write P: another one gets
 *           TOKMAP_ERR_LOCKED.
 * Status    After a failed call, every later call except close returns the same status.
 * Memory    4 MiB (6 MiB in append_dataset), 8 bytes for each MiB of tokens, for each input 40
 *           bytes and its name, and for each token file that is joined 24 bytes and its path; in
 *           finish, also 8 bytes for each 1,024 documents. Arrays may take twice as much while they
 *           grow. Values take 2 MiB and the largest document's values, and in finish up to 40 MiB
 *           if there are strings. Resuming takes no more; redacting takes 2 MiB, 16 bytes for each
 *           MiB of tokens, and for each document of the list 8 bytes and its spans.
 * Threads   A writer is used by one thread at a time.
 * fork      In a child process, a writer of the parent returns TOKMAP_ERR_FORKED. close frees the
 *           child's memory and does not affect the parent. */
#ifndef TOKMAP_WRITER_H
#define TOKMAP_WRITER_H

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---- */

typedef struct tokmap_writer tokmap_writer;

/* What to do if P is unfinished and can be resumed. */
typedef enum tokmap_unfinished {
    TOKMAP_UNFINISHED_REFUSE = 0, /* fail with TOKMAP_ERR_EXISTS */
    TOKMAP_UNFINISHED_RESUME = 1, /* continue; if there is nothing to resume, start */
    TOKMAP_UNFINISHED_DISCARD = 2 /* remove it and start */
} tokmap_unfinished;

typedef struct tokmap_writer_options {
    size_t struct_size;   /* sizeof(tokmap_writer_options) */
    uint64_t vocab_size;  /* 1 to 2^31; 0: not known, then token_bytes must be set */
    int32_t has_eod;      /* 1: documents end with eod_id; stored for readers, not appended */
    uint32_t eod_id;      /* 0 or TOKMAP_NO_ID if has_eod is 0 */
    uint32_t token_bytes; /* 2 or 4; 0: 2 if vocab_size is at most 65,536, else 4 */
    int32_t replace;      /* 1: replace P if it already exists */
    int32_t resumable;    /* 1: checkpoints will be made; RESUME implies it */
    tokmap_unfinished unfinished;
    uint64_t resume_checkpoint; /* with RESUME: number of the checkpoint, from 1; 0: the last */
    int32_t has_spans; /* 1: documents may have spans; not needed if the first document has one */
    /* Threads that hash and write the tokens, up to 7. They take up to 16 MiB of memory; 0: the
     * calls do so themselves. With threads, a failed write is the failure of a later call. */
    uint32_t n_threads;
    void *context; /* for the function below */
    /* During append_dataset, join, redact and finish: the bytes of the tokens that this call reads
     * or writes, and 8 for each document. NULL: none. */
    tokmap_on_progress *on_progress;
} tokmap_writer_options;

typedef struct tokmap_join_options {
    size_t struct_size; /* sizeof(tokmap_join_options) */
    /* 1: the first input of the dataset continues the last input before it: they become one, with
     * the size of the larger one and no checksum */
    int32_t continues_input;
} tokmap_join_options;

/* The result of tokmap_writer_redact. The last two fields do not count copied bytes, nor
 * indexes. */
typedef struct tokmap_redact_info {
    size_t struct_size; /* sizeof(tokmap_redact_info), set by the caller */
    uint64_t n_tokens;  /* tokens that were replaced */
    uint64_t n_linked;  /* token files of a joined dataset that stay where they are */
    /* size of token files that were copied by sharing the blocks in the file system */
    uint64_t bytes_shared;
    uint64_t bytes_copied;  /* size of token files that were copied otherwise */
    uint64_t bytes_read;    /* bytes of tokens: whole blocks of 1 MiB */
    uint64_t bytes_written; /* bytes of tokens */
} tokmap_redact_info;

typedef struct tokmap_adopt_options {
    size_t struct_size;    /* sizeof(tokmap_adopt_options) */
    uint64_t token_offset; /* bytes before the first token: a multiple of token_bytes, up to 2^30 */
    uint64_t n_tokens;     /* must reach exactly to the end of the file */
    uint64_t vocab_size;   /* 0: not known */
    uint32_t token_bytes;  /* 2 or 4 */
    int32_t has_eod;       /* 1: documents end with eod_id */
    uint32_t eod_id;       /* 0 or TOKMAP_NO_ID if has_eod is 0 */
    int32_t replace;       /* 1: replace the index if it already exists */
} tokmap_adopt_options;

/* ---- Open and close ---- */

/* Opens a writer of P.bin and P.tmi. `prefix` is P; a final .bin or .tmi is ignored.
 * TOKMAP_ERR_EXISTS: P, an index of this name, or an unfinished P exists. TOKMAP_ERR_LOCKED:
 * another writer is writing P.
 * With TOKMAP_UNFINISHED_RESUME also: TOKMAP_END, and *out is NULL: P is already complete, and what
 * a killed writer left beside it has been removed; err says so. With `replace`, a complete P with
 * nothing left beside it is replaced instead. TOKMAP_ERR_EXISTS: P is complete, but with another
 * vocab_size, eod_id or token_bytes. TOKMAP_ERR_MISMATCH: the unfinished P was begun with another
 * vocab_size, eod_id or token_bytes. TOKMAP_ERR_CORRUPT: journal and partial files do not agree.
 * TOKMAP_ERR_VERSION: the journal is from another version of the library. After the last two
 * nothing has changed. */
TOKMAP_API tokmap_status tokmap_writer_open(tokmap_writer **out, const char *prefix,
                                            const tokmap_writer_options *options,
                                            tokmap_error *err);

/* Opens a writer of an index for the token file at token_path, which is not changed. The name of
 * that file is P and a suffix of 2 to 15 bytes that begins with the last dot; the index will be
 * P.tmi. TOKMAP_ERR_MISMATCH: the file does not have n_tokens tokens. TOKMAP_ERR_EXISTS,
 * TOKMAP_ERR_LOCKED: as in tokmap_writer_open. */
TOKMAP_API tokmap_status tokmap_writer_adopt(tokmap_writer **out, const char *token_path,
                                             const tokmap_adopt_options *options,
                                             tokmap_error *err);

/* Opens a writer of a joined dataset: an index P.tmi over the token files of other datasets, and no
 * P.bin. The options and errors are the same as for tokmap_writer_open, but it cannot be resumed.
 * With `replace`, an existing P.bin is removed. */
TOKMAP_API tokmap_status tokmap_writer_open_joined(tokmap_writer **out, const char *prefix,
                                                   const tokmap_writer_options *options,
                                                   tokmap_error *err);

/* Makes the dataset durable and visible. Afterwards only close may be called.
 * TOKMAP_ERR_EXISTS: a file of this name was created meanwhile. TOKMAP_ERR_CORRUPT: the partial
 * index does not contain what was written to it. TOKMAP_ERR_MISMATCH: a partial file was removed or
 * replaced, or the adopted token file has changed; nothing is published. */
TOKMAP_API tokmap_status tokmap_writer_finish(tokmap_writer *w, tokmap_error *err);
/* Closes a writer. Without a successful finish, removes what was written, unless it can be
 * resumed. */
TOKMAP_API void tokmap_writer_close(tokmap_writer *w);

/* ---- Use: write ---- */

/* Adds tokens to the current document. TOKMAP_ERR_ARGUMENT: an id is not below vocab_size, or too
 * large for token_bytes; err says which one. */
TOKMAP_API tokmap_status tokmap_writer_append(tokmap_writer *w, const uint32_t *ids,
                                              size_t n_tokens, tokmap_error *err);
/* Adds whole documents at once: what append does with the tokens of each, and end_document after
 * each, but faster for short documents. tokens: n_tokens of them, as the token file has them:
 * uint16_t or uint32_t, as token_bytes says. lengths: how many of the tokens each document has.
 * TOKMAP_ERR_ARGUMENT: as append; or the lengths do not add up to n_tokens. */
TOKMAP_API tokmap_status tokmap_writer_append_documents(tokmap_writer *w, const void *tokens,
                                                        size_t n_tokens, const uint64_t *lengths,
                                                        size_t n_documents, tokmap_error *err);
/* Ends the current document, which may be empty. If it is never called, the dataset has no document
 * boundaries. If it is called, finish fails when tokens follow the last end. */
TOKMAP_API tokmap_status tokmap_writer_end_document(tokmap_writer *w, tokmap_error *err);

/* Adds all tokens, documents, inputs, values and spans of ds, and verifies its checksums. Not
 * inside a document. Shares or copies the data within the file system where it can. The first
 * dataset determines the columns of values, unless they are set; the next datasets must have the
 * same names, in any order. TOKMAP_ERR_CORRUPT: ds is damaged. TOKMAP_ERR_MISMATCH: ds has another
 * token width, an id that is not below vocab_size, tokens without document boundaries, or other
 * columns, or a column that does not match the writer's column; or it has spans, and the writer has
 * documents and was opened without has_spans; or it was replaced since it was opened. */
TOKMAP_API tokmap_status tokmap_writer_append_dataset(tokmap_writer *w, const tokmap_dataset *ds,
                                                      tokmap_error *err);

/* Adds all tokens, documents, inputs, values and spans of ds to a joined dataset. The tokens stay
 * where they are: the token files of ds must be kept as long as the result, and are found by their
 * paths from the folder of P, so all can be moved together. They are not read: open ds with
 * tokmap_dataset_open_index, and verify the result if they may be damaged. Its index is read, and
 * its checksums are verified. options may be NULL. TOKMAP_ERR_CORRUPT, TOKMAP_ERR_MISMATCH: as for
 * tokmap_writer_append_dataset; also TOKMAP_ERR_MISMATCH: an input that is to continue has another
 * name. TOKMAP_ERR_ARGUMENT: the token file of ds is P.bin; a path from P has more than 4,096
 * bytes; there are more than 2^20 token files; or there is no input to continue. */
TOKMAP_API tokmap_status tokmap_writer_join(tokmap_writer *w, const tokmap_dataset *ds,
                                            const tokmap_join_options *options, tokmap_error *err);

/* Names the input file of all documents since the last end_input. input_bytes and input_checksum
 * (its XXH3-64) are 0 if not known. Finish fails when some documents have an input file and others
 * have none. */
TOKMAP_API tokmap_status tokmap_writer_end_input(tokmap_writer *w, const char *name,
                                                 uint64_t input_bytes, uint64_t input_checksum,
                                                 tokmap_error *err);

/* Sets the metadata: a JSON object in UTF-8, which is copied and not checked. Without this call it
 * is "{}". These keys have a meaning, which docs/FORMAT.md specifies in sections 3.6 and 3.9:
 * `tokenizer`, whose value tokmap_tokenizer_metadata gives, `roles`, `redacted_from` and
 * `adopted_from` are read by libraries and commands; `tokmap pack` and others also write
 * `created_by`, `options`, `merged_from`, `split`, `counts` and `plan`. */
TOKMAP_API tokmap_status tokmap_writer_set_metadata(tokmap_writer *w, const char *json,
                                                    size_t n_bytes, tokmap_error *err);

/* ---- Use: values of documents ---- */

#define TOKMAP_MAX_META_COLUMNS 64
#define TOKMAP_MAX_META_NAME_BYTES 255
#define TOKMAP_MAX_META_STRING_BYTES 65536

/* Defines the columns of values. The names must differ, and have 1 to 255 bytes of UTF-8. Call
 * it once, before the first document ends; n_columns may be 0. After a resume, call it with the
 * same names before the next document ends. TOKMAP_ERR_ARGUMENT: a name breaks a rule, or documents
 * have ended without columns. TOKMAP_ERR_MISMATCH: the dataset that was resumed was begun with
 * other columns. */
TOKMAP_API tokmap_status tokmap_writer_set_meta_columns(tokmap_writer *w, const char *const *names,
                                                        uint32_t n_columns, tokmap_error *err);
/* Sets the values of the document that ends next, one for each column; they are copied. Without
 * this call they are all null. Finish fails if the document does not end. A checkpoint within a
 * document does not include its values: after a resume, call it again. A column holds either
 * numbers or strings, whichever comes first. If it has integers and a float64, all become float64.
 * TOKMAP_ERR_ARGUMENT: a value is a string in a column of numbers, or a number in a column of
 * strings; or a column that has a float64 has an integer that is not exact as float64; or a string
 * is longer than TOKMAP_MAX_META_STRING_BYTES. err names the column and the document. */
TOKMAP_API tokmap_status tokmap_writer_add_meta(tokmap_writer *w, const tokmap_value *values,
                                                uint32_t n_values, tokmap_error *err);

/* ---- Use: spans ---- */

/* Gives tokens of the document that ends next a role, which says whether their labels count in the
 * loss; first_token is counted from the first token of the document. Spans ascend and do not
 * overlap. As with tokmap_writer_add_meta, finish fails if the document does not end, and a
 * checkpoint does not include them. */
TOKMAP_API tokmap_status tokmap_writer_add_span(tokmap_writer *w, const tokmap_span *span,
                                                tokmap_error *err);

/* ---- Use: adopt ---- */

/* Reads the next tokens and adds them to the checksums. *tokens are *n_tokens tokens of
 * token_bytes, at most 1 MiB, valid until the next call. TOKMAP_END: all tokens have been read. */
TOKMAP_API tokmap_status tokmap_writer_scan(tokmap_writer *w, const void **tokens, size_t *n_tokens,
                                            tokmap_error *err);
/* Adds a document of n_tokens, at any time before finish. Finish fails unless the documents cover
 * all tokens, or there are none. */
TOKMAP_API tokmap_status tokmap_writer_add_document(tokmap_writer *w, uint64_t n_tokens,
                                                    tokmap_error *err);

/* ---- Use: redact ---- */

/* Adds ds as tokmap_writer_append_dataset or, if it is joined, tokmap_writer_join does, but
 * replaces the tokens of these documents with a filler, leaves out their values, and marks their
 * labels so that they never count: docs/FORMAT.md, section 7.1, which also states what the metadata
 * must contain. The writer was opened with the vocab_size, eod_id and token_bytes of ds, is empty
 * and not resumable; only set_metadata and finish may follow. Only blocks of these documents are
 * checked. If the writer replaces a joined dataset P, finish removes its files P.*.redacted, except
 * those that the new dataset or ds uses. TOKMAP_ERR_ARGUMENT also: there is no such document, or
 * they do not ascend. */
TOKMAP_API tokmap_status tokmap_writer_redact(tokmap_writer *w, const tokmap_dataset *ds,
                                              const uint64_t *documents, uint64_t n_documents,
                                              tokmap_redact_info *info, tokmap_error *err);

/* ---- State: checkpoints ---- */

#define TOKMAP_MAX_NOTE_BYTES 65536

/* Makes everything that was appended durable, also in the middle of a document, together with a
 * note: up to TOKMAP_MAX_NOTE_BYTES, from which the caller can continue. The metadata is not
 * included. Takes as long as flushing the new data to the disk. After the first checkpoint, close
 * keeps the partial files and the journal P.tmj.partial. A failed checkpoint does not harm earlier
 * ones. */
TOKMAP_API tokmap_status tokmap_writer_checkpoint(tokmap_writer *w, const void *note,
                                                  size_t note_bytes, tokmap_error *err);
/* Returns the note of the checkpoint that the writer resumed from, valid until close. A note of 0
 * bytes is not NULL. NULL, and *n_bytes is 0: there was nothing to resume, so start at the
 * beginning. */
TOKMAP_API const void *tokmap_writer_note(const tokmap_writer *w, size_t *n_bytes);

typedef struct tokmap_checkpoint_info {
    size_t struct_size;     /* sizeof(tokmap_checkpoint_info), set by the caller */
    uint64_t n_checkpoints; /* that P can be resumed from; 0: the fields below are 0 */
    uint64_t n_tokens;      /* at the checkpoint */
    uint64_t n_documents;   /* at the checkpoint */
    uint64_t n_inputs;      /* at the checkpoint */
    uint64_t vocab_size;    /* as the writer was opened */
    uint32_t token_bytes;   /* as the writer was opened */
    uint32_t eod_id;        /* as the writer was opened; TOKMAP_NO_ID: none */
    size_t note_bytes;
} tokmap_checkpoint_info;

/* Describes a checkpoint of an unfinished P, without opening a writer or taking the lock.
 * `checkpoint` is its number, 0 for the last one. note has room for TOKMAP_MAX_NOTE_BYTES, or is
 * NULL. Several writers of one job can all return to the smallest of their n_checkpoints.
 * If there is nothing to resume, checkpoint 0 is TOKMAP_OK with n_checkpoints 0, and another one is
 * TOKMAP_ERR_ARGUMENT. TOKMAP_ERR_CORRUPT: the journal is damaged
 * before the end of this checkpoint, or anywhere if it is the last one; n_checkpoints counts the
 * checkpoints before the damage. TOKMAP_ERR_VERSION: the journal is from another version of the
 * library. */
TOKMAP_API tokmap_status tokmap_writer_get_checkpoint(const char *prefix, uint64_t checkpoint,
                                                      tokmap_checkpoint_info *info, void *note,
                                                      tokmap_error *err);

/* ---- Info ---- */

/* Returns the number of tokens so far, including tokens from before a resume. */
TOKMAP_API uint64_t tokmap_writer_n_tokens(const tokmap_writer *w);
/* Returns the number of documents that have ended so far, including documents from before a
 * resume. */
TOKMAP_API uint64_t tokmap_writer_n_documents(const tokmap_writer *w);
/* Returns the number of the last checkpoint, made or resumed from; 0: none. */
TOKMAP_API uint64_t tokmap_writer_n_checkpoints(const tokmap_writer *w);

/* ---- Late columns ---- */

/* Adds a column of values to a dataset P that is complete, in a file of its own: P.NAME.tmc. P does
 * not change, and readers find the column by its name (tokmap_column_open). Values can be given in
 * any order; in the order of the documents is fastest. They wait in a file without a name, of 9
 * bytes for each document and the strings. The file is complete or absent, and its numbers have the
 * smallest size that holds them all. Takes 4 MiB, with strings up to 40 MiB.
 *
 * The types are those of the values of documents above: numbers, integers among them as doubles if
 * one is a double, or strings. */
typedef struct tokmap_column_writer tokmap_column_writer;

typedef struct tokmap_column_options {
    size_t struct_size; /* sizeof(tokmap_column_options) */
    const char *name;   /* 1 to 64 of A-Z, a-z, 0-9, _ and - */
    int32_t replace;    /* 1: replace a late column of this name */
    int32_t reserved;
} tokmap_column_options;

/* Begins a column. The dataset must stay open until close. TOKMAP_ERR_EXISTS: the dataset has a
 * column of this name; with `replace`, only if it is in the index. TOKMAP_ERR_LOCKED: another
 * process is adding it. TOKMAP_ERR_MISMATCH: the document boundaries are not known. */
TOKMAP_API tokmap_status tokmap_column_writer_open(tokmap_column_writer **out,
                                                   const tokmap_dataset *ds,
                                                   const tokmap_column_options *options,
                                                   tokmap_error *err);
/* Sets the values of the documents from number `first` on. A document gets a value once; without
 * one it is null. TOKMAP_ERR_ARGUMENT: a value does not go with those before it, or there is no
 * such document. */
TOKMAP_API tokmap_status tokmap_column_writer_put(tokmap_column_writer *w, uint64_t first,
                                                  const tokmap_value *values, uint64_t n_values,
                                                  tokmap_error *err);
/* Writes the file and gives it its name. */
TOKMAP_API tokmap_status tokmap_column_writer_finish(tokmap_column_writer *w, tokmap_error *err);
/* Closes the writer; without finish nothing is left. */
TOKMAP_API void tokmap_column_writer_close(tokmap_column_writer *w);

/* ---- Lanes ---- */

/* Adds a lane to a dataset P that is complete, in a file of its own: P.NAME.tml, with numbers for
 * each token. P does not change, and readers find the lane by its name (tokmap_lane_open). Tokens
 * can be given in any order, by several threads. A MiB of zeros is not written. The file is
 * complete or absent, and cannot be resumed: for what takes days, write a lane for each dataset of
 * a joined one, which has them then. Takes 8 bytes for each MiB, and 16 for each gap between tokens
 * that have numbers. */
typedef struct tokmap_lane_writer tokmap_lane_writer;

typedef struct tokmap_lane_options {
    size_t struct_size;    /* sizeof(tokmap_lane_options) */
    const char *name;      /* 1 to 64 of A-Z, a-z, 0-9, _ and - */
    const char *about;     /* a JSON object of at most 3,968 bytes, which is not checked; or NULL */
    tokmap_lane_type type; /* must be set */
    uint32_t count;        /* numbers for a token, which have at most 65,536 bytes; 0: one */
    tokmap_goes_with goes_with;
    int32_t replace; /* 1: replace a lane of this name */
    int32_t partial; /* 1: tokens may be left out; their numbers are 0 */
} tokmap_lane_options;

/* Begins a lane. The dataset must stay open until close. TOKMAP_ERR_EXISTS: the lane exists.
 * TOKMAP_ERR_LOCKED: another process is writing it. */
TOKMAP_API tokmap_status tokmap_lane_writer_open(tokmap_lane_writer **out, const tokmap_dataset *ds,
                                                 const tokmap_lane_options *options,
                                                 tokmap_error *err);
/* Sets the numbers of the tokens from number `first` on; each token has them once. Any number of
 * threads may call it at the same time. After a failure, every later call except close returns the
 * same status. TOKMAP_ERR_ARGUMENT: a token has its numbers already, or there is no such token. */
TOKMAP_API tokmap_status tokmap_lane_writer_put(tokmap_lane_writer *w, uint64_t first,
                                                const void *values, uint64_t n_tokens,
                                                tokmap_error *err);
/* Makes the lane durable and gives it its name, when all threads are done. TOKMAP_ERR_ARGUMENT: a
 * token has no numbers, and `partial` is 0. */
TOKMAP_API tokmap_status tokmap_lane_writer_finish(tokmap_lane_writer *w, tokmap_error *err);
/* Closes the writer; without finish nothing is left. */
TOKMAP_API void tokmap_lane_writer_close(tokmap_lane_writer *w);

/* Writes the same lane for `redacted`, which tokmap_writer_redact wrote from the dataset of the
 * lane without these documents: with zeros for all tokens of these documents. If each token file
 * has its own lane, those of the token files that were not copied stay. An older lane is replaced.
 * TOKMAP_ERR_MISMATCH: it is another dataset. TOKMAP_ERR_CORRUPT: the lane is damaged at these
 * documents. */
TOKMAP_API tokmap_status tokmap_lane_redact(const tokmap_lane *lane, const tokmap_dataset *redacted,
                                            const uint64_t *documents, uint64_t n_documents,
                                            tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_WRITER_H */
