/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/regular_file.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "system/platform.h"

static bool read_file(void *user, uint64_t offset, void *dst, size_t n_bytes)
{
    regular_file *file = user;
    size_t n_read;
    file->sys_errno = tokmap_i_file_read(file->fd, dst, n_bytes, offset, &n_read);
    return n_read == n_bytes;
}

bool regular_file_path(regular_file *file, const char *path, size_t n_drop, const char *suffix)
{
    size_t n = strlen(path) - n_drop;
    int n_out = snprintf(file->path, sizeof file->path, "%.*s%s", (int)n, path, suffix);
    file->fd = -1;
    return n_out >= 0 && (size_t)n_out < sizeof file->path;
}

bool regular_file_exists(const regular_file *file)
{
    return file_exists(file->path);
}

int regular_file_open(regular_file *file)
{
    const int error = file_open(file->path, &file->fd, &file->opened);
    if (error)
        return cli_error(cli_errno_exit_code(error), "%s: cannot open: %s", file->path,
                         strerror(error));
    if (file->opened.kind != FILE_REGULAR)
        return cli_error(CLI_INPUT, "%s: is %s, not a file of tokens", file->path,
                         file->opened.kind == FILE_FOLDER ? "a folder" : "not a regular file");
    file->sys_errno = 0;
    file->bytes = (foreign_bytes){file->opened.n_bytes, read_file, file};
    return CLI_OK;
}

int regular_file_check(const regular_file *file)
{
    file_facts now;
    if (file->fd < 0)
        return CLI_OK;
    if (file_describe_open(file->fd, &now) == 0 && now.n_bytes == file->opened.n_bytes &&
        now.mtime_ns == file->opened.mtime_ns)
        return CLI_OK;
    return cli_error(CLI_INPUT, "%s: was modified while it was read; nothing is published",
                     file->path);
}

bool regular_file_head(const regular_file *file, uint8_t *head, size_t *n_head, failure *err)
{
    bool is_short = file->bytes.size < FOREIGN_HEAD_BYTES;
    *n_head = is_short ? (size_t)file->bytes.size : FOREIGN_HEAD_BYTES;
    return foreign_read(&file->bytes, 0, head, *n_head, err);
}

void regular_file_close(regular_file *file)
{
    tokmap_i_file_close(file->fd);
    file->fd = -1;
}
