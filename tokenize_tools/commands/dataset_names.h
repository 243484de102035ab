/* SPDX-License-Identifier: Apache-2.0 */
/* dataset_names.h - the datasets, or the token files, that the arguments of a command name. */
#ifndef TOKMAP_DATASET_NAMES_H
#define TOKMAP_DATASET_NAMES_H

#include <stddef.h>

typedef struct dataset_names { /* {0} */
    char **paths;
    size_t n;
} dataset_names;

/* An argument is a name, or a pattern for glob(3) when nothing has that name: 'data/shard-*'. A
 * pattern of datasets matches only indexes, whether or not it ends in .tmi.
 * CLI_OK, or an exit code with a message: an empty name, a folder, no match. */
int dataset_names_expand(dataset_names *names, char **arguments, int n_arguments);
/* CLI_DATASET with a message if a pattern that does not end in .tmi matches tokens without an
 * index: an unfinished dataset would be missing. */
int dataset_names_check(char **arguments, int n_arguments);
/* The same for token files: a pattern stands for everything that it matches. */
int token_file_names_expand(dataset_names *names, char **arguments, int n_arguments);
void dataset_names_free(dataset_names *names);

#endif /* TOKMAP_DATASET_NAMES_H */
