/* SPDX-License-Identifier: Apache-2.0 */
/* relative_path.h - names files by their paths from one folder, so that all of them can be moved or
 * mounted elsewhere together. */
#pragma once

#include "tokmap.h"

typedef struct tokmap_i_relative_path {
    char *base;         /* the folder, without links; set by the caller, the rest is zeroed */
    char *folder, *way; /* of the last file: its folder as it was given; the way there, "" or with a
                           "/" at the end */
} tokmap_i_relative_path;

/* The folder of the file `path`, as `base` is; the caller frees it. */
tokmap_status tokmap_i_find_folder(const char *path, char **real, tokmap_error *err);
/* The path of the file `path` from the base; the caller frees it. Only the folder of the file must
 * exist. It is looked up only if it is another one than in the last call. */
tokmap_status tokmap_i_relative_path_name(tokmap_i_relative_path *r, const char *path, char **out,
                                          tokmap_error *err);
void tokmap_i_relative_path_close(tokmap_i_relative_path *r);

/* The way from one folder to another; both are absolute, without links, "." and "..". The caller
 * frees it. NULL: out of memory. */
char *tokmap_i_relative_way(const char *from, const char *to);
