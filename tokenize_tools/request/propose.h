/* SPDX-License-Identifier: Apache-2.0 */
/* propose.h - the commands that pack text and records of one folder by themselves, as a shell takes
 * them. */
#pragma once

#include "request/inputs.h"

/* Prints one command for each of both kinds, and one that merges the results. They have the options
 * that were given, and patterns of --include if these mean exactly the inputs of the kind; else the
 * names of the inputs if these are few; else a list of them, which --write-lists writes. Returns an
 * exit code, and prints the error. */
int pack_propose_commands(const pack_inputs *inputs, const pack_options *options);
