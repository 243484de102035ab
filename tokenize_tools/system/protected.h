/* SPDX-License-Identifier: Apache-2.0 */
/* protected.h - protects files that are read from being written.
 *
 * A command names the files that it reads; then no output may be one of them, under any name, or
 * take its name. */
#pragma once

#include "system/files.h"
#include "tokmap.h"

/* Protects a file, if it is a regular one. what: "an input". Returns CLI_OK, or CLI_AGAIN with a
 * message. */
int path_protect(const file_facts *facts, const char *what);
/* The same as path_protect, but by name, where - is stdin; ignores a name that does not exist. */
int path_protect_name(const char *path, const char *what);
/* Protects all files of an input that is a dataset. */
int path_protect_dataset(const tokmap_dataset *ds);
/* Returns CLI_USAGE with a message if the path leads to a protected file. */
int path_check_output(const char *path);
/* The same as path_check_output, but checks all files of the dataset `prefix`, including temporary
 * ones. */
int path_check_dataset(const char *prefix);
/* The same as path_check_output, but checks stdout. */
int path_check_stdout(void);
