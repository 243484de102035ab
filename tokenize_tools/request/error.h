/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - why packing stopped: kept until it can be printed. */
#pragma once

#include <stdbool.h>

#include "tokmap.h"

typedef struct pack_error {
    int exit_code;
    bool start_over;     /* resuming at the last checkpoint would fail again */
    const char *hint;    /* a sentence that says what to do, or NULL */
    bool of_output;      /* not of an input */
    int sys_errno;       /* of the system call that failed, or 0 */
    uint32_t file_bytes; /* of the name of a file, with which the text begins; 0: with none */
    char text[768];      /* one line */
} pack_error;

/* Returns exit_code. */
int pack_error_set(pack_error *err, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds the system call that failed, and what to do about it. */
void pack_error_set_cause(pack_error *err, int sys_errno, uint32_t file_bytes);
int pack_error_from_writer(pack_error *err, const tokmap_error *from);
/* For a file that pack writes: "PATH: cannot WHAT: ", and the text of the errno value. */
int pack_error_from_system(pack_error *err, const char *path, const char *what, int sys_errno);
int pack_error_no_memory(pack_error *err);
/* Prints the error and its hint, and returns its exit code. */
int pack_error_print(const pack_error *err);
