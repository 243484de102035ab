/* SPDX-License-Identifier: Apache-2.0 */
/* column_add.h - adds columns of values from files to a dataset, row by row or by a key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

typedef struct column_add_options {
    const char *key;          /* a column of the dataset and a field of the files; NULL: row i is
                             document i */
    const char *fields;       /* a list as for --meta; NULL: all */
    uint64_t memory;          /* for the table of keys */
    uint32_t missing_is_null; /* documents without a row are null */
    const char **text_fields; /* that are strings in CSV and TSV; owned by the caller */
    size_t n_text_fields;
    bool force, quiet;
} column_add_options;

/* Adds the fields of the files, which are read one after another. Prints the columns. Returns
 * CLI_OK, or an exit code with a message. */
int column_add(const tokmap_dataset *ds, char *const *files, size_t n_files,
               const column_add_options *options);
