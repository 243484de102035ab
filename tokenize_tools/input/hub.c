/* SPDX-License-Identifier: Apache-2.0 */
#include "input/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/files.h"
#include "system/python_package.h"

#define SCHEME "hf://"

bool hub_is_name(const char *name)
{
    return strncmp(name, SCHEME, strlen(SCHEME)) == 0 && !file_name_exists(name);
}

typedef struct hub_lines {
    input_list *list;
    failure *err;
    bool is_refused; /* the package said why */
} hub_lines;

/* What a revision means is the same for all names of a list: later calls of the package get
 * this. */
static bool remember(input_list *list, const char *meaning, failure *err)
{
    char *all = NULL;
    if (asprintf(&all, "%s;%s", list->commits ? list->commits : "", meaning) < 0)
        return fail_memory(err);
    free(list->commits);
    list->commits = all;
    return true;
}

/* A line is a letter, a blank and a text: the path of a file, a note, what a revision means, or an
 * errno value and an error. */
static bool take_line(void *context, char *line)
{
    hub_lines *l = context;
    char *text = line + (line[0] ? 1 + (line[1] == ' ') : 0);
    switch (line[0]) {
    case 'F':
        return input_list_append(l->list, strdup(text), l->err);
    case 'N':
        if (l->list->report)
            l->list->report(l->list->context, text);
        return true;
    case 'R':
        return remember(l->list, text, l->err);
    case 'E':
        l->is_refused = true;
        const int status = (int)strtol(text, &text, 10);
        fail(l->err, "%.1500s", text + (*text == ' '));
        l->err->status = status;
        return false;
    default:
        return fail(l->err, "a line that is not known: %.200s", line);
    }
}

bool hub_find(input_list *list, const hub_request *request, failure *err)
{
    const char *const arguments[] = {"hub",
                                     request->is_tokenizer ? "tokenizer" : "dataset",
                                     request->name,
                                     request->download ? "download" : "find",
                                     list->report ? "" : "quiet",
                                     list->commits ? list->commits : ""};
    hub_lines lines = {list, err, false};
    const size_t first = list->n_names, n = sizeof arguments / sizeof *arguments;
    bool ok = python_package_run(arguments, n, take_line, &lines, err);
    if (ok && list->n_names == first)
        ok = fail(err, "it names no file");
    if (!ok && !lines.is_refused)
        fail_at(err, "%.300s: the Python package finds files of the Hub: ", request->name);
    if (ok)
        input_list_sort(list, first);
    return ok;
}
