#include "foreign/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static bool read_file(void *user, uint64_t offset, void *dst, size_t n_bytes)
{
    regular_file *file = user;
    uint8_t *p = dst;
    while (n_bytes > 0) {
        ssize_t n = pread(file->fd, p, n_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            file->sys_errno = n < 0 ? errno : 0;
            return false;
        }
        p += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return true;
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
    struct stat st;
    return stat(file->path, &st) == 0;
}

int regular_file_open(regular_file *file)
{
    /* Without O_NONBLOCK a named pipe would wait here for a writer. */
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &file->opened) != 0) {
        int code = cli_errno_exit_code(errno);
        return cli_error(code, "%s: cannot open: %s", file->path, strerror(errno));
    }
    if (!S_ISREG(file->opened.st_mode)) {
        return cli_error(CLI_INPUT, "%s: is %s, not a file of tokens", file->path,
                         S_ISDIR(file->opened.st_mode) ? "a folder" : "no regular file");
    }
    file->sys_errno = 0;
    file->bytes = (foreign_bytes){(uint64_t)file->opened.st_size, read_file, file};
    return CLI_OK;
}

int regular_file_check(const regular_file *file)
{
    const struct stat *old = &file->opened;
    struct stat now;
    if (file->fd < 0)
        return CLI_OK;
    if (fstat(file->fd, &now) == 0 && now.st_size == old->st_size &&
        memcmp(&now.st_mtim, &old->st_mtim, sizeof now.st_mtim) == 0)
        return CLI_OK;
    return cli_error(CLI_INPUT, "%s: was changed while it was read; nothing is published",
                     file->path);
}

bool regular_file_head(const regular_file *file, uint8_t *head, size_t *n_head, foreign_error *err)
{
    bool is_short = file->bytes.size < FOREIGN_HEAD_BYTES;
    *n_head = is_short ? (size_t)file->bytes.size : FOREIGN_HEAD_BYTES;
    return foreign_read(&file->bytes, 0, head, *n_head, err);
}

void regular_file_close(regular_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
