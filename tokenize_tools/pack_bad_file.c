#include "pack_bad_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static int fail(const char *path, const char *what)
{
    int reason = errno;
    return cli_error(cli_errno_exit_code(reason), "%s: cannot %s: %s", path, what,
                     strerror(reason));
}

static bool is_taken(const pack_bad_file *f)
{
    struct stat st;
    return !f->replace && lstat(f->path, &st) == 0;
}

static int open_partial(pack_bad_file *f, uint64_t keep_bytes)
{
    struct stat st;
    f->fd = open(f->partial, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return fail(f->partial, "create");
    if (!S_ISREG(st.st_mode))
        return cli_error(CLI_INPUT, "%s: is no regular file", f->partial);
    if ((uint64_t)st.st_size < keep_bytes)
        return cli_error(CLI_DATASET,
                         "%s: has %lld bytes and should have %llu; begin anew with "
                         "--restart",
                         f->partial, (long long)st.st_size, (unsigned long long)keep_bytes);
    if (ftruncate(f->fd, (off_t)keep_bytes) != 0 || lseek(f->fd, 0, SEEK_END) < 0)
        return fail(f->partial, "write");
    return CLI_OK;
}

int pack_bad_file_open(pack_bad_file *f, const pack_bad_file_options *options)
{
    struct stat st;
    f->fd = -1;
    f->replace = options->replace;
    f->sys_errno = 0;
    f->n_bytes = options->keep_bytes;
    f->n_buffered = 0;
    size_t n = (size_t)snprintf(f->path, sizeof f->path, "%s", options->path);
    if (n >= sizeof f->path)
        return cli_usage("--bad-documents: the path is too long");
    snprintf(f->partial, sizeof f->partial, "%s.partial", f->path);
    if (options->may_be_placed && lstat(f->partial, &st) != 0)
        return CLI_OK;
    if (is_taken(f))
        return cli_error(CLI_EXISTS,
                         "%s: is there already; replace it with --force, or name "
                         "another file with --bad-documents",
                         f->path);
    return open_partial(f, options->keep_bytes);
}

static void write_all(pack_bad_file *f, const void *data, size_t n_bytes)
{
    const uint8_t *p = data;
    while (n_bytes > 0 && f->sys_errno == 0) {
        ssize_t n = write(f->fd, p, n_bytes);
        if (n < 0 && errno != EINTR)
            f->sys_errno = errno;
        if (n > 0) {
            p += n;
            n_bytes -= (size_t)n;
        }
    }
}

void pack_bad_file_flush(pack_bad_file *f)
{
    write_all(f, f->buffer, f->n_buffered);
    f->n_buffered = 0;
}

void pack_bad_file_write(pack_bad_file *f, const void *data, size_t n_bytes)
{
    f->n_bytes += n_bytes;
    if (n_bytes > sizeof f->buffer - f->n_buffered)
        pack_bad_file_flush(f);
    if (n_bytes > sizeof f->buffer) {
        write_all(f, data, n_bytes);
    } else if (n_bytes > 0) {
        memcpy(f->buffer + f->n_buffered, data, n_bytes);
        f->n_buffered += n_bytes;
    }
}

int pack_bad_file_place(pack_bad_file *f, uint64_t n_bytes, pack_error *err)
{
    if (f->fd < 0)
        return CLI_OK;
    if (n_bytes == 0) {
        pack_bad_file_close(f, false);
        if (f->replace)
            unlink(f->path);
        return CLI_OK;
    }
    if (is_taken(f))
        return pack_error_set(err, CLI_EXISTS, "%.500s: is there already", f->path);
    if (ftruncate(f->fd, (off_t)n_bytes) != 0 || fsync(f->fd) != 0 ||
        rename(f->partial, f->path) != 0) {
        int reason = errno;
        return pack_error_set(err, cli_errno_exit_code(reason), "%.500s: cannot write: %s", f->path,
                              strerror(reason));
    }
    close(f->fd);
    f->fd = -1;
    return CLI_OK;
}

void pack_bad_file_close(pack_bad_file *f, bool keep)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    if (!keep)
        unlink(f->partial);
}
