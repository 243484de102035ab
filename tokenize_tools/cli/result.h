/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - what a command prints about a dataset that it has written. */
#pragma once

#include <stdbool.h>

/* Opens the dataset that a command has just written as prefix.tmi, so that what is reported is what
 * readers will see, and prints the result line, or with json one object, to stdout: "P: 2
 * documents, ...". Prints nothing if it is to be quiet, unless json is wanted. format: what was
 * adopted, or NULL. Returns CLI_OK or the exit code of a failure. */
int cli_print_result(const char *prefix, const char *format, bool json, bool quiet);
