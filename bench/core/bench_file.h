/* SPDX-License-Identifier: Apache-2.0 */
/* bench_file.h - a file of results that is complete under its name or absent.
 *
 * Calls that return an int return 0, or print the error and return 1. */
#pragma once

#include "system/output_file.h"

typedef struct bench_file {
    output_file out; /* out.fd -1: there is none */
    bool direct;     /* stdout, a pipe or a device */
} bench_file;

/* "-" is stdout. A pipe or a device is written directly; any other file is replaced when everything
 * is written, and must not be one that is read (paths.h). */
int bench_file_open(bench_file *file, const char *path);
/* Writes the file and gives it its name; closes it in either case. */
int bench_file_write(bench_file *file, const void *data, size_t n_bytes);
/* Leaves an existing file unchanged. */
void bench_file_abandon(bench_file *file);
