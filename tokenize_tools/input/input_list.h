/* SPDX-License-Identifier: Apache-2.0 */
/* input_list.h - expands the INPUT arguments of a command, in a documented order.
 *
 * A file is itself, and `-` is stdin. A folder stands for all files in it and below, in natural
 * order: names are compared as bytes, and runs of digits in them as numbers, so that shard-2 comes
 * before shard-10. Links are followed. Left out and reported are names that begin with a dot, files
 * that only describe data, by their names (docs/man/tokmap-pack.1 lists them), files whose names
 * end in .partial, anything that is neither a file nor a folder, and folders that links lead to a
 * second time. Of a dataset in the cache of the Hugging Face Hub one snapshot is taken, which is
 * reported. An argument that does not exist and has *, ? or [ in it is a pattern as for glob(3);
 * its matches are taken in natural order. A part ** of it is any number of folders, also none: the
 * folders of which a given folder would be listed. After it only files match the last part, and as
 * the last part it is all files of the folders before it. What may match and cannot be looked at is
 * an error: a folder without permission, a link whose target is missing. A filter with patterns to
 * include takes of a folder what matches one, also a name that begins with a dot and a file that
 * only describes data. `@FILE` stands for the
 * arguments in FILE, one on each line, without blank lines and carriage returns at the ends of
 * lines; in it, a name may begin with @ or -. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "input/name_filter.h"
#include "system/files.h"

typedef struct input_list { /* start with {0} and the callback; input_list_free frees it */
    char **names;
    size_t n_names;
    void (*report)(void *context, const char *text); /* a line about what was left out; may be
                                                        NULL */
    bool (*needs_no_file)(void *context, const char *name); /* may be NULL */
    /* Appends what a name hf://... stands for; may be NULL, if such names are refused. */
    bool (*find_in_hub)(struct input_list *list, const char *name, failure *err);
    char *commits; /* which commits the names hf://... meant so far; NULL: none yet */
    void *context;
    const name_filter *filter; /* of what is in a folder; NULL: all */
    bool may_match_nothing;    /* a pattern; *err then says so, but the call succeeds */
} input_list;

/* Appends a name that was malloced, and frees it if that fails. NULL: out of memory. */
bool input_list_append(input_list *list, char *name, failure *err);
/* What a name is, and what it leads to. */
typedef struct input_described {
    int name_errno, sys_errno;
    file_facts facts; /* of what it leads to */
} input_described;
/* Describes all names at the same time, because each waits for a file system. The caller frees the
 * result; NULL: out of memory. */
input_described *input_describe_all(char *const *names, size_t n);
/* Appends the names that arg stands for; `known`: what it is, or NULL. On failure sets *err and
 * leaves the list unchanged. */
bool input_list_expand(input_list *list, const char *arg, const input_described *known,
                       failure *err);
void input_list_free(input_list *list);
/* In natural order: the names from number `first` on. */
void input_list_sort(input_list *list, size_t first);

/* Compares two paths in natural order: < 0, 0, > 0. The files of a folder come before its
 * neighbours. */
int input_list_compare(const char *a, const char *b);
