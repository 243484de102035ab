/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_text(failure *f, const char *format, va_list args, const char *after)
    __attribute__((format(printf, 2, 0)));
static void set_failure(failure *f, int status, const char *format, va_list args, const char *after)
    __attribute__((format(printf, 3, 0)));

static void set_text(failure *f, const char *format, va_list args, const char *after)
{
    char text[sizeof f->text];
    const int n = vsnprintf(text, sizeof text, format, args);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "%s", after);
    memcpy(f->text, text, strlen(text) + 1);
}

static void set_failure(failure *f, int status, const char *format, va_list args, const char *after)
{
    f->status = status;
    f->place = 0;
    f->has_place = false;
    set_text(f, format, args, after);
}

bool fail(failure *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_failure(f, FAILURE_CONTENT, format, args, "");
    va_end(args);
    return false;
}

bool fail_changed(failure *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_failure(f, FAILURE_CHANGED, format, args, "");
    va_end(args);
    return false;
}

bool fail_system(failure *f, int sys_errno, const char *format, ...)
{
    char after[256];
    va_list args;
    va_start(args, format);
    errno = sys_errno; /* %m, because strerror is not for threads */
    snprintf(after, sizeof after, ": %m");
    set_failure(f, sys_errno, format, args, after);
    va_end(args);
    return false;
}

bool fail_memory(failure *f)
{
    *f = (failure){.status = ENOMEM, .text = "out of memory"};
    return false;
}

bool fail_at(failure *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!f->has_place)
        set_text(f, format, args, f->text);
    va_end(args);
    f->has_place = true;
    return false;
}
