/* SPDX-License-Identifier: Apache-2.0 */
/* regular_file.h - a regular file as foreign_bytes: reads return errors, and there is no map that
 * could raise signals. */
#ifndef TOKMAP_REGULAR_FILE_H
#define TOKMAP_REGULAR_FILE_H

#include "foreign/foreign.h"
#include "system/files.h"

typedef struct regular_file {
    char path[4096];
    int fd;        /* -1: not open */
    int sys_errno; /* of the last failed read; 0: the file was truncated */
    file_facts opened;
    foreign_bytes bytes;
} regular_file;

/* Sets the path to path without its last n_drop bytes, plus suffix. False: it is too long. */
bool regular_file_path(regular_file *file, const char *path, size_t n_drop, const char *suffix);
/* Opens file->path. On failure prints the error and returns an exit code. The struct must not be
 * moved afterwards. */
int regular_file_open(regular_file *file);
/* Checks that the file was not modified since it was opened; otherwise prints the error and returns
 * an exit code. Accepts a file that is not open. */
int regular_file_check(const regular_file *file);
/* Whether file->path exists. */
bool regular_file_exists(const regular_file *file);
/* Reads up to FOREIGN_HEAD_BYTES from the start; false: it cannot be read. */
bool regular_file_head(const regular_file *file, uint8_t *head, size_t *n_head, failure *err);
void regular_file_close(regular_file *file);

#endif /* TOKMAP_REGULAR_FILE_H */
