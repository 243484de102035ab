/* status.h - filling a tokmap_error, and taking over the options of a caller. */
#ifndef TOKMAP_STATUS_H
#define TOKMAP_STATUS_H

#include "tokmap.h"

/* What is said of a failure besides its text. */
typedef struct tokmap_i_cause {
    tokmap_status status;
    int sys_errno;
    uint64_t file_offset;
} tokmap_i_cause;

/* Fills err (may be NULL) and returns the status. sys_errno adds ": " and the system's words. */
tokmap_status tokmap_i_fail(tokmap_error *err, tokmap_i_cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What tokmap_i_fail returns, where compilers and analysers can see what it is. */
static inline tokmap_status tokmap_i_failed(tokmap_status returned, tokmap_status status)
{
    (void)returned;
    return status;
}

#define FAIL_CAUSE(err, status, errno_value, offset, ...)                                          \
    tokmap_i_failed(                                                                               \
        tokmap_i_fail(err, (tokmap_i_cause){status, errno_value, offset}, __VA_ARGS__), status)
#define FAIL(err, status, ...) FAIL_CAUSE(err, status, 0, 0, __VA_ARGS__)
#define FAIL_AT(err, status, offset, ...) FAIL_CAUSE(err, status, 0, offset, __VA_ARGS__)
#define FAIL_IO(err, errno_value, ...) FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, 0, __VA_ARGS__)
#define FAIL_IO_AT(err, errno_value, offset, ...)                                                  \
    FAIL_CAUSE(err, TOKMAP_ERR_IO, errno_value, offset, __VA_ARGS__)
#define FAIL_MEMORY(err) FAIL(err, TOKMAP_ERR_MEMORY, "out of memory")

void tokmap_i_error_clear(tokmap_error *err);

/* ---- Options of a caller that was built against this header, an older or a newer one ---- */

typedef struct tokmap_i_options_kind {
    const char *name;   /* of the struct */
    size_t n_bytes;     /* as this library knows it, */
    size_t least_bytes; /* and what no caller can do without */
} tokmap_i_options_kind;

#define OPTIONS_KIND(type, last)                                                                   \
    .name = #type, .n_bytes = sizeof(type), .least_bytes = SIZE_UP_TO(type, last)

/* Copies them to dst; what the caller does not know stays 0. TOKMAP_ERR_ARGUMENT: src is NULL, its
 * size makes no sense, or a byte after the struct that this library knows is not 0. */
tokmap_status tokmap_i_take_options(void *dst, const void *src, const tokmap_i_options_kind *kind,
                                    tokmap_error *err);
/* The same for one element of a caller's array, of n_bytes, with a stride that was checked: what
 * the caller does not know stays as it is in dst. */
tokmap_status tokmap_i_take_known(void *dst, const void *src, size_t n_bytes,
                                  const tokmap_i_options_kind *kind, tokmap_error *err);
tokmap_status tokmap_i_check_stride(uint32_t stride, const tokmap_i_options_kind *kind,
                                    tokmap_error *err);
/* A flag is 0 or 1. */
tokmap_status tokmap_i_check_flag(const char *name, int32_t value, tokmap_error *err);
/* What labels are that do not count: -100 unless it is set. */
tokmap_status tokmap_i_take_ignore_index(int32_t has, int64_t *ignore_index, tokmap_error *err);

#endif /* TOKMAP_STATUS_H */
