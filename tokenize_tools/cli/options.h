/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - reads the options of a command line into a struct, as its manual says. */
#pragma once

#include <getopt.h> /* optind */

#include "cli/manual.h"

#define CLI_GO_ON (-1)
/* Reads the options into the struct at `target`. CLI_GO_ON: the operands are argv[optind] and what
 * follows. Otherwise the exit code to end with, after --help or a message. */
int cli_parse_options(const cli_manual *manual, int argc, char **argv, void *target);
/* Whether cli_parse_options has seen the option. */
bool cli_is_given(const char *name);

/* An option as it was given. */
typedef struct cli_setting {
    const cli_option *option;
    const char *value; /* NULL: it takes none */
} cli_setting;
/* Those that cli_parse_options has seen, in their order. */
const cli_setting *cli_get_settings(size_t *n);
/* The option with this name in one of the tables, the last of which is NULL; or NULL. */
const cli_option *cli_find_option(const cli_option *const *tables, const char *name);
/* Sets it as the command line does; value NULL: none. Returns an exit code, prints the error. */
int cli_set_option(const cli_option *option, const char *value, void *target);
/* Makes one table of several, the last of which is NULL. */
#define CLI_MAX_OPTIONS 64
const cli_option *cli_join_options(cli_option joined[CLI_MAX_OPTIONS + 1],
                                   const cli_option *const *tables);
