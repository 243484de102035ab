/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - the environment of a process: descriptors, limits, signals, processors, terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Call first in main: opens descriptors 0, 1 and 2 if they are closed, raises the limit of open
 * files, and makes a write beyond the file size limit an ordinary error. False: /dev/null cannot be
 * opened. */
bool process_begin(void);

/* After this call SIGINT, SIGTERM and SIGHUP make process_is_interrupted true. A second signal of
 * the same kind ends the process at once. Ignored signals (nohup) stay ignored. */
void process_catch_interrupts(void);
bool process_is_interrupted(void);

/* The absolute path of the current folder. Returns an exit code, and prints the error. */
int process_folder(char *path, size_t n_bytes);
/* Makes it the current folder. 0 or an errno value. */
int process_enter_folder(const char *path);
/* Makes a path absolute that is not, and not NULL. Returns an exit code, and prints the error. */
int process_make_absolute(const char **path, char *absolute, size_t n_bytes);

/* All threads allocate from one heap. For threads that allocate their buffers once, a heap for each
 * would not be faster, but would reserve 64 MiB of address space each, which may be limited. And
 * they are batch work for the scheduler, unless the user chose otherwise: a thread that wakes up
 * does not interrupt a busy one, because the buffers between them allow it to wait. */
void process_prepare_threads(void);

/* The peak memory of the process. */
uint64_t process_peak_bytes(void);
bool process_is_terminal(FILE *file);
/* The columns of the terminal `out`; 0: it is not a terminal, or has no size. */
unsigned process_terminal_columns(FILE *out);
