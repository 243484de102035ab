/* SPDX-License-Identifier: Apache-2.0 */
/* python_commands.h - the commands that the Python package runs. main() calls them with argv[0] =
 * their name; they return an exit code after --help or an error. */
#pragma once

int import_command(int argc, char **argv);
int preprocess_command(int argc, char **argv);
int render_command(int argc, char **argv);
int try_command(int argc, char **argv);
int trace_command(int argc, char **argv);
int report_command(int argc, char **argv);
