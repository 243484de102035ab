/* SPDX-License-Identifier: Apache-2.0 */
/* side_file.h - writes a file beside a dataset, such as its rows, that is complete or absent. An
 * older one stays until the new one is complete.
 *
 * It is written under its name and .partial, whose lock excludes a second writer. */
#pragma once

#include <stdbool.h>

#include "tokmap.h"

typedef struct tokmap_i_side_file {
    int fd;        /* -1: not open */
    char *partial; /* its name while it is written */
    char *path;
    bool is_locked;
} tokmap_i_side_file;

/* Opens an empty file. magic: how a file begins that may be replaced; `what`: what such a file is,
 * for messages. TOKMAP_ERR_EXISTS: there is another file. TOKMAP_ERR_LOCKED: another process is
 * writing it. Close it after a failure too. */
tokmap_status tokmap_i_side_file_open(tokmap_i_side_file *f, const char *path,
                                      const uint8_t magic[8], const char *what, tokmap_error *err);
/* Flushes the file and gives it its name, in place of an older one. */
tokmap_status tokmap_i_side_file_finish(tokmap_i_side_file *f, tokmap_error *err);
/* Removes the file unless it is finished. */
void tokmap_i_side_file_close(tokmap_i_side_file *f);
/* Returns "P.NAME" for a dataset P, with room for what `name` says; the caller frees it. NULL: out
 * of memory. */
char *tokmap_i_side_path(const tokmap_dataset *ds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
