/* SPDX-License-Identifier: Apache-2.0 */
#include "request/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

int pack_error_set(pack_error *err, int exit_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->exit_code = exit_code;
    err->start_over = err->of_output = false;
    err->hint = NULL;
    err->sys_errno = 0;
    err->file_bytes = 0;
    return exit_code;
}

int pack_error_from_writer(pack_error *err, const tokmap_error *from)
{
    pack_error_set(err, cli_exit_code(from), "%s",
                   from->text[0] ? from->text : tokmap_status_text(from->status));
    err->hint = cli_hint(from);
    err->start_over = from->status == TOKMAP_ERR_MISMATCH;
    err->of_output = true;
    err->sys_errno = from->sys_errno;
    err->file_bytes = from->file_bytes;
    return err->exit_code;
}

void pack_error_set_cause(pack_error *err, int sys_errno, uint32_t file_bytes)
{
    err->hint = cli_hint(&(tokmap_error){.sys_errno = sys_errno});
    err->sys_errno = sys_errno;
    err->file_bytes = file_bytes;
}

int pack_error_from_system(pack_error *err, const char *path, const char *what, int sys_errno)
{
    pack_error_set(err, cli_errno_exit_code(sys_errno), "%.500s: cannot %s: %s", path, what,
                   strerror(sys_errno));
    pack_error_set_cause(err, sys_errno, (uint32_t)strnlen(path, 500));
    err->of_output = true;
    return err->exit_code;
}

int pack_error_no_memory(pack_error *err)
{
    return pack_error_set(err, CLI_AGAIN, "out of memory");
}

int pack_error_print(const pack_error *err)
{
    cli_error_of_system(err->exit_code, err->sys_errno, err->file_bytes, err->text);
    if (err->hint)
        fprintf(stderr, "%s\n", err->hint);
    return err->exit_code;
}
