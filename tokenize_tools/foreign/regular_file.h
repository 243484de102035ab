/* regular_file.h - a regular file as foreign_bytes: reads return errors, no map that could raise
 * signals. */
#ifndef TOKMAP_REGULAR_FILE_H
#define TOKMAP_REGULAR_FILE_H

#include "foreign/foreign.h"
#include "system/files.h"

typedef struct regular_file {
    char path[4096];
    int fd;        /* -1: not open */
    int sys_errno; /* of the last failed read; 0 when the file became shorter */
    file_facts opened;
    foreign_bytes bytes;
} regular_file;

/* path and suffix, without the last n_drop bytes of path. False when that is too long. */
bool regular_file_path(regular_file *file, const char *path, size_t n_drop, const char *suffix);
/* Opens file->path. Prints a message and returns an exit code when it cannot; must not move
 * then. */
int regular_file_open(regular_file *file);
/* Whether nobody has written to the file since it was opened; else prints a message and returns an
 * exit code. A file that is not open is unchanged. */
int regular_file_check(const regular_file *file);
/* Whether file->path is there. */
bool regular_file_exists(const regular_file *file);
/* Reads what there is of the first FOREIGN_HEAD_BYTES; false when it cannot be read. */
bool regular_file_head(const regular_file *file, uint8_t *head, size_t *n_head, foreign_error *err);
void regular_file_close(regular_file *file);

#endif /* TOKMAP_REGULAR_FILE_H */
