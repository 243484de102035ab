/* SPDX-License-Identifier: Apache-2.0 */
/* index_writer.h - an index file that is being written: the ends of documents go to the file as
 * they come, everything else is kept in memory until sections.h writes it.
 *
 * The file is P.tmi.partial. Its lock excludes a second writer of P. */
#pragma once

#include "base/array.h"
#include "base/hash.h"
#include "base/progress.h"
#include "format/document_index.h"
#include "format/format.h"
#include "format/input_table.h"
#include "format/journal_record.h"
#include "writer/meta_writer.h"
#include "tokmap.h"

typedef struct tokmap_i_index_writer {
    const char *path; /* owned by the caller */
    int fd;
    uint8_t *out; /* bytes that are not written yet */
    size_t out_used;
    size_t out_hashed;                             /* bytes of `out` that the hasher has */
    uint64_t written;                              /* bytes of the file before `out` */
    tokmap_i_hasher *hasher;                       /* of the current section */
    uint64_t group_ends[TOKMAP_I_GROUP_DOCUMENTS]; /* as stored in a checkpoint */
    uint32_t n_in_group;
    uint64_t group_start, last_end, n_documents;
    tokmap_i_content_hash documents_hash; /* of the lengths in full groups */
    tokmap_i_bytes wide_ends;             /* as stored */
    tokmap_i_bytes blocks;                /* checksums, u64 as stored */
    tokmap_i_bytes inputs;                /* entries as stored */
    tokmap_i_bytes names;
    /* The sections that the index will have. The caller sets these before the first document ends,
     * or before a resumed file is checked. */
    bool is_joined, has_spans;
    tokmap_i_meta_writer *meta;             /* NULL: documents have no values */
    tokmap_i_bytes segments, segment_names; /* as stored */
    tokmap_i_bytes spans;                   /* as in a journal */
    tokmap_i_progress *progress;            /* of finish: 8 bytes for each document; or NULL */
} tokmap_i_index_writer;

/* Opens the file of fd, which is closed even on failure. The file is empty, or the caller empties
 * it before anything is written, or it is resumed. */
tokmap_status tokmap_i_index_writer_open(tokmap_i_index_writer **out, const char *path, int fd,
                                         tokmap_error *err);
/* Ends the next document at token `end`, counted from the first token of the dataset. */
tokmap_status tokmap_i_index_writer_document(tokmap_i_index_writer *w, uint64_t end,
                                             tokmap_error *err);
/* Adds the checksum of the next block of tokens. */
tokmap_status tokmap_i_index_writer_block(tokmap_i_index_writer *w, uint64_t checksum,
                                          tokmap_error *err);
/* Adds the checksums of many blocks, as the format stores them. */
tokmap_status tokmap_i_index_writer_blocks(tokmap_i_index_writer *w, const uint8_t *checksums,
                                           size_t n_bytes, tokmap_error *err);
/* An input, which covers all documents and tokens since the previous one. */
typedef struct tokmap_i_new_input {
    const char *name;
    size_t name_bytes;
    tokmap_i_input_entry entry; /* without name_end */
} tokmap_i_new_input;
tokmap_status tokmap_i_index_writer_input(tokmap_i_index_writer *w, const tokmap_i_new_input *input,
                                          tokmap_error *err);
/* Extends the last input, which must exist, to the end of `input`; it keeps its name. The checksum
 * of the two together is not known. */
void tokmap_i_index_writer_extend_input(tokmap_i_index_writer *w, const tokmap_i_new_input *input);
/* Finds the name and the end of the last input. Returns false, and *out is empty, if there is
 * none. */
bool tokmap_i_index_writer_last_input(const tokmap_i_index_writer *w, tokmap_i_new_input *out);

/* Adds the next span, in order. */
tokmap_status tokmap_i_index_writer_span(tokmap_i_index_writer *w, const tokmap_span *span,
                                         tokmap_error *err);

/* Adds a segment: the next tokens, up to `end_token`, are in this file, whose path begins at the
 * folder of the index. TOKMAP_ERR_ARGUMENT: the path is too long, or there are too many
 * segments. */
tokmap_status tokmap_i_index_writer_segment(tokmap_i_index_writer *w, const char *name,
                                            uint64_t end_token, uint64_t token_offset,
                                            tokmap_error *err);

/* ---- Checkpoints ---- */

/* Makes all documents so far durable, and fills in the part of a checkpoint that the index knows:
 * everything except tokens, note and sequence. */
tokmap_status tokmap_i_index_writer_save(tokmap_i_index_writer *w, tokmap_i_checkpoint *now,
                                         tokmap_error *err);
/* Points all measured parts except the note to the newest data, valid until the next call. */
void tokmap_i_index_writer_tails(tokmap_i_index_writer *w, tokmap_i_record_parts *parts);
/* Restores one checkpoint; called for each in order. */
tokmap_status tokmap_i_index_writer_restore(tokmap_i_index_writer *w,
                                            const tokmap_i_checkpoint *now,
                                            const tokmap_i_record_parts *parts, tokmap_error *err);
/* Checks that the file matches the last restored checkpoint, without changing it. */
tokmap_status tokmap_i_index_writer_check(tokmap_i_index_writer *w, uint64_t ends_checksum,
                                          tokmap_error *err);
/* Cuts off what follows that checkpoint. */
tokmap_status tokmap_i_index_writer_cut(tokmap_i_index_writer *w, tokmap_error *err);

/* ---- For sections.c ---- */

enum {
    TOKMAP_I_READ_BACK_BYTES = 64 << 10 /* whole groups */
};

/* Whether the index has a section of this kind. */
bool tokmap_i_index_writer_has(const tokmap_i_index_writer *w, uint32_t kind);
/* Counts the sections that the index will have. */
uint32_t tokmap_i_index_writer_n_sections(const tokmap_i_index_writer *w);
/* Adds bytes to the section that is being written. */
tokmap_status tokmap_i_index_writer_put(tokmap_i_index_writer *w, const void *data, size_t n_bytes,
                                        tokmap_error *err);
/* Returns the checksum of the section that is being written. */
uint64_t tokmap_i_index_writer_checksum(tokmap_i_index_writer *w);
/* Writes the bytes that are not written yet. */
tokmap_status tokmap_i_index_writer_flush(tokmap_i_index_writer *w, tokmap_error *err);
/* Writes the last group of documents, even if it is not full, and flushes. */
tokmap_status tokmap_i_index_writer_end_groups(tokmap_i_index_writer *w, tokmap_error *err);
/* Reads back n_bytes of the groups of documents, from byte `at` of the first one on. */
tokmap_status tokmap_i_index_writer_read_back(const tokmap_i_index_writer *w, uint64_t at,
                                              uint8_t *dst, size_t n_bytes, tokmap_error *err);

/* Closes the file without removing it. */
void tokmap_i_index_writer_close(tokmap_i_index_writer *w);
