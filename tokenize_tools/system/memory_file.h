/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file.h - a FILE that writes into memory, for texts of unknown length.
 *
 * Used instead of open_memstream, which drops part of the text when memory is short, without an
 * error from ferror or fclose. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct memory_file {
    char *text; /* malloced; a 0 follows its n_bytes */
    size_t n_bytes, capacity;
} memory_file;

/* Opens a file; m must stay valid until it is closed. NULL: out of memory. */
FILE *memory_file_open(memory_file *m);
/* Closes the file. Returns whether everything was written; if not, m->text is freed and NULL. */
bool memory_file_close(FILE *f, memory_file *m);
