/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - fills a tokmap_error; copies and checks the options of a caller. */
#pragma once

#include <stddef.h>

#include "tokmap.h"

/* What an error holds besides its text. */
typedef struct tokmap_i_cause {
    tokmap_status status;
    int sys_errno;
    uint64_t file_offset;
} tokmap_i_cause;

/* Fills err (may be NULL), unless the status is TOKMAP_OK, and returns the status. sys_errno adds
 * ": " and the system's text for it. */
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
    return (tokmap_i_cause){errno_value ? TOKMAP_ERR_IO : TOKMAP_OK, errno_value, file_offset};
}

#define FAIL_CAUSE(err, status, errno_value, offset, ...)                                          \
    tokmap_i_failed(                                                                               \
        tokmap_i_fail(err, (tokmap_i_cause){status, errno_value, offset}, __VA_ARGS__), status)
#define FAIL(err, status, ...) FAIL_CAUSE(err, status, 0, 0, __VA_ARGS__)
#define FAIL_AT(err, status, offset, ...) FAIL_CAUSE(err, status, 0, offset, __VA_ARGS__)
#define FAIL_IO(err, errno_value, ...) FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, 0, __VA_ARGS__)
#define FAIL_IO_AT(err, errno_value, offset, ...)                                                  \
    FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, offset, __VA_ARGS__)
/* The same for the result of a system call, which may be 0: then the status is TOKMAP_OK. */
#define CHECK_IO(err, errno_value, ...) CHECK_IO_AT(err, errno_value, 0, __VA_ARGS__)
#define CHECK_IO_AT(err, errno_value, offset, ...)                                                 \
    tokmap_i_fail(err, tokmap_i_cause_of_io(errno_value, offset), __VA_ARGS__)
#define FAIL_MEMORY(err) FAIL(err, TOKMAP_ERR_MEMORY, "out of memory")
/* For a call of the public headers. */
#define FAIL_NULL(err) FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: an argument is NULL", __func__)

void tokmap_i_error_clear(tokmap_error *err);

/* ---- Options of a caller that was built against this header, an older or a newer one ---- */

/* The size of a struct in the version where this member was the last one. */
#define SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof((type *)0)->member)

typedef struct tokmap_i_struct_kind {
    const char *name;   /* of the struct */
    size_t n_bytes;     /* sizeof in this library */
    size_t least_bytes; /* the least that a caller can have */
} tokmap_i_struct_kind;

#define STRUCT_KIND(type, last)                                                                    \
    .name = #type, .n_bytes = sizeof(type), .least_bytes = SIZE_UP_TO(type, last)

/* Copies them to dst; fields that the caller does not have become 0. TOKMAP_ERR_ARGUMENT: src is
 * NULL, its size makes no sense, or it sets a field that this library does not know. */
tokmap_status tokmap_i_take_options(void *dst, const void *src, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
/* The same for one element, of n_bytes, of a caller's array whose stride was checked. Fields that
 * the caller does not have are not changed in dst. */
tokmap_status tokmap_i_take_known(void *dst, const void *src, size_t n_bytes,
                                  const tokmap_i_struct_kind *kind, tokmap_error *err);
/* For the struct of a caller that a call fills in: checks that its struct_size is set; fills in the
 * fields that both sides know, and sets the rest to 0. */
tokmap_status tokmap_i_check_struct(const void *dst, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
tokmap_status tokmap_i_give_struct(void *dst, const void *full, const tokmap_i_struct_kind *kind,
                                   tokmap_error *err);
tokmap_status tokmap_i_check_stride(uint32_t stride, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
/* TOKMAP_ERR_ARGUMENT unless the flag is 0 or 1. */
tokmap_status tokmap_i_check_flag(const char *name, int64_t value, tokmap_error *err);
/* The value of labels that do not count: -100 unless `has` is set. */
tokmap_status tokmap_i_take_ignore_index(int32_t has, int64_t *ignore_index, tokmap_error *err);
