/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - the environment of a process: descriptors, limits, signals, processors, terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Opens descriptors 0, 1 and 2 if they are closed, raises the limit of open files, and makes a
 * write beyond the file size limit an ordinary error. Called first in main. False if /dev/null
 * cannot be opened. */
bool process_begin(void);

/* Makes SIGINT, SIGTERM and SIGHUP set process_is_interrupted. A second signal of the same kind
 * ends the process at once. Ignored signals (nohup) stay ignored. */
void process_catch_interrupts(void);
bool process_is_interrupted(void);

/* Finds the absolute path of the current folder. Returns an exit code, and prints the error. */
int process_folder(char *path, size_t n_bytes);
/* Makes the folder the current one. Returns 0 or an errno value. */
int process_enter_folder(const char *path);
/* Makes a path absolute, unless it is NULL. Returns an exit code, and prints the error. */
int process_make_absolute(const char **path, char *absolute, size_t n_bytes);

/* Executes a program in place of this one; NULL ends its arguments, and the first is its name.
 * Returns only after an error: its errno value. */
int process_replace(const char *path, const char *const *arguments);

/* A program that runs beside this one. */
typedef struct process_child {
    FILE *output; /* what it prints */
    int id;
} process_child;

/* Starts a program, whose path is absolute; the arguments are as for process_replace. Returns 0 or
 * an errno value. */
int process_start(process_child *child, const char *path, const char *const *arguments);
/* Closes its output and waits for its end. Returns its exit status, or 128 and the number of the
 * signal that ended it. */
int process_end(process_child *child);

/* Makes all threads allocate from one heap: a heap for each would not be faster for threads that
 * allocate their buffers once, but would reserve 64 MiB of address space each, which may be
 * limited. Makes them batch work for the scheduler, unless the user chose otherwise: a thread that
 * wakes up does not interrupt a busy one, because the buffers between them allow it to wait. */
void process_prepare_threads(void);

/* Returns the peak memory of the process. */
uint64_t process_peak_bytes(void);
bool process_is_terminal(FILE *file);
/* Returns the columns of the terminal `out`; 0 if it is not a terminal, or has no size. */
unsigned process_terminal_columns(FILE *out);
