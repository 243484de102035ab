/* SPDX-License-Identifier: Apache-2.0 */
#include "input/hub.h"

#include <stdio.h>
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

/* A line is a letter, a blank and a text: the path of a file, a note, or an error. */
static bool take_line(void *context, char *line)
{
    hub_lines *l = context;
    const char kind = line[0], *text = line + (kind ? 1 + (line[1] == ' ') : 0);
    if (kind == 'F')
        return input_list_append(l->list, strdup(text), l->err);
    if (kind == 'N' && l->list->report)
        l->list->report(l->list->context, text);
    l->is_refused = kind != 'N';
    return kind == 'N' || fail(l->err, "%.900s", text);
}

bool hub_find(input_list *list, const hub_request *request, failure *err)
{
    const char *const arguments[] = {"hub", request->is_tokenizer ? "tokenizer" : "dataset",
                                     request->name, request->download ? "download" : "find",
                                     list->report ? "" : "quiet"};
    hub_lines lines = {list, err, false};
    const size_t first = list->n_names, n = sizeof arguments / sizeof *arguments;
    if (!python_package_run(arguments, n, take_line, &lines, err))
        return lines.is_refused
                   ? false
                   : fail_at(err, "%.300s: needs the extra tokmap[hub]: ", request->name);
    input_list_sort(list, first);
    return true;
}

void hub_revision_of(const char *path, char text[HUB_REVISION_BYTES])
{
    static const char snapshots[] = "/snapshots/";
    const char *owner = strstr(path, "/models--"), *name, *commit;
    owner = owner ? owner + strlen("/models--") : "";
    name = strstr(owner, "--");
    commit = name ? strstr(name, snapshots) : NULL;
    *text = '\0';
    if (!commit)
        return;
    const char *begin = commit + strlen(snapshots);
    snprintf(text, HUB_REVISION_BYTES, "%.*s/%.*s@%.*s", (int)(name - owner), owner,
             (int)(commit - name - 2), name + 2, (int)strcspn(begin, "/"), begin);
}
