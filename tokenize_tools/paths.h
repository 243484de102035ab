/* paths.h - names of files on the command line: what they mean, and whether two of them are one
 * file. */
#ifndef TOKMAP_PATHS_H
#define TOKMAP_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* With room for the longest suffix that is put behind a prefix. */
#define PATH_PREFIX_BYTES (4096 - 32)

/* Whether something stands before the suffix too. */
bool path_ends_with(const char *path, const char *suffix);
bool path_is_file(const char *path, const struct stat *st);

/* A path that is empty or can only be a folder names no file: CLI_USAGE with a message, else
 * CLI_OK. */
int path_check_all(char **paths, int n_paths);

/* The prefix that -o means: `output` without .bin or `suffix`, as tokmap_writer_open takes it.
 * CLI_USAGE with a message when it names no file. */
int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix);

/* CLI_USAGE with a message when writing the dataset `prefix` would replace or take over the input
 * `st`, which would be lost then. */
int path_check_apart(const struct stat *st, const char *prefix);

#endif /* TOKMAP_PATHS_H */
