/* SPDX-License-Identifier: Apache-2.0 */
/* python_commands.h - the questions of tokbench that the Python package answers, because loaders of
 * trainings are Python. They return an exit code after --help or an error. */
#pragma once

int loader_command(int argc, char **argv);
int compare_command(int argc, char **argv);
