/* SPDX-License-Identifier: Apache-2.0 */
/* each.h - runs a command that does the same with each dataset of its arguments. */
#pragma once

#include "cli/options.h"
#include "datasets/datasets.h"

/* The parts of a command that differ. Functions return an exit code, and print the error; those
 * that a command does not need are NULL. */
typedef struct each_command {
    const cli_manual *manual;
    void *options; /* set by cli_parse_options */
    /* Finds the names that the arguments stand for; a function of datasets.h. */
    int (*expand)(input_list *names, char **arguments, int n_arguments, bool quiet);
    const bool *quiet; /* in the options; NULL: no option --quiet */
    /* Called when the names are known. */
    int (*check)(void *options, const input_list *names);
    /* Called for each dataset, also after a failure. */
    int (*work)(void *options, const char *name, const tokmap_dataset *ds);
    /* Called before the message if a dataset cannot be opened. Returns the exit code; CLI_OK: that
     * of the error, with a hint. */
    int (*refuse)(void *options, const char *name, const tokmap_error *err);
    const bool *index_only; /* in the options: token files need not be there; NULL: they do */
    /* Called at the end, if everything before succeeded. */
    int (*end)(void *options, const input_list *names);
} each_command;

/* Returns the first exit code that is not CLI_OK. */
int each_run(const each_command *command, int argc, char **argv);
