/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - reads the options of a command line into a struct, as its manual says. */
#pragma once

#include <getopt.h> /* optind */

#include "cli/manual.h"

#define CLI_GO_ON (-1)
/* Reads the options into the struct at `target`. Returns CLI_GO_ON if the command should run: the
 * operands begin at argv[optind]. Otherwise returns the exit code to end with, after -h, --help, a
 * completion or a message. */
int cli_parse_options(const cli_manual *manual, int argc, char **argv, void *target);
/* Whether the option was given. */
bool cli_is_given(const char *name);
/* Finds an option that was given and is not allowed; NULL ends the list, and is returned if there
 * is none. */
const char *cli_find_other(const char *const *allowed);

/* An option as it was given. */
typedef struct cli_setting {
    const cli_option *option;
    const char *value; /* NULL: it takes none */
} cli_setting;
/* Returns the options that were given, in their order. */
const cli_setting *cli_get_settings(size_t *n);
/* Finds the option with this name in the tables; NULL ends the list of tables, and is returned if
 * no table has the option. */
const cli_option *cli_find_option(const cli_option *const *tables, const char *name);
/* Sets an option as the command line does; value NULL: without a value. Returns an exit code, and
 * prints the error. */
int cli_set_option(const cli_option *option, const char *value, void *target);
/* Makes one table of several; NULL ends their list. */
#define CLI_MAX_OPTIONS 64
const cli_option *cli_join_options(cli_option joined[CLI_MAX_OPTIONS + 1],
                                   const cli_option *const *tables);
