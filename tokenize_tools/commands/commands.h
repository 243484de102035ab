/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the commands of tokmap. */
#pragma once

/* A command. main() calls `run` with argv[0] = its name; it returns an exit code. */
typedef struct tokmap_command {
    const char *name;
    const char *summary; /* one line for `tokmap --help` */
    int (*run)(int argc, char **argv);
} tokmap_command;

int info_command(int argc, char **argv);
int verify_command(int argc, char **argv);
int cat_command(int argc, char **argv);
int index_command(int argc, char **argv);
int export_command(int argc, char **argv);
int merge_command(int argc, char **argv);
int join_command(int argc, char **argv);
int columns_command(int argc, char **argv);
int scan_command(int argc, char **argv);
int view_command(int argc, char **argv);
int rows_command(int argc, char **argv);
int redact_command(int argc, char **argv);
int pack_command(int argc, char **argv);
int plan_command(int argc, char **argv);
int status_command(int argc, char **argv);
int encode_command(int argc, char **argv);
int decode_command(int argc, char **argv);
