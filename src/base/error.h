/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - why something could not be done: a tokmap_error for the calls of the libraries, and a
 * `failure` for what reads text and files of others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

/* ---- The error of a call ---- */

/* The parts of an error besides its text. */
typedef struct tokmap_i_cause {
    tokmap_status status;
    int sys_errno;
    uint64_t file_offset;
    tokmap_reason reason;
} tokmap_i_cause;

/* Fills in err, which may be NULL, unless the status is TOKMAP_OK; returns the status. If sys_errno
 * is not 0, adds ": " and the system's text for it. What a format names that begins with "%s: " is
 * a file; another name begins it as "%.99s: ". */
tokmap_status tokmap_i_fail(tokmap_error *err, tokmap_i_cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the status in an inline function, so that compilers and analysers know its value. */
static inline tokmap_status tokmap_i_failed(tokmap_status returned, tokmap_status status)
{
    (void)returned;
    return status;
}

static inline tokmap_i_cause tokmap_i_cause_of_io(int errno_value, uint64_t file_offset)
{
    return (tokmap_i_cause){errno_value ? TOKMAP_ERR_IO : TOKMAP_OK, errno_value, file_offset, 0};
}

#define FAIL_CAUSE(err, status, errno_value, offset, ...)                                          \
    tokmap_i_failed(                                                                               \
        tokmap_i_fail(err, (tokmap_i_cause){status, errno_value, offset, 0}, __VA_ARGS__), status)
#define FAIL_REASON(err, status, reason, ...)                                                      \
    tokmap_i_failed(tokmap_i_fail(err, (tokmap_i_cause){status, 0, 0, reason}, __VA_ARGS__), status)
#define FAIL(err, status, ...) FAIL_CAUSE(err, status, 0, 0, __VA_ARGS__)
#define FAIL_AT(err, status, offset, ...) FAIL_CAUSE(err, status, 0, offset, __VA_ARGS__)
#define FAIL_IO(err, errno_value, ...) FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, 0, __VA_ARGS__)
#define FAIL_IO_AT(err, errno_value, offset, ...)                                                  \
    FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, offset, __VA_ARGS__)
/* CHECK_IO: the same as FAIL_IO, but errno_value may be 0, and then the status is TOKMAP_OK. */
#define CHECK_IO(err, errno_value, ...) CHECK_IO_AT(err, errno_value, 0, __VA_ARGS__)
#define CHECK_IO_AT(err, errno_value, offset, ...)                                                 \
    tokmap_i_fail(err, tokmap_i_cause_of_io(errno_value, offset), __VA_ARGS__)
#define FAIL_MEMORY(err) FAIL(err, TOKMAP_ERR_MEMORY, "out of memory")
/* An argument of a public call is NULL. */
#define FAIL_NULL(err) FAIL(err, TOKMAP_ERR_ARGUMENT, "%.99s: an argument is NULL", __func__)

void tokmap_i_error_clear(tokmap_error *err);

/* ---- The failure of a parser ----
 *
 * It is carried from where it is found to where it is printed. The first caller on the way that
 * knows the place puts it before the text. */

/* values of `status`; any other value is the errno of a failed system call, ENOMEM if out of
 * memory */
enum {
    FAILURE_CONTENT = 0,  /* a file or a text is wrong */
    FAILURE_CHANGED = -1, /* a file is no longer the one that the work began with */
    FAILURE_BESIDE = -2   /* a second file, given with the first, is wrong */
};

typedef struct failure {
    int status;
    uint64_t place;      /* a byte, character or line: the function that sets it says which */
    bool has_place;      /* the text begins with it */
    uint32_t file_bytes; /* of the name of a file, with which the text begins; 0: with none, or with
                            a part of one */
    const char *kind; /* what a file is that was not meant to be read, such as "a PDF document", or
                         NULL; lives as long as the program */
    char text[2048];  /* one line */
} failure;

/* Store a failure. All return false, so that a check can end with them. All except fail_kind and
 * fail_at clear the place and the kind. The arguments may point into the text. */
#define fail(f, ...) fail_system(f, FAILURE_CONTENT, __VA_ARGS__)
#define fail_changed(f, ...) fail_system(f, FAILURE_CHANGED, __VA_ARGS__)
/* If the status is an errno value, adds ": " and the system's text for it. */
bool fail_system(failure *f, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool fail_memory(failure *f);
/* Sets only the kind. */
bool fail_kind(failure *f, const char *kind);
/* Puts the place before the text, unless it has one. */
bool fail_at(failure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As fail_at with "PATH: ". */
bool fail_in_file(failure *f, const char *path);
/* Stores "PATH: ", and the system's text for an errno value. */
bool fail_file(failure *f, int sys_errno, const char *path);
