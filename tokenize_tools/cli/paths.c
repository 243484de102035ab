/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paths.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char *const path_dataset_suffixes[PATH_N_DATASET_SUFFIXES] = {
    ".bin",         ".tmi",         ".bin.partial",  ".tmi.partial",
    ".tmv.partial", ".tmj.partial", ".bin.replaced", ".tmi.replaced",
};

bool path_ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

path_text path_of(const char *prefix, const char *suffix)
{
    path_text path;
    snprintf(path.s, sizeof path.s, "%s%s", prefix, suffix);
    return path;
}

static bool is_folder_name(const char *path)
{
    const char *base = path_last_part(path);
    return !*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
}

int path_check_all(char **paths, int n_paths)
{
    for (int i = 0; i < n_paths; i++) {
        if (!*paths[i])
            return cli_usage("the path of a file is empty");
        if (is_folder_name(paths[i]))
            return cli_usage("%s: names a folder, not a file", paths[i]);
    }
    return CLI_OK;
}

path_text path_prefix(const char *name)
{
    path_text path = path_of(name, "");
    if (path_ends_with(path.s, ".tmi") || path_ends_with(path.s, ".bin"))
        path.s[strlen(path.s) - 4] = '\0';
    return path;
}

const char *path_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

path_text path_beside(const char *path, const char *name)
{
    path_text beside;
    const int n_folder = (int)(path_last_part(path) - path);
    snprintf(beside.s, sizeof beside.s, "%.*s%s", n_folder, path, name);
    return beside;
}

int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix)
{
    size_t n = strlen(output);
    if (path_ends_with(output, ".bin") || path_ends_with(output, suffix))
        n -= 4;
    if (n >= PATH_PREFIX_BYTES)
        return cli_usage("-o: the path is too long");
    memcpy(prefix, output, n);
    prefix[n] = '\0';
    if (is_folder_name(prefix))
        return cli_usage("-o %s: names a folder, not a file", output);
    return CLI_OK;
}
