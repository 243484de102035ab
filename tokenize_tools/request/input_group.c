/* SPDX-License-Identifier: Apache-2.0 */
#include "request/input_group.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

void input_group_add(input_group *group, const char *name)
{
    if (group->n < INPUT_GROUP_NAMED)
        group->names[group->n] = name;
    group->n++;
}

void input_group_text(const input_group *group, char text[INPUT_GROUP_BYTES])
{
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < group->n && i < INPUT_GROUP_NAMED; i++)
        n += (size_t)snprintf(text + n, INPUT_GROUP_BYTES - n, "%s%.300s", i ? ", " : "",
                              group->names[i]);
    if (group->n > INPUT_GROUP_NAMED)
        snprintf(text + n, INPUT_GROUP_BYTES - n, " and %zu more", group->n - INPUT_GROUP_NAMED);
}

void input_group_note(const pack_options *options, const input_group *group, const char *what)
{
    char names[INPUT_GROUP_BYTES];
    if (group->n == 0 || options->quiet)
        return;
    input_group_text(group, names);
    cli_warn("%s: %s", names, what);
}
