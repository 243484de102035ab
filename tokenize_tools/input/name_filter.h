/* SPDX-License-Identifier: Apache-2.0 */
/* name_filter.h - which files of a folder are wanted, by patterns like those of gitignore; pure.
 *
 * A pattern is compared with the path of a file or folder below the folder that was given. Without
 * a slash, or with one at its end only, it is compared with the last part of the path. A slash at
 * its end: only folders match. Else its parts are compared with those of the path from the first
 * one on, and ** stands for any number of parts: none or more, at its end one or more. In a part,
 * *, ? and [...] are as for fnmatch(3), without [= and [., and do not spare a leading dot. What is
 * in a folder that matches, matches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct name_patterns {
    const char **list; /* this and the next one are owned by the caller */
    bool *has_matched; /* of each pattern, whether it has matched a path */
    size_t n;
} name_patterns;

typedef struct name_filter {
    name_patterns include; /* none: all names */
    name_patterns exclude; /* wins */
} name_filter;

/* Appends a pattern, which is kept, unless it means nothing. *err then says why. */
bool name_patterns_add(name_patterns *patterns, const char *pattern, failure *err);
/* Whether one of them matches this path itself, which does not begin or end with a slash; notes
 * which of them do. */
bool name_patterns_match(const name_patterns *patterns, const char *path, bool is_folder);
/* A checksum that is the same for two folders if the patterns match the same names below both; ""
 * is the folder that was given. */
uint64_t name_filter_below(const name_filter *filter, const char *folder);
