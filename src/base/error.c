/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define MAX_STRUCT_BYTES 4096 /* no struct is larger */

const char *tokmap_version(void)
{
    return TOKMAP_VERSION_TEXT;
}

const char *tokmap_status_text(tokmap_status status)
{
    static const struct {
        tokmap_status status;
        const char *text;
    } all[] = {{TOKMAP_OK, "success"},
               {TOKMAP_END, "no more data"},
               {TOKMAP_IN_PIECES, "not in one piece of memory"},
               {TOKMAP_ERR_ARGUMENT, "invalid argument"},
               {TOKMAP_ERR_MEMORY, "out of memory"},
               {TOKMAP_ERR_IO, "input/output error"},
               {TOKMAP_ERR_NOT_A_DATASET, "not a tokmap dataset"},
               {TOKMAP_ERR_VERSION, "format of a newer version"},
               {TOKMAP_ERR_CORRUPT, "damaged dataset"},
               {TOKMAP_ERR_MISMATCH, "files or options do not match"},
               {TOKMAP_ERR_UNSUPPORTED, "not supported by this build"},
               {TOKMAP_ERR_EXISTS, "output exists"},
               {TOKMAP_ERR_LOCKED, "another writer has the output open"},
               {TOKMAP_ERR_FORKED, "belongs to the parent process"},
               {TOKMAP_ERR_DEVICE, "no working GPU"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].status == status)
            return all[i].text;
    return "unknown status";
}

void tokmap_i_error_clear(tokmap_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

/* Leaves out the middle of a long text, so that a long path does not hide what happened to it. */
static void copy_shortened(tokmap_error *err, const char *text, size_t n_bytes)
{
    static const char gap[] = " ... ";
    const size_t room = sizeof err->text - 1, head = room / 3, tail = room - head - strlen(gap);
    if (n_bytes <= room) {
        memcpy(err->text, text, n_bytes + 1);
        return;
    }
    memcpy(err->text, text, head);
    memcpy(err->text + head, gap, strlen(gap));
    memcpy(err->text + head + strlen(gap), text + n_bytes - tail, tail + 1);
}

tokmap_status tokmap_i_fail(tokmap_error *err, tokmap_i_cause cause, const char *format, ...)
{
    if (!err || !cause.status)
        return cause.status;
    err->status = cause.status;
    err->sys_errno = cause.sys_errno;
    err->file_offset = cause.file_offset;
    char text[8192];
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text - 200, format, args) < 0)
        text[0] = 0;
    va_end(args);
    if (cause.sys_errno) {
        const size_t used = strlen(text);
        const int error = errno;
        errno = cause.sys_errno;
        snprintf(text + used, sizeof text - used, ": %m"); /* strerror is not for threads */
        errno = error;
    }
    copy_shortened(err, text, strlen(text));
    for (char *p = err->text; *p; p++) /* names may hold control characters; the text is one line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return cause.status;
}

/* struct_size is the first field. */
static size_t size_of(const void *caller)
{
    size_t n_bytes;
    memcpy(&n_bytes, caller, sizeof n_bytes);
    return n_bytes;
}

tokmap_status tokmap_i_check_struct(const void *dst, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    if (!dst)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is NULL", kind->name);
    const size_t n_bytes = size_of(dst);
    if (n_bytes >= kind->least_bytes && n_bytes <= MAX_STRUCT_BYTES)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: struct_size is %zu: set it to its sizeof",
                kind->name, n_bytes);
}

tokmap_status tokmap_i_take_known(void *dst, const void *src, size_t n_bytes,
                                  const tokmap_i_struct_kind *kind, tokmap_error *err)
{
    memcpy(dst, src, MIN(n_bytes, kind->n_bytes));
    if (n_bytes <= kind->n_bytes ||
        is_zero((const uint8_t *)src + kind->n_bytes, n_bytes - kind->n_bytes))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: sets a field that this library (%s) does not know, because it is older than "
                "the header: update the library, or leave that field 0",
                kind->name, tokmap_version());
}

tokmap_status tokmap_i_take_options(void *dst, const void *src, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    memset(dst, 0, kind->n_bytes);
    const tokmap_status status = tokmap_i_check_struct(src, kind, err);
    return status ? status : tokmap_i_take_known(dst, src, size_of(src), kind, err);
}

tokmap_status tokmap_i_give_struct(void *dst, const void *full, const tokmap_i_struct_kind *kind,
                                   tokmap_error *err)
{
    const tokmap_status status = tokmap_i_check_struct(dst, kind, err);
    if (status)
        return status;
    const size_t n_bytes = size_of(dst);
    memset(dst, 0, n_bytes);
    memcpy(dst, full, MIN(n_bytes, kind->n_bytes));
    memcpy(dst, &n_bytes, sizeof n_bytes);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_check_stride(uint32_t stride, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    if (stride >= kind->least_bytes && stride <= MAX_STRUCT_BYTES)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "stride of %s is %u: set it to sizeof(%s)", kind->name,
                (unsigned)stride, kind->name);
}

tokmap_status tokmap_i_check_flag(const char *name, int64_t value, tokmap_error *err)
{
    if (value == 0 || value == 1)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is %lld: must be 0 or 1", name, (long long)value);
}

tokmap_status tokmap_i_take_ignore_index(int32_t has, int64_t *ignore_index, tokmap_error *err)
{
    if (!has && *ignore_index != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "ignore_index is %lld, but has_ignore_index is 0",
                    (long long)*ignore_index);
    if (!has)
        *ignore_index = -100;
    return tokmap_i_check_flag("has_ignore_index", has, err);
}
