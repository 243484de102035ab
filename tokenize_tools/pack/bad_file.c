#include "pack/bad_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/output_file.h"

static int fail_system(const char *path, const char *what)
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

/* Adds the bytes that an earlier run wrote to the checksum. */
static bool read_back(pack_bad_file *f, uint64_t n_bytes)
{
    while (n_bytes > 0) {
        size_t wanted = n_bytes < sizeof f->buffer ? (size_t)n_bytes : sizeof f->buffer;
        ssize_t n = read(f->fd, f->buffer, wanted);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0; /* a shorter file fails the checksum */
        XXH3_64bits_update(f->checksum, f->buffer, (size_t)n);
        n_bytes -= (uint64_t)n;
    }
    return true;
}

static int refuse_damaged(const char *path, uint64_t n_bytes)
{
    return cli_error(CLI_DATASET,
                     "%s: its first %" PRIu64
                     " bytes are not the ones that the interrupted run wrote; "
                     "use --restart to start over",
                     path, n_bytes);
}

static int open_partial(pack_bad_file *f, const pack_bad_mark *keep)
{
    struct stat st;
    output_file out;
    bool missing = keep->n_bytes > 0 && lstat(f->partial, &st) != 0;
    int code = output_name(&out, f->path, "", f->replace);
    if (code == CLI_OK && !missing)
        code = keep->n_bytes > 0 ? output_resume(&out) : output_begin(&out);
    if (code != CLI_OK)
        return code;
    f->fd = out.fd;
    if (!missing && !read_back(f, keep->n_bytes))
        return fail_system(f->partial, "read");
    if (keep->n_bytes > 0 && (missing || XXH3_64bits_digest(f->checksum) != keep->checksum))
        return refuse_damaged(f->partial, keep->n_bytes);
    if (ftruncate(f->fd, (off_t)keep->n_bytes) != 0 || lseek(f->fd, 0, SEEK_END) < 0)
        return fail_system(f->partial, "write");
    return CLI_OK;
}

/* The earlier run has given the file its name, unless it was empty. */
static int check_placed(pack_bad_file *f, const pack_bad_mark *keep)
{
    struct stat st;
    if (keep->n_bytes == 0)
        return CLI_OK;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool same = f->fd >= 0 && fstat(f->fd, &st) == 0 && (uint64_t)st.st_size == keep->n_bytes &&
                read_back(f, keep->n_bytes) && XXH3_64bits_digest(f->checksum) == keep->checksum;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    return same ? CLI_OK : refuse_damaged(f->path, keep->n_bytes);
}

int pack_bad_file_open(pack_bad_file *f, const pack_bad_file_options *options)
{
    struct stat st;
    f->fd = -1;
    f->replace = options->replace;
    f->sys_errno = 0;
    f->n_bytes = options->keep.n_bytes;
    f->n_buffered = 0;
    f->checksum = XXH3_createState();
    if (!f->checksum)
        return cli_no_memory();
    XXH3_64bits_reset(f->checksum);
    size_t n = (size_t)snprintf(f->path, sizeof f->path, "%s", options->path);
    if (n >= sizeof f->path)
        return cli_usage("--bad-documents: the path is too long");
    snprintf(f->partial, sizeof f->partial, "%s.partial", f->path);
    if (options->may_be_placed && lstat(f->partial, &st) != 0)
        return check_placed(f, &options->keep);
    if (is_taken(f))
        return cli_error(CLI_EXISTS,
                         "%s: already exists; replace it with --force, or name "
                         "another file with --bad-documents",
                         f->path);
    return open_partial(f, &options->keep);
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
    XXH3_64bits_update(f->checksum, data, n_bytes);
    if (n_bytes > sizeof f->buffer - f->n_buffered)
        pack_bad_file_flush(f);
    if (n_bytes > sizeof f->buffer) {
        write_all(f, data, n_bytes);
    } else if (n_bytes > 0) {
        memcpy(f->buffer + f->n_buffered, data, n_bytes);
        f->n_buffered += n_bytes;
    }
}

pack_bad_mark pack_bad_file_mark(const pack_bad_file *f)
{
    return (pack_bad_mark){f->n_bytes, XXH3_64bits_digest(f->checksum)};
}

static int fail_to_write(const pack_bad_file *f, pack_error *err)
{
    int reason = errno;
    return pack_error_set(err, cli_errno_exit_code(reason), "%.500s: cannot write: %s", f->partial,
                          strerror(reason));
}

int pack_bad_file_sync(pack_bad_file *f, pack_error *err)
{
    return fdatasync(f->fd) == 0 ? CLI_OK : fail_to_write(f, err);
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
    struct stat st, named;
    if (fstat(f->fd, &st) != 0 || lstat(f->partial, &named) != 0 || st.st_ino != named.st_ino ||
        st.st_dev != named.st_dev) {
        pack_error_set(err, CLI_DATASET, "%.500s: was removed or replaced while it was written",
                       f->partial);
        err->start_over = true;
        return CLI_DATASET;
    }
    if (is_taken(f))
        return pack_error_set(err, CLI_EXISTS, "%.500s: already exists", f->path);
    if (ftruncate(f->fd, (off_t)n_bytes) != 0 || fsync(f->fd) != 0 ||
        rename(f->partial, f->path) != 0)
        return fail_to_write(f, err);
    close(f->fd);
    f->fd = -1;
    return output_flush_folder(f->path);
}

void pack_bad_file_close(pack_bad_file *f, bool keep)
{
    XXH3_freeState(f->checksum);
    f->checksum = NULL;
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    if (!keep)
        unlink(f->partial);
}
