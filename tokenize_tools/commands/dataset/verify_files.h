/* SPDX-License-Identifier: Apache-2.0 */
/* verify_files.h - the names of the files of a dataset that must be copied again, as programs that
 * copy files take them: one a line, relative to the folder of the dataset. */
#pragma once

#include <stdbool.h>

#include "tokmap.h"

typedef struct verify_files_options {
    tokmap_verify_options verify; /* without callbacks */
    bool quiet;                   /* prints only names */
} verify_files_options;

/* Checks the index, the token files, and the late columns, views and lanes beside them. Prints the
 * names of those that are missing or damaged to stdout, token files first, the index last; and a
 * message about each to stderr. ds: opened by tokmap_dataset_open_index. Returns CLI_DATASET if it
 * printed a name. */
int verify_files(const tokmap_dataset *ds, const verify_files_options *options);
/* Prints the name of the index of a dataset that cannot be opened because of `err`, and returns
 * CLI_DATASET. Prints nothing, and returns CLI_OK, if another copy of the index would not help. */
int verify_files_without_index(const char *path, const tokmap_error *err);
