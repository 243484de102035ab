/* SPDX-License-Identifier: Apache-2.0 */
/* python.c - the commands that are written in Python: executes the script tokmap-python, which the
 * Python package installs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "commands/commands.h"
#include "system/files.h"
#include "system/process.h"

#define SCRIPT "tokmap-python"

/* Finds the script beside this program, or else in a folder of PATH. */
static bool find_script(const char *program, path_text *script)
{
    const char *folder = getenv("PATH");
    *script = path_beside(program, SCRIPT);
    while (!file_can_run(script->s)) {
        if (!folder || !*folder)
            return false;
        const size_t n = strcspn(folder, ":"); /* an empty entry is the working directory */
        snprintf(script->s, sizeof script->s, "%.*s/" SCRIPT, n ? (int)n : 1, n ? folder : ".");
        folder += n + (folder[n] == ':');
    }
    return true;
}

int python_command(int argc, char **argv)
{
    char program[PATH_PREFIX_BYTES] = "/proc/self/exe";
    path_text script;
    file_link_target("/proc/self/exe", program, sizeof program);
    if (!find_script(program, &script))
        return cli_error(CLI_INPUT,
                         "the Python package is missing: install the wheel of tokmap %s, or the "
                         "package python3-tokmap",
                         tokmap_version());
    /* The script is given the version and the path of this program, then the command line. */
    const char **arguments = calloc((size_t)argc + 4, sizeof *arguments);
    if (!arguments)
        return cli_no_memory();
    arguments[0] = script.s;
    arguments[1] = tokmap_version();
    arguments[2] = program;
    memcpy(arguments + 3, argv, (size_t)argc * sizeof *argv);
    const int code = process_replace(script.s, arguments);
    free(arguments);
    return cli_error(cli_errno_exit_code(code), "%s: %s", script.s,
                     code == ENOENT ? "its Python interpreter is missing: install the Python "
                                      "package again"
                                    : strerror(code));
}
