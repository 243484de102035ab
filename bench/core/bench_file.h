/* bench_file.h - a file of results: whole under its name or not at all. */
#ifndef TOKBENCH_BENCH_FILE_H
#define TOKBENCH_BENCH_FILE_H

#include <stdio.h>

#include "system/output_file.h"

typedef struct bench_file {
    output_file out; /* where the file is a regular one */
    FILE *f;
} bench_file;

/* "-" is stdout. A pipe or a device is written as it stands; any other file is replaced when all is
 * written, and may not be one that is read (paths.h). Returns 0, or 1 with a message. */
int bench_file_open(bench_file *file, const char *path);
/* Flushes and gives the file its name; likewise. */
int bench_file_place(bench_file *file);
/* Leaves what was there as it was. */
void bench_file_abandon(bench_file *file);

#endif /* TOKBENCH_BENCH_FILE_H */
