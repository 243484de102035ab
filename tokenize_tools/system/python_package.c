/* SPDX-License-Identifier: Apache-2.0 */
#include "system/python_package.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "system/files.h"
#include "system/process.h"
#include "tokmap.h"

#define SCRIPT "tokmap-python"

/* The command line of the script: its path, the version and the path of this program, the command
 * and its arguments, NULL. */
typedef struct script_call {
    path_text script;
    char program[PATH_PREFIX_BYTES];
    const char **arguments; /* owned */
} script_call;

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

static bool prepare_call(script_call *call, const char *const *argv, size_t argc, failure *err)
{
    snprintf(call->program, sizeof call->program, "/proc/self/exe");
    file_link_target("/proc/self/exe", call->program, sizeof call->program);
    if (!find_script(call->program, &call->script))
        return fail(err,
                    "the Python package is missing: install the wheel of tokmap %s, or the "
                    "package python3-tokmap",
                    tokmap_version());
    call->arguments = calloc(argc + 4, sizeof *call->arguments);
    if (!call->arguments)
        return fail_memory(err);
    call->arguments[0] = call->script.s;
    call->arguments[1] = tokmap_version();
    call->arguments[2] = call->program;
    memcpy(call->arguments + 3, argv, argc * sizeof *argv);
    return true;
}

static bool fail_start(failure *err, const script_call *call, int sys_errno)
{
    if (sys_errno != ENOENT)
        return fail_file(err, sys_errno, call->script.s);
    return fail(err, "%.400s: its Python interpreter is missing: install the Python package again",
                call->script.s);
}

int python_package_replace(int argc, char **argv)
{
    script_call call = {0};
    failure err;
    if (prepare_call(&call, (const char *const *)argv, (size_t)argc, &err))
        fail_start(&err, &call, process_replace(call.script.s, call.arguments));
    free(call.arguments);
    return cli_print_failure(&err);
}

bool python_package_run(const char *const *argv, size_t argc,
                        bool (*take)(void *context, char *line), void *context, failure *err)
{
    script_call call = {0};
    process_child child;
    char *line = NULL;
    size_t capacity = 0;
    bool ok = prepare_call(&call, argv, argc, err);
    const int sys_errno = ok ? process_start(&child, call.script.s, call.arguments) : 0;
    free(call.arguments);
    if (!ok)
        return false;
    if (sys_errno)
        return fail_start(err, &call, sys_errno);
    for (ssize_t n; ok && (n = getline(&line, &capacity, child.output)) > 0;) {
        line[n - (line[n - 1] == '\n')] = '\0';
        ok = take(context, line);
    }
    free(line);
    const int code = process_end(&child);
    return ok && (code == 0 ||
                  fail(err, "%.400s %.100s: failed with status %d", call.script.s, argv[0], code));
}
