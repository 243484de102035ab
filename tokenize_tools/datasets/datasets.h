/* SPDX-License-Identifier: Apache-2.0 */
/* datasets.h - the datasets that the arguments of a command name: finds them, opens several that
 * fit together, prints the values of their documents, and suggests what to do if one does not
 * open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/paths.h"
#include "input/input_list.h"
#include "base/json_text.h"
#include "tokmap.h"

/* ---- Names: all return CLI_OK, or an exit code with a message ---- */

/* Appends the datasets that the arguments name to a list that begins as {0}; input_list_free frees
 * it. An argument is a name, or a pattern (input_list.h) if no file has that name: 'data/shard-*',
 * or 'data/' and two asterisks for everything below data. A pattern matches only indexes, whether
 * or not it ends in .tmi. It is an error if a name is empty or a folder, a pattern has no match, or
 * an argument is given twice. If several names lead to one index, the first one stays; files that
 * belong to another dataset of the list are left out (tokmap_dataset_choose_paths). quiet: prints
 * no notes on hidden names. */
int dataset_names_expand(input_list *names, char **arguments, int n_arguments, bool quiet);
/* The same as dataset_names_expand, but returns CLI_DATASET if a pattern that does not end in .tmi
 * matches tokens without an index: an unfinished dataset would be missing. */
int dataset_names_expand_all(input_list *names, char **arguments, int n_arguments, bool quiet);
/* Appends the only argument, which is a name and not a pattern. */
int dataset_names_take_one(input_list *names, char **arguments, int n_arguments, bool quiet);
/* The same as dataset_names_expand, but finds token files: a pattern stands for every file that it
 * matches. */
int token_file_names_expand(input_list *names, char **arguments, int n_arguments, bool quiet);

/* ---- Several open datasets that fit together, in the order given ---- */

typedef struct dataset_list {
    tokmap_dataset **datasets;
    size_t n;
} dataset_list;

/* Opens all datasets, of which there is at least one. It is an error if one cannot be opened, has
 * another token width or another known vocabulary than those before it, or is joined and uses the
 * file of another one. Returns an exit code, and prints the error; close the list in any case. */
int dataset_list_open(dataset_list *list, const input_list *names);
void dataset_list_close(dataset_list *list);

json_text_span dataset_metadata(const tokmap_dataset *ds);
/* Whether tokens have roles that the metadata may name: docs/FORMAT.md, section 3.9. */
bool dataset_has_roles(const tokmap_dataset *ds);
/* Finds the value of a key of the metadata. False if it has none; *value is then unchanged. */
bool dataset_metadata_find(const tokmap_dataset *ds, const char *key, json_text_span *value);

/* ---- What is left beside datasets, and datasets that do not open ---- */

/* Whether the dataset `path` is being written, or the run that wrote it was interrupted; prints a
 * message if so. */
bool report_unfinished(const char *path);
/* The same as cli_fail, but with a hint if the dataset `path` may be a file for `tokmap index`, or
 * is not yet complete. */
int report_open_failure(const char *path, const tokmap_error *err);

/* Finds the file of the tokenizer that made the dataset: one with the name and the checksum of the
 * metadata, in the current folder or beside the dataset. The path is "" if there is none. */
path_text dataset_find_tokenizer(const tokmap_dataset *ds);
/* Fails if another tokenizer than this one made the dataset. path: of its file; NULL: 'bytes'.
 * advice: "", or begins with a semicolon. */
int dataset_check_tokenizer(const tokmap_dataset *ds, const char *path, uint64_t file_xxh3,
                            const char *advice);
