/* SPDX-License-Identifier: Apache-2.0 */
/* bench_file.h - a file of results that is complete under its name or absent. */
#ifndef TOKBENCH_BENCH_FILE_H
#define TOKBENCH_BENCH_FILE_H

#include <stdio.h>

#include "system/output_file.h"

typedef struct bench_file {
    output_file out; /* if it is a regular file */
    FILE *f;
} bench_file;

/* "-" is stdout. A pipe or a device is written directly; any other file is replaced when everything
 * is written, and must not be one that is read (paths.h). Returns 0, or prints the error and
 * returns 1. */
int bench_file_open(bench_file *file, const char *path);
/* Flushes the file and gives it its name; returns as above. */
int bench_file_place(bench_file *file);
/* Leaves an existing file unchanged. */
void bench_file_abandon(bench_file *file);

#endif /* TOKBENCH_BENCH_FILE_H */
