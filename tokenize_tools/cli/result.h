/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - what a command prints about a dataset that it has written. */
#pragma once

#include <stdbool.h>

/* Opens the dataset that a command has just written as prefix.tmi, so that the result is what
 * readers will see, and prints it to stdout as a line, "P: 2 documents, ...", or with `json` as an
 * object. With `quiet` and without `json`, prints nothing. format: of an adopted token file, or
 * NULL. more: members of the object, as JSON; "" or NULL: none. Returns an exit code, and prints
 * the error. */
int cli_print_result(const char *prefix, const char *format, const char *more, bool json,
                     bool quiet);
