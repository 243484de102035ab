/* SPDX-License-Identifier: Apache-2.0 */
#include "request/own_files.h"

#include <string.h>

#include "cli/paths.h"
#include "system/files.h"

/* Whether `suffix` is what follows P in the name of a list that --write-lists writes. */
static bool is_list_suffix(const char *suffix)
{
    static const char *const of_lists[] = {PACK_OF_TEXT PACK_LIST_SUFFIX,
                                           PACK_OF_RECORDS PACK_LIST_SUFFIX, PACK_LIST_SUFFIX};
    bool found = false;
    for (size_t i = 0; i < sizeof of_lists / sizeof *of_lists; i++)
        found |= strcmp(suffix, of_lists[i]) == 0;
    return found;
}

/* Whether `suffix` is what follows P, or P-NAME for a split, in the name of a file that a run
 * writes. */
static bool is_own_suffix(const char *suffix, const pack_options *options)
{
    for (size_t i = 0; i < options->n_splits && *suffix == '-'; i++) {
        size_t n = strlen(options->splits[i].name);
        if (strncmp(suffix + 1, options->splits[i].name, n) == 0 && suffix[1 + n] == '.')
            suffix += 1 + n;
    }
    bool found = strcmp(suffix, PACK_SKIPPED_SUFFIX ".partial") == 0;
    for (size_t i = 0; i < PATH_N_DATASET_SUFFIXES && !found; i++)
        found = strcmp(suffix, path_dataset_suffixes[i]) == 0;
    return found;
}

bool pack_is_in_cells(const char *name, const pack_options *options)
{
    return file_in_same_folder(name, path_of(options->cells_folder, "/x").s);
}

bool pack_is_own_file(const char *name, const pack_options *options)
{
    const bool of_plan = options->cells_folder != NULL;
    const char *output = of_plan ? options->output : options->prefix;
    const char *base = path_last_part(output), *last = path_last_part(name);
    if (of_plan && pack_is_in_cells(name, options))
        return true;
    if (strncmp(last, base, strlen(base)) != 0 || !file_in_same_folder(name, output))
        return false;
    const char *suffix = last + strlen(base);
    if (is_list_suffix(suffix))
        return true;
    return of_plan ? !*suffix || strcmp(suffix, ".partial") == 0 : is_own_suffix(suffix, options);
}

bool pack_is_token_file(const char *name)
{
    const size_t n = strlen(name), n_end = strlen(".bin");
    if (n <= n_end || strcmp(name + n - n_end, ".bin") != 0)
        return false;
    path_text prefix = path_of(name, "");
    prefix.s[n - n_end] = '\0';
    return file_exists(path_of(prefix.s, ".tmi").s);
}
