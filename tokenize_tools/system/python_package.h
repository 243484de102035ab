/* SPDX-License-Identifier: Apache-2.0 */
/* python_package.h - runs commands of the Python package, by the script tokmap-python that the
 * package installs: beside this program, or else in a folder of PATH. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Executes a command in place of this process; argv is the command and its arguments. Returns an
 * exit code only after an error, which it prints. */
int python_package_replace(int argc, char **argv);

/* Runs a command as a child, and calls take with each line of its output, without the newline. take
 * returns false if it has set *err. False: *err says why, also if the child failed. */
bool python_package_run(const char *const *argv, size_t argc,
                        bool (*take)(void *context, char *line), void *context, failure *err);
