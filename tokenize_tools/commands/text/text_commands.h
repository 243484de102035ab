/* SPDX-License-Identifier: Apache-2.0 */
/* text_commands.h - the commands that work on texts, and on what is packed from them. main() calls
 * them with argv[0] = their name; they return an exit code. */
#pragma once

int join_command(int argc, char **argv);
int pack_command(int argc, char **argv);
int plan_command(int argc, char **argv);
int status_command(int argc, char **argv);
int encode_command(int argc, char **argv);
int decode_command(int argc, char **argv);
