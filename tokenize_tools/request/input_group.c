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

void input_group_note(const pack_options *options, const input_group *group, const char *what)
{
    char names[1024] = "";
    if (group->n == 0 || options->quiet)
        return;
    for (size_t i = 0; i < group->n && i < INPUT_GROUP_NAMED; i++) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%.300s", i ? ", " : "", group->names[i]);
    }
    if (group->n > INPUT_GROUP_NAMED)
        cli_warn("%s and %zu more: %s", names, group->n - INPUT_GROUP_NAMED, what);
    else
        cli_warn("%s: %s", names, what);
}
