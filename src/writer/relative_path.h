/* SPDX-License-Identifier: Apache-2.0 */
/* relative_path.h - makes paths of files relative to one folder, so that all of them can be moved
 * or mounted elsewhere together. */
#pragma once

#include "tokmap.h"

typedef struct tokmap_i_relative_path {
    char *base; /* the folder, without links; set by the caller, the rest is zeroed */
    /* of the last file: its folder as it was given, and the way there, "" or ending with "/" */
    char *folder, *way;
} tokmap_i_relative_path;

/* Finds the folder of the file `path`, in the form of `base`; the caller frees it. */
tokmap_status tokmap_i_find_folder(const char *path, char **real, tokmap_error *err);
/* Makes the path of the file `path` from the base; the caller frees it. Only the folder of the file
 * must exist. The folder is resolved only if it is not the folder of the last call. */
tokmap_status tokmap_i_relative_path_name(tokmap_i_relative_path *r, const char *path, char **out,
                                          tokmap_error *err);
void tokmap_i_relative_path_close(tokmap_i_relative_path *r);

/* Returns the way from one folder to another. Both are absolute, without links, "." and "..". The
 * caller frees it. NULL: out of memory. */
char *tokmap_i_relative_way(const char *from, const char *to);
