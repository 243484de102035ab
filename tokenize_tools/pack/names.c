/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/output_file.h"
#include "system/protected.h"

typedef struct name {
    char path[PATH_PREFIX_BYTES + 24];
    bool beside; /* not part of a dataset: the report or the bad documents */
} name;

enum {
    MAX_NAMES = (PACK_MAX_SPLITS + 1) * PATH_N_DATASET_SUFFIXES + 4
};

typedef struct name_list {
    name names[MAX_NAMES];
    size_t n;
} name_list;

static void add_name(name_list *list, const char *path, const char *suffix, bool beside)
{
    name *n = &list->names[list->n++];
    snprintf(n->path, sizeof n->path, "%s%s", path, suffix);
    n->beside = beside;
}

const char *pack_bad_path(char path[PATH_PREFIX_BYTES + 8], const pack_options *options)
{
    if (options->on_error != ON_ERROR_COLLECT)
        return NULL;
    if (options->bad_documents)
        snprintf(path, PATH_PREFIX_BYTES + 8, "%s", options->bad_documents);
    else
        snprintf(path, PATH_PREFIX_BYTES + 8, "%s.bad", options->prefix);
    return path;
}

/* ---- Written twice ---- */

static int check_written(const name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = i + 1; k < list->n; k++)
            if (list->names[k].beside &&
                file_is_same_name(list->names[i].path, list->names[k].path))
                return cli_usage("%s: is named for two outputs", list->names[k].path);
    return CLI_OK;
}

static int check_regular(const char *path, const char *option)
{
    file_facts facts;
    if (path && file_describe_name(path, &facts) == 0 && facts.kind != FILE_REGULAR)
        return cli_usage("%s %s: is %s", option, path,
                         facts.kind == FILE_LINK ? "a symbolic link, which is not replaced"
                                                 : "not a regular file");
    return CLI_OK;
}

static int make_folders(const name_list *list)
{
    int code = CLI_OK;
    for (size_t i = 0; i < list->n && code == CLI_OK; i++)
        code = output_make_folders(list->names[i].path);
    return code;
}

int pack_names_check(const pack_options *options)
{
    name_list *list = malloc(sizeof *list);
    if (!list)
        return cli_no_memory();
    char prefix[PATH_PREFIX_BYTES], bad[PATH_PREFIX_BYTES + 8];
    list->n = 0;
    for (size_t i = 0; i <= options->n_splits; i++) {
        if (i < options->n_splits)
            pack_split_prefix(prefix, options, i);
        for (size_t k = 0; k < PATH_N_DATASET_SUFFIXES; k++)
            add_name(list, i < options->n_splits ? prefix : options->prefix,
                     path_dataset_suffixes[k], false);
    }
    if (options->report) {
        add_name(list, options->report, "", true);
        add_name(list, options->report, ".partial", true);
    }
    if (pack_bad_path(bad, options)) {
        add_name(list, bad, "", true);
        add_name(list, bad, ".partial", true);
    }
    int code = options->dry_run ? CLI_OK : make_folders(list);
    for (size_t i = 0; i < list->n && code == CLI_OK; i++)
        code = path_check_output(list->names[i].path);
    if (code == CLI_OK)
        code = check_written(list);
    if (code == CLI_OK)
        code = check_regular(options->report, "--report");
    if (code == CLI_OK)
        code = check_regular(options->bad_documents, "--bad-documents");
    free(list);
    return code;
}
