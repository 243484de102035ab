/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - names of files on the command line: what they mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Leaves room for the longest suffix that is added to a prefix. */
#define PATH_PREFIX_BYTES (4096 - 32)

/* False if there is nothing before the suffix. */
bool path_ends_with(const char *path, const char *suffix);

/* A name that is made of two parts, where it is used: path_of(prefix, ".tmi").s */
typedef struct path_text {
    char s[PATH_PREFIX_BYTES + 64];
} path_text;
path_text path_of(const char *prefix, const char *suffix);

/* What follows the last slash. */
const char *path_last_part(const char *path);
/* A name that is counted from the folder of `path`. */
path_text path_beside(const char *path, const char *name);

/* A path that is empty or can only be a folder names no file: CLI_USAGE with a message, else
 * CLI_OK. */
int path_check_all(char **paths, int n_paths);

/* The prefix P in the name of a dataset, which may be P, P.bin or P.tmi. */
path_text path_prefix(const char *name);

/* The prefix that -o means: `output` without .bin or `suffix`, as tokmap_writer_open takes it.
 * CLI_USAGE with a message if it does not name a file. */
int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix);

/* The suffixes of all files of a dataset: first those that stay, then those that only exist while
 * it is written. */
#define PATH_N_LASTING_SUFFIXES 2
#define PATH_N_DATASET_SUFFIXES 8
extern const char *const path_dataset_suffixes[PATH_N_DATASET_SUFFIXES];
