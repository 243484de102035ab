/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"

const char *tokmap_version(void)
{
    return TOKMAP_VERSION_TEXT;
}

uint32_t tokmap_version_number(void)
{
    return TOKMAP_VERSION_NUMBER;
}

const char *tokmap_status_text(tokmap_status status)
{
    static const struct {
        tokmap_status status;
        const char *text;
    } all[] = {{TOKMAP_OK, "success"},
               {TOKMAP_END, "no more data"},
               {TOKMAP_IN_PIECES, "not in one piece of memory"},
               {TOKMAP_NOT_READY, "the time is up"},
               {TOKMAP_ERR_ARGUMENT, "invalid argument"},
               {TOKMAP_ERR_MEMORY, "out of memory"},
               {TOKMAP_ERR_IO, "input/output error"},
               {TOKMAP_ERR_NOT_A_DATASET, "not a tokmap dataset"},
               {TOKMAP_ERR_VERSION, "format of a newer version"},
               {TOKMAP_ERR_CORRUPT, "damaged data"},
               {TOKMAP_ERR_MISMATCH, "files or options do not match"},
               {TOKMAP_ERR_UNSUPPORTED, "not supported"},
               {TOKMAP_ERR_EXISTS, "output exists"},
               {TOKMAP_ERR_LOCKED, "a writer has the output open"},
               {TOKMAP_ERR_FORKED, "belongs to the parent process"},
               {TOKMAP_ERR_DEVICE, "no working GPU"},
               {TOKMAP_ERR_STOPPED, "stopped by the caller"}};
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
    err->reason = cause.reason;
    err->file_bytes = 0;
    char text[8192];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    if (strncmp(format, "%s: ", 4) == 0)
        err->file_bytes = (uint32_t)strlen(va_arg(again, const char *));
    va_end(again);
    if (real_print_list(text, sizeof text - 200, format, args) < 0)
        text[0] = 0;
    va_end(args);
    if (cause.sys_errno) {
        const size_t used = strlen(text);
        const int error = errno;
        errno = cause.sys_errno;
        snprintf(text + used, sizeof text - used, ": %m"); /* strerror is not for threads */
        errno = error;
    }
    if (strlen(text) >= sizeof err->text)
        err->file_bytes = 0; /* a part of the name may be left out */
    copy_shortened(err, text, strlen(text));
    for (char *p = err->text; *p; p++) /* names may hold control characters; the text is one line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return cause.status;
}

/* ---- The failure of a parser ---- */

__attribute__((format(printf, 2, 0))) static void set_text(failure *f, const char *format,
                                                           va_list args, const char *after)
{
    char text[sizeof f->text];
    const int n = real_print_list(text, sizeof text, format, args);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "%s", after);
    memcpy(f->text, text, strlen(text) + 1);
}

bool fail_system(failure *f, int status, const char *format, ...)
{
    char after[256] = "";
    va_list args;
    va_start(args, format);
    if (status > 0) {
        errno = status; /* %m, because strerror is not for threads */
        snprintf(after, sizeof after, ": %m");
    }
    set_text(f, format, args, after);
    va_end(args);
    f->status = status;
    f->place = 0;
    f->has_place = false;
    f->file_bytes = 0;
    f->kind = NULL;
    return false;
}

bool fail_memory(failure *f)
{
    *f = (failure){.status = ENOMEM, .text = "out of memory"};
    return false;
}

bool fail_kind(failure *f, const char *kind)
{
    f->kind = kind;
    return false;
}

bool fail_at(failure *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!f->has_place) {
        set_text(f, format, args, f->text);
        f->file_bytes = 0;
    }
    va_end(args);
    f->has_place = true;
    return false;
}

enum {
    PATH_IN_TEXT = 200 /* bytes; what is longer is cut */
};

bool fail_in_file(failure *f, const char *path)
{
    const size_t n_bytes = strlen(path);
    const bool has_place = f->has_place;
    fail_at(f, "%.*s: ", PATH_IN_TEXT, path);
    if (!has_place && n_bytes <= PATH_IN_TEXT)
        f->file_bytes = (uint32_t)n_bytes;
    return false;
}

bool fail_file(failure *f, int sys_errno, const char *path)
{
    const size_t n_bytes = strlen(path);
    fail_system(f, sys_errno, "%.*s", 2 * PATH_IN_TEXT, path);
    if (n_bytes <= 2 * PATH_IN_TEXT)
        f->file_bytes = (uint32_t)n_bytes;
    return false;
}
