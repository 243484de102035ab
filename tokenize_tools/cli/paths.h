/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - what the names of files on the command line mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The size of a prefix, which leaves room for the longest suffix. */
#define PATH_PREFIX_BYTES (4096 - 32)

/* Whether the path ends with the suffix and has something before it. */
bool path_ends_with(const char *path, const char *suffix);

/* A path that is used where it is made: path_of(prefix, ".tmi").s */
typedef struct path_text {
    char s[PATH_PREFIX_BYTES + 64];
} path_text;
path_text path_of(const char *prefix, const char *suffix);

/* Returns what follows the last slash. */
const char *path_last_part(const char *path);
/* Returns the path of a name in the folder of `path`. */
path_text path_beside(const char *path, const char *name);

/* Refuses paths that are empty or can only be a folder: CLI_USAGE with a message, else CLI_OK. */
int path_check_all(char **paths, int n_paths);

/* Returns the prefix P of a dataset that is named as P, P.bin or P.tmi. */
path_text path_prefix(const char *name);

/* Finds the prefix that -o means: `output` without .bin or `suffix`, as tokmap_writer_open takes
 * it. Returns CLI_USAGE with a message if it does not name a file. */
int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix);

/* The suffixes of all files of a dataset: first of the files that stay, then of those that only
 * exist while it is written. */
#define PATH_N_LASTING_SUFFIXES 2
#define PATH_N_DATASET_SUFFIXES 8
extern const char *const path_dataset_suffixes[PATH_N_DATASET_SUFFIXES];
