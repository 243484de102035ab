/* paths.h - names of files on the command line: what they mean, and whether two of them are one
 * file. */
#ifndef TOKMAP_PATHS_H
#define TOKMAP_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "tokmap.h"

/* With room for the longest suffix that is put behind a prefix. */
#define PATH_PREFIX_BYTES (4096 - 32)

/* Whether something stands before the suffix too. */
bool path_ends_with(const char *path, const char *suffix);
bool path_is_file(const char *path, const struct stat *st);

/* A path that is empty or can only be a folder names no file: CLI_USAGE with a message, else
 * CLI_OK. */
int path_check_all(char **paths, int n_paths);

/* How long the prefix P is in the name of a dataset, which may be P, P.bin or P.tmi. */
int path_prefix_bytes(const char *name);

/* The prefix that -o means: `output` without .bin or `suffix`, as tokmap_writer_open takes it.
 * CLI_USAGE with a message when it names no file. */
int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix);

/* ---- What is read is not written ----
 *
 * A command names the files that it reads; then no output may be one of them, by whatever name,
 * nor take its name. */

/* what: "an input". Only regular files count. CLI_OK, or CLI_AGAIN with a message. */
int path_protect(const struct stat *st, const char *what);
/* The same by its name, - for stdin; one that is not there is no harm. */
int path_protect_name(const char *path, const char *what);
/* Both files of an input that is a dataset. */
int path_protect_dataset(const tokmap_dataset_info *info);
/* CLI_USAGE with a message when the path leads to a protected file. */
int path_check_output(const char *path);
/* The same for all files of the dataset `prefix`, those that are only there while it is written
 * too. */
int path_check_dataset(const char *prefix);
/* The same for stdout. */
int path_check_stdout(void);

/* The suffixes of those files. */
#define PATH_N_DATASET_SUFFIXES 7
extern const char *const path_dataset_suffixes[PATH_N_DATASET_SUFFIXES];

#endif /* TOKMAP_PATHS_H */
