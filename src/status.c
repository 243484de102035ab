#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tokmap_version(void)
{
    return TOKMAP_VERSION_TEXT;
}

const char *tokmap_status_text(tokmap_status status)
{
    switch (status) {
    case TOKMAP_OK:
        return "success";
    case TOKMAP_END:
        return "nothing more";
    case TOKMAP_ERR_ARGUMENT:
        return "invalid argument";
    case TOKMAP_ERR_MEMORY:
        return "out of memory";
    case TOKMAP_ERR_IO:
        return "input/output error";
    case TOKMAP_ERR_NOT_A_DATASET:
        return "not a tokmap dataset";
    case TOKMAP_ERR_VERSION:
        return "newer format version";
    case TOKMAP_ERR_CORRUPT:
        return "damaged dataset";
    case TOKMAP_ERR_MISMATCH:
        return "does not belong together";
    case TOKMAP_ERR_UNSUPPORTED:
        return "not supported by this build";
    case TOKMAP_ERR_EXISTS:
        return "output exists";
    case TOKMAP_ERR_LOCKED:
        return "output is being written by another process";
    }
    return "unknown status";
}

void tokmap_i_error_clear(tokmap_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

tokmap_status tokmap_i_fail(tokmap_error *err, tokmap_i_cause cause, const char *format, ...)
{
    if (!err)
        return cause.status;
    err->status = cause.status;
    err->sys_errno = cause.sys_errno;
    err->file_offset = cause.file_offset;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    const size_t used = n < 0 ? 0 : (size_t)n < sizeof err->text ? (size_t)n : sizeof err->text - 1;
    if (cause.sys_errno) {
        char buffer[128];
        const char *words = strerror_r(cause.sys_errno, buffer, sizeof buffer);
        snprintf(err->text + used, sizeof err->text - used, ": %s", words);
    }
    for (char *p = err->text; *p; p++) /* file names may hold anything; the text is one line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return cause.status;
}
