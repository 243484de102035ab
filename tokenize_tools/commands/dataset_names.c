/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "corpus/input_list.h"
#include "cli/paths.h"
#include "system/files.h"

static int append_name(input_list *list, const char *name)
{
    failure err;
    return input_list_append(list, strdup(name), &err) ? CLI_OK : cli_no_memory();
}

static bool is_pattern(const char *argument)
{
    char index[4096 + 8];
    snprintf(index, sizeof index, "%.*s.tmi", path_prefix_bytes(argument), argument);
    return strpbrk(argument, "*?[") && !file_name_exists(argument) && !file_name_exists(index);
}

/* suffix replaces that of the argument, unless it is NULL. A leading @ or - has no special
 * meaning. */
static bool find_matches(input_list *list, const char *argument, const char *suffix, failure *err)
{
    char pattern[4096];
    const char *here = *argument == '@' || *argument == '-' ? "./" : "";
    int n_bytes = suffix ? path_prefix_bytes(argument) : (int)strlen(argument);
    int n = snprintf(pattern, sizeof pattern, "%s%.*s%s", here, n_bytes, argument,
                     suffix ? suffix : "");
    if (n >= 0 && (size_t)n < sizeof pattern)
        return input_list_expand(list, pattern, err);
    return fail(err, "%.200s...: the path is too long", argument);
}

/* A match that is gone or cannot be looked at: opening it finds it, or says why not. */
static bool take_all(void *context, const char *name)
{
    (void)context;
    (void)name;
    return true;
}

static int append_matches(input_list *list, const char *argument)
{
    failure err;
    return find_matches(list, argument, NULL, &err) ? CLI_OK : cli_print_failure(&err);
}

static int compare_names(const void *a, const void *b)
{
    return input_list_compare(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names from number `first` on, and removes those that are there twice. */
static void sort_names(input_list *list, size_t first)
{
    char **names = list->names + first;
    const size_t n = list->n_names - first;
    qsort(names, n, sizeof *names, compare_names);
    list->n_names = first;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(names[i], list->names[list->n_names - 1]) == 0)
            free(names[i]);
        else
            list->names[list->n_names++] = names[i];
    }
}

/* Of a dataset that is being replaced, the index is P.tmi.replaced. P.tmi is looked for again,
 * because it may have got its name before P.tmi.replaced was looked for. */
static int append_datasets(input_list *list, const char *argument)
{
    static const char *const suffixes[] = {".tmi", ".tmi.replaced", ".tmi"};
    const size_t n_before = list->n_names;
    failure err;
    bool ok = true;
    list->needs_no_file = take_all;
    list->may_match_nothing = true;
    for (int i = 0; i < 3 && ok; i++) {
        const size_t n = list->n_names;
        ok = find_matches(list, argument, suffixes[i], &err);
        for (size_t j = n; i == 1 && j < list->n_names; j++)
            list->names[j][strlen(list->names[j]) - strlen(".replaced")] = '\0';
    }
    if (!ok || list->n_names == n_before)
        return cli_print_failure(&err);
    sort_names(list, n_before);
    return CLI_OK;
}

static int expand_names(dataset_names *names, char **arguments, int n_arguments,
                        int (*append)(input_list *list, const char *argument))
{
    input_list list = {0};
    int code = path_check_all(arguments, n_arguments);
    for (int i = 0; i < n_arguments && code == CLI_OK; i++)
        code = is_pattern(arguments[i]) ? append(&list, arguments[i])
                                        : append_name(&list, arguments[i]);
    *names = (dataset_names){list.names, list.n_names};
    return code;
}

int dataset_names_expand(dataset_names *names, char **arguments, int n_arguments)
{
    return expand_names(names, arguments, n_arguments, append_datasets);
}

int token_file_names_expand(dataset_names *names, char **arguments, int n_arguments)
{
    return expand_names(names, arguments, n_arguments, append_matches);
}

static int check_indexes(const input_list *files, const char *suffix, const char *argument)
{
    for (size_t i = 0; i < files->n_names; i++) {
        char index[4096 + 8], replaced[sizeof index + sizeof ".replaced"];
        const char *name = files->names[i];
        int n_bytes = (int)(strlen(name) - strlen(suffix));
        snprintf(index, sizeof index, "%.*s.tmi", n_bytes, name);
        snprintf(replaced, sizeof replaced, "%s.replaced", index);
        if (path_ends_with(name, suffix) && !file_name_exists(index) && !file_name_exists(replaced))
            return cli_error(CLI_DATASET,
                             "%s: has no index, so '%s' would leave it out: finish, index or "
                             "remove it, or end the pattern in .tmi",
                             name, argument);
    }
    return CLI_OK;
}

int dataset_names_check(char **arguments, int n_arguments)
{
    static const char *const suffixes[] = {".bin", ".bin.partial"};
    int code = CLI_OK;
    for (int i = 0; i < 2 * n_arguments && code == CLI_OK; i++) {
        const char *argument = arguments[i / 2], *suffix = suffixes[i % 2];
        input_list files = {.needs_no_file = take_all, .may_match_nothing = true};
        failure err;
        if (is_pattern(argument) && !path_ends_with(argument, ".tmi"))
            code = find_matches(&files, argument, suffix, &err)
                       ? check_indexes(&files, suffix, argument)
                       : cli_print_failure(&err);
        input_list_free(&files);
    }
    return code;
}

void dataset_names_free(dataset_names *names)
{
    input_list_free(&(input_list){.names = names->paths, .n_names = names->n});
}
