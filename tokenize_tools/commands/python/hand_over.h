/* SPDX-License-Identifier: Apache-2.0 */
/* hand_over.h - reads the command line of a command that is written in Python, and executes it. */
#pragma once

#include "cli/manual.h"

/* Executes the command in place of this process, with a JSON object of the options that were given,
 * such as {"vocab_size": 300, "force": true}, and the operands. The target of each option is 0.
 * Returns an exit code only after --help or an error. */
int hand_over(const cli_manual *manual, int argc, char **argv);
