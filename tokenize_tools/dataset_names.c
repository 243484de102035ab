#include "dataset_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "corpus/input_list.h"
#include "paths.h"

static int append(input_list *list, const char *name)
{
    if (list->n_names == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        char **names = realloc(list->names, capacity * sizeof *names);
        if (!names)
            return cli_no_memory();
        list->names = names;
        list->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy)
        return cli_no_memory();
    list->names[list->n_names++] = copy;
    return CLI_OK;
}

static int prefix_bytes(const char *name)
{
    bool has_suffix = path_ends_with(name, ".tmi") || path_ends_with(name, ".bin");
    return (int)strlen(name) - (has_suffix ? 4 : 0);
}

static bool is_pattern(const char *argument)
{
    char index[4096 + 8];
    struct stat st;
    snprintf(index, sizeof index, "%.*s.tmi", prefix_bytes(argument), argument);
    return strpbrk(argument, "*?[") && lstat(argument, &st) != 0 && lstat(index, &st) != 0;
}

/* A pattern that begins with @ or - is one all the same. */
static int append_matches(input_list *list, const char *argument, const char *suffix)
{
    char pattern[4096];
    corpus_error err;
    const char *here = *argument == '@' || *argument == '-' ? "./" : "";
    int n_bytes = suffix ? prefix_bytes(argument) : (int)strlen(argument);
    int n = snprintf(pattern, sizeof pattern, "%s%.*s%s", here, n_bytes, argument,
                     suffix ? suffix : "");
    if (n < 0 || (size_t)n >= sizeof pattern)
        return cli_usage("%.200s...: the path is too long", argument);
    if (input_list_expand(list, pattern, &err))
        return CLI_OK;
    return cli_error(err.sys_errno ? cli_errno_exit_code(err.sys_errno) : CLI_INPUT, "%s",
                     err.text);
}

static int expand(dataset_names *names, char **arguments, int n_arguments, const char *suffix)
{
    input_list list = {0};
    int code = path_check_all(arguments, n_arguments);
    for (int i = 0; i < n_arguments && code == CLI_OK; i++)
        code = is_pattern(arguments[i]) ? append_matches(&list, arguments[i], suffix)
                                        : append(&list, arguments[i]);
    *names = (dataset_names){list.names, list.n_names};
    return code;
}

int dataset_names_expand(dataset_names *names, char **arguments, int n_arguments)
{
    return expand(names, arguments, n_arguments, ".tmi");
}

int token_file_names_expand(dataset_names *names, char **arguments, int n_arguments)
{
    return expand(names, arguments, n_arguments, NULL);
}

void dataset_names_free(dataset_names *names)
{
    input_list_free(&(input_list){.names = names->paths, .n_names = names->n});
}
