/* SPDX-License-Identifier: Apache-2.0 */
/* dataset_commands.h - the commands that work on datasets. main() calls them with argv[0] = their
 * name; they return an exit code. */
#pragma once

int info_command(int argc, char **argv);
int verify_command(int argc, char **argv);
int cat_command(int argc, char **argv);
int index_command(int argc, char **argv);
int export_command(int argc, char **argv);
int merge_command(int argc, char **argv);
int columns_command(int argc, char **argv);
int scan_command(int argc, char **argv);
int view_command(int argc, char **argv);
int rows_command(int argc, char **argv);
int redact_command(int argc, char **argv);
