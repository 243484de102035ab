/* SPDX-License-Identifier: Apache-2.0 */
/* index_reader.h - reads and checks an index file without its map, so that a failing disk is an
 * error and not SIGBUS: whole sections, their checksums, and documents group by group. */
#pragma once

#include "base/progress.h"
#include "dataset/token_files.h"

typedef struct tokmap_i_index_reader {
    const tokmap_dataset *ds;
    tokmap_i_named_file file;
    uint8_t *buffer; /* TOKMAP_I_READER_BUFFER_BYTES */
} tokmap_i_index_reader;

#define TOKMAP_I_READER_BUFFER_BYTES (1 << 20)

tokmap_status tokmap_i_index_reader_open(tokmap_i_index_reader *r, const tokmap_dataset *ds,
                                         tokmap_error *err);
void tokmap_i_index_reader_close(tokmap_i_index_reader *r);

/* The bytes from `begin` to `end` of a file. */
typedef struct tokmap_i_file_range {
    tokmap_i_named_file file;
    uint64_t begin, end;
} tokmap_i_file_range;
/* Computes the checksum of these bytes. buffer: TOKMAP_I_READER_BUFFER_BYTES. progress: in bytes,
 * or NULL. */
tokmap_status tokmap_i_read_checksum(tokmap_i_file_range range, uint8_t *buffer, uint64_t *checksum,
                                     tokmap_i_progress *progress, tokmap_error *err);
/* Compares the section with its checksum: TOKMAP_ERR_CORRUPT if they differ. */
tokmap_status tokmap_i_index_reader_checksum(tokmap_i_index_reader *r,
                                             const tokmap_i_section *section, tokmap_error *err);
/* The same as tokmap_i_index_reader_checksum, but without a reader: by the descriptor that the
 * dataset keeps, so it is the index that was opened also if another one has its name now. */
tokmap_status tokmap_i_check_section(const tokmap_dataset *ds, uint32_t kind,
                                     tokmap_i_progress *progress, tokmap_error *err);
/* Reads a whole section into new memory (at most the size of the file); the caller frees it. */
tokmap_status tokmap_i_index_reader_load(tokmap_i_index_reader *r, const tokmap_i_section *section,
                                         uint8_t **out, tokmap_error *err);

/* Receives where the documents of a group end, counted from the first token of the dataset. */
typedef tokmap_status tokmap_i_use_ends(void *context, const uint64_t *ends, uint32_t n_ends,
                                        tokmap_error *err);
tokmap_status tokmap_i_index_reader_documents(tokmap_i_index_reader *r, tokmap_i_use_ends *use,
                                              void *context, tokmap_error *err);

/* A column in a file: its parts are counted from byte `offset`. */
typedef struct tokmap_i_stored_column {
    tokmap_i_named_file file;
    uint64_t offset;
    const tokmap_i_meta_column *column;
    uint64_t n_documents;
    uint8_t *buffer;             /* TOKMAP_I_READER_BUFFER_BYTES */
    tokmap_i_progress *progress; /* in bytes, or NULL */
} tokmap_i_stored_column;
/* Reads a column and checks what the format requires of it. *end: where the bytes before it end; it
 * becomes the end of its last part. */
tokmap_status tokmap_i_verify_column(const tokmap_i_stored_column *at, uint64_t *end,
                                     tokmap_error *err);
/* Reads all values of documents and checks what the format requires of them. Open has checked the
 * directory. */
tokmap_status tokmap_i_verify_meta(tokmap_i_index_reader *r, tokmap_error *err);
