/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - the writer of a dataset, as the files of this folder share it: state.c (how each call
 * begins and ends), writer.c (a new token file), adopt.c (an existing one), append.c and redact.c
 * (the tokens of other datasets), flush.c (from the buffer to the disk), checkpoint.c, values.c and
 * spans.c. */
#pragma once

#include <stdbool.h>

#include "base/hash.h"
#include "base/progress.h"
#include "dataset/index_reader.h"
#include "writer/index_writer.h"
#include "writer/journal.h"
#include "writer/publish.h"
#include "writer/relative_path.h"
#include "tokmap_writer.h"

enum {
    TOKMAP_I_MAX_FLUSH_THREADS = 7
};
typedef struct tokmap_i_flush tokmap_i_flush;

struct tokmap_writer {
    tokmap_i_fork_mark fork_mark;
    tokmap_i_names names;
    tokmap_i_index_writer *index;
    int token_fd;
    tokmap_i_header header;
    bool finished;
    bool is_whole;              /* complete: redact has added the rest, and appending is an error */
    bool input_before_document; /* an input ended within the first document */
    uint8_t *buffer;            /* TOKMAP_I_WRITE_BYTES: tokens to be written, or just read */
    size_t buffer_used;
    tokmap_i_hasher *hasher;      /* hash of the current block, without what is in the buffer */
    size_t hashed;                /* bytes of that block so far */
    uint64_t n_tokens;            /* appended or scanned so far */
    tokmap_i_meta_writer *meta;   /* values of documents, or NULL */
    bool meta_named;              /* the caller has named the columns */
    tokmap_i_bytes spans;         /* tokmap_span: spans of the document that ends next */
    tokmap_i_relative_path paths; /* paths of token files, if the output is joined */
    tokmap_i_bytes metadata;
    tokmap_writer_options options; /* zeroed unless the caller gives them */
    tokmap_i_journal journal;      /* opened by the first checkpoint */
    tokmap_i_bytes note;           /* of the checkpoint resumed from; without data: there is none */
    tokmap_i_flush *flush;         /* threads that write the tokens, or NULL */
    tokmap_error failure;          /* the first failure, which all later calls repeat */
};

/* ---- state.c ---- */

/* The public call that opens a writer, indexed by tokmap_i_output. */
extern const char *const tokmap_i_writer_opened_by[];
/* Begins a public call: repeats an earlier failure, or refuses the call. `complete`: all arguments
 * of the call that must not be NULL are not. `output`: the only kind of output that this call is
 * for. `call`: its name. */
tokmap_status tokmap_i_writer_enter(tokmap_writer *w, bool complete, tokmap_i_output output,
                                    const char *call, tokmap_error *err);
/* Ends a public call: remembers its failure, which the call has put into w->failure. */
tokmap_status tokmap_i_writer_leave(tokmap_writer *w, tokmap_status status, tokmap_error *err);

/* ---- writer.c ---- */

/* Sets the id that ends documents, or TOKMAP_NO_ID. Checks it, and token_bytes and vocab_size,
 * which the caller has set. */
tokmap_status tokmap_i_take_ids(tokmap_i_header *h, int32_t has_eod, uint32_t eod_id,
                                tokmap_error *err);
/* Makes a writer that is zeroed and can be closed. NULL when out of memory. */
tokmap_writer *tokmap_i_writer_new(void);
/* Makes the names and takes the lock. Refuses an existing dataset, and an unfinished one unless the
 * options allow it. After a resume the token file is open. suffix: the suffix of the token file.
 * TOKMAP_END if the dataset that was to be resumed is complete. */
tokmap_status tokmap_i_writer_begin(tokmap_writer *w, const char *prefix, size_t prefix_bytes,
                                    const char *suffix, tokmap_error *err);

/* ---- flush.c ---- */

/* Adds token bytes that are in the token file, or about to be written there, to the checksums of
 * their blocks and to the hash of all tokens. */
tokmap_status tokmap_i_writer_hash(tokmap_writer *w, const void *data, size_t n_bytes,
                                   tokmap_error *err);
/* Waits for the threads, hashes the buffer, and writes it to the token file. */
tokmap_status tokmap_i_writer_flush(tokmap_writer *w, tokmap_error *err);
/* Does that with a buffer that reaches the end of its TOKMAP_I_WRITE_BYTES in the file. With
 * threads it is written later: w->buffer is another one then, and a failure is that of a later
 * call. */
tokmap_status tokmap_i_writer_pass_on(tokmap_writer *w, tokmap_error *err);
/* Ends the threads, whatever they have to do. */
void tokmap_i_writer_end_threads(tokmap_writer *w);
/* Makes the bytes written to the token file durable. */
tokmap_status tokmap_i_writer_sync(const tokmap_writer *w, tokmap_error *err);

/* ---- values.c, spans.c ---- */

/* Checks that the columns of a dataset match the columns of the writer, which adopts them if it has
 * no documents and no columns. */
tokmap_status tokmap_i_writer_fit_columns(tokmap_writer *w, const tokmap_dataset *ds,
                                          tokmap_error *err);
/* Adds the values of all documents of a dataset whose columns match, except of redacted documents.
 * The caller adds the rest. */
tokmap_status tokmap_i_writer_append_values(tokmap_writer *w, tokmap_i_index_reader *reader,
                                            const uint64_t *redacted, tokmap_error *err);
/* The same as tokmap_writer_add_span, without enter and leave. */
tokmap_status tokmap_i_writer_add_span(tokmap_writer *w, const tokmap_span *span,
                                       tokmap_error *err);
/* Ends the current document at this token: writes its spans to the index. */
tokmap_status tokmap_i_writer_end_spans(tokmap_writer *w, uint64_t end, tokmap_error *err);
/* Ends the next document at token `end`, with the values and spans that were added. */
tokmap_status tokmap_i_writer_document(tokmap_writer *w, uint64_t end, tokmap_error *err);

/* ---- checkpoint.c ---- */

/* Looks for an unfinished dataset and resumes it at the wanted checkpoint. The token file stays
 * closed if there is none that can be resumed. The lock is held. */
tokmap_status tokmap_i_writer_resume(tokmap_writer *w, tokmap_error *err);
/* Returns TOKMAP_ERR_EXISTS if there is a dataset that can be resumed. The lock is held. */
tokmap_status tokmap_i_writer_refuse_unfinished(const tokmap_writer *w, tokmap_error *err);

/* ---- append.c: adds a dataset to the output: merging, joining, copying and redacting ---- */

typedef struct tokmap_i_append {
    tokmap_writer *w;
    const tokmap_dataset *ds;
    bool continues_input;     /* the first input continues the last input so far */
    const uint64_t *redacted; /* documents, in order, then UINT64_MAX; NULL: none is redacted */
    tokmap_i_index_reader reader;
    uint64_t first_document, first_token; /* where the dataset begins in the output */
    uint8_t *checksums;                   /* checksums of its blocks, as stored */
    uint64_t checksums_bytes;
    tokmap_i_spans spans; /* its section of spans, in memory */
    tokmap_i_span_cursor span_at;
    tokmap_span next;
    bool has_next;
    bool cannot_copy;    /* the file system has refused to copy */
    uint64_t n_reported; /* documents in the progress */
    tokmap_i_progress progress;
} tokmap_i_append;

/* The work of the caller's call: bytes of tokens, and 8 for each document of the dataset. */
tokmap_i_progress tokmap_i_writer_progress(const tokmap_writer *w, uint64_t n_bytes,
                                           uint64_t n_documents);
/* Checks that the dataset matches the output, and reads the checksums. The caller has set the
 * fields before `reader` and the progress, and zeroed the rest. Close it in any case. */
tokmap_status tokmap_i_append_open(tokmap_i_append *a, tokmap_error *err);
/* Adds the documents, with their values, and the inputs. The tokens have been added. */
tokmap_status tokmap_i_append_index(tokmap_i_append *a, tokmap_error *err);
void tokmap_i_append_close(tokmap_i_append *a);
/* States that the next tokens of a joined output are in this file. */
tokmap_status tokmap_i_append_segment(tokmap_writer *w, const tokmap_i_token_file *file,
                                      tokmap_error *err);
/* Reads a whole block of tokens, and compares its checksum. */
tokmap_status tokmap_i_append_read_block(const tokmap_dataset *ds, uint64_t block,
                                         uint64_t checksum, uint8_t *dst, tokmap_error *err);
