/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/relative_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "system/platform.h"

/* Counts the bytes that the two have in common, up to the end of a name. "/" is a folder without
 * names. */
static size_t common_bytes(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0;; i++) {
        const bool a_ends = a[i] == 0 || a[i] == '/', b_ends = b[i] == 0 || b[i] == '/';
        if (a_ends && b_ends)
            common = i;
        if (a[i] != b[i] || a[i] == 0)
            return common;
    }
}

char *tokmap_i_relative_way(const char *from, const char *to)
{
    from += strcmp(from, "/") == 0; /* so that each name comes after a slash */
    to += strcmp(to, "/") == 0;
    const size_t common = common_bytes(from, to);
    const char *down = to + common;
    size_t n_up = 0;
    for (const char *p = from + common; *p; p++)
        n_up += *p == '/';
    char *way = malloc(3 * n_up + strlen(down) + 2);
    if (!way)
        return NULL;
    char *end = way;
    for (size_t i = 0; i < n_up; i++, end += 3)
        memcpy(end, "../", 3);
    *end = 0;
    if (*down) {
        strcpy(end, down + 1);
        strcat(end, "/");
    }
    return way;
}

tokmap_status tokmap_i_find_folder(const char *path, char **real, tokmap_error *err)
{
    const int error = tokmap_i_folder_resolve(path, real);
    if (error == ENOMEM)
        return FAIL_MEMORY(err);
    return CHECK_IO(err, error, "%s: cannot find its folder", path);
}

tokmap_status tokmap_i_relative_path_name(tokmap_i_relative_path *r, const char *path, char **out,
                                          tokmap_error *err)
{
    const char *name = name_in_path(path);
    const size_t folder_bytes = (size_t)(name - path);
    if (!r->folder || !r->way || strlen(r->folder) != folder_bytes ||
        memcmp(r->folder, path, folder_bytes) != 0) {
        char *real;
        const tokmap_status status = tokmap_i_find_folder(path, &real, err);
        if (status)
            return status;
        free(r->way);
        free(r->folder);
        r->way = tokmap_i_relative_way(r->base, real);
        r->folder = strndup(path, folder_bytes);
        free(real);
    }
    if (!r->way || !r->folder || asprintf(out, "%s%s", r->way, name) < 0)
        return FAIL_MEMORY(err);
    return TOKMAP_OK;
}

void tokmap_i_relative_path_close(tokmap_i_relative_path *r)
{
    free(r->base);
    free(r->folder);
    free(r->way);
}
