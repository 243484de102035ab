/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h - why something could not be done: carried from where it is found to where it is
 * printed. The first caller on the way that knows the place puts it before the text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* of `status`, which else is the errno of a failed system call; ENOMEM: out of memory */
    FAILURE_CONTENT = 0,  /* a file or a text is wrong */
    FAILURE_CHANGED = -1, /* a file is no longer the one that the work began with */
    FAILURE_BESIDE = -2   /* as FAILURE_CONTENT, of a second file that was given with the first */
};

typedef struct failure {
    int status;
    uint64_t place;  /* byte, character or line; what it is, the functions that set it say */
    bool has_place;  /* the text begins with it */
    char text[2048]; /* one line */
} failure;

/* All return false, so that a check can end with them. Those that set the status clear the place.
 * The arguments may point into the text. */
bool fail(failure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool fail_changed(failure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The system's text follows. */
bool fail_system(failure *f, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool fail_memory(failure *f);
/* Puts the place before the text, unless it has one. */
bool fail_at(failure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
