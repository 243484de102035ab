/* SPDX-License-Identifier: Apache-2.0 */
/* bench_file.h - a file of results that is complete under its name or absent.
 *
 * Both calls return 0, or print the error and return 1. */
#pragma once

#include "system/output_file.h"

/* Opens a file; "-" is stdout. A pipe or a device is written directly; any other file is replaced
 * when everything is written, and must not be one that is read (protected.h). output_close leaves
 * it unchanged. */
int bench_file_open(output_file *file, const char *path);
/* Writes the file and gives it its name; closes it in either case. */
int bench_file_write(output_file *file, const void *data, size_t n_bytes);
