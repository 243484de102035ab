/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h - what may follow on a command line, for the completion of shells.
 *
 * PROGRAM --complete WORD... prints what the last WORD, which may be empty or incomplete, can
 * become: one word a line, with its help after a tab; or one line that says what the shell should
 * offer: ":files", ":folders", or ":datasets" (files without .tmi, else all files). */
#pragma once

#include "cli/manual.h"

/* Whether the arguments begin with --complete. From then on cli_parse_options() completes. */
bool cli_begin_completion(int argc, char **argv);
bool cli_is_completing(void);
/* Prints what argv[argc - 1] can become; argv[0] is the command. Returns an exit code. */
int cli_complete(const cli_manual *manual, int argc, char **argv);
/* Prints the words that begin as `word` does. */
void cli_complete_word(const char *word, const cli_word *words);
