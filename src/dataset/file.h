/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - opens and reads a file of a dataset, and says what is wrong with it. */
#pragma once

#include "dataset/dataset.h"

/* An open file and its name for messages. */
typedef struct tokmap_i_named_file {
    int fd;
    const char *name;
} tokmap_i_named_file;

tokmap_status tokmap_i_read_exactly(tokmap_i_named_file file, uint64_t offset, size_t n_bytes,
                                    void *dst, tokmap_error *err);

/* Fails a read that stopped at byte `at`. error: an errno value, or 0 if the file ends there. */
tokmap_status tokmap_i_fail_read(tokmap_i_named_file file, int error, uint64_t at,
                                 tokmap_error *err);

/* Consecutive tokens in one file. */
typedef struct tokmap_i_token_piece {
    tokmap_i_token_file *file;
    uint64_t first_token, n_tokens; /* counted in the dataset */
    uint64_t first_byte, n_bytes;   /* counted in the file */
} tokmap_i_token_piece;

/* Returns the size that the file must have. */
static inline uint64_t tokmap_i_token_file_bytes(const tokmap_dataset *ds,
                                                 const tokmap_i_token_file *file)
{
    return file->token_offset + file->n_tokens * ds->header.token_bytes;
}

/* Opens a regular file for reading: the part of the path after folder_bytes, from an open folder.
 * Close it after a failure too. */
tokmap_status tokmap_i_open_file_in(int folder_fd, const char *path, size_t folder_bytes, int *fd,
                                    tokmap_i_file_stat *stat, tokmap_error *err);
/* Opens a regular file for reading by its path. */
tokmap_status tokmap_i_open_file(const char *path, int *fd, tokmap_i_file_stat *stat,
                                 tokmap_error *err);
/* Returns TOKMAP_ERR_CORRUPT unless the file has the size that it must have. */
tokmap_status tokmap_i_token_file_check(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                        const tokmap_i_file_stat *stat, tokmap_error *err);
