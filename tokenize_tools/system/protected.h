/* SPDX-License-Identifier: Apache-2.0 */
/* protected.h - protects files that are read from being written.
 *
 * A command names the files that it reads; then no output may be one of them, under any name, or
 * take its name. */
#pragma once

#include "system/files.h"
#include "tokmap.h"

/* what: "an input". Only regular files are protected. CLI_OK, or CLI_AGAIN with a message. */
int path_protect(const file_facts *facts, const char *what);
/* The same by name, - for stdin; ignores a name that does not exist. */
int path_protect_name(const char *path, const char *what);
/* Protects all files of an input that is a dataset. */
int path_protect_dataset(const tokmap_dataset *ds);
/* CLI_USAGE with a message if the path leads to a protected file. */
int path_check_output(const char *path);
/* The same for all files of the dataset `prefix`, including its temporary files. */
int path_check_dataset(const char *prefix);
/* The same for stdout. */
int path_check_stdout(void);
