/* SPDX-License-Identifier: Apache-2.0 */
#include "system/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h> /* mkdir */
#include <sys/syscall.h>
#include <unistd.h>

#include "system/interrupted.h"
#include "system/platform.h"
#include "system/protected.h"

/* The most that one call copies, so that progress is shown and signals are handled in between. */
#define COPY_BYTES (64u << 20)

enum {
    MOST_OF_PATH = 300 /* in a message */
};

static int fail_exists(const char *path, tokmap_status status)
{
    const bool is_there = status == TOKMAP_ERR_EXISTS;
    tokmap_error err = {.status = status,
                        .reason = is_there ? TOKMAP_REASON_REPLACEABLE : TOKMAP_REASON_NONE,
                        .file_bytes = (uint32_t)strnlen(path, MOST_OF_PATH)};
    snprintf(err.text, sizeof err.text, "%.*s: %s", MOST_OF_PATH, path,
             is_there ? "already exists" : "another process is writing it");
    return cli_fail(&err);
}

int output_name(output_file *out, const char *prefix, const char *suffix, bool replace)
{
    *out = (output_file){.fd = -1, .replace = replace};
    int n = snprintf(out->path, sizeof out->path, "%s%s", prefix, suffix);
    if (n < 0 || (size_t)n >= sizeof out->path)
        return cli_error(CLI_USAGE, "%.200s...: the path is too long", prefix);
    snprintf(out->partial, sizeof out->partial, "%s.partial", out->path);
    file_facts facts;
    bool exists = file_describe_name(out->path, &facts) == 0;
    if (exists && !replace)
        return fail_exists(out->path, TOKMAP_ERR_EXISTS);
    if (exists && facts.kind == FILE_LINK)
        return cli_error(
            CLI_INPUT,
            "%s: is a symbolic link, which is not replaced; remove it, or give the name "
            "of the file that it points to",
            out->path);
    int code = path_check_output(out->path);
    /* A killed export leaves a second name of its input, which may be removed. */
    bool only_name = file_describe_name(out->partial, &facts) == 0 && facts.n_names == 1;
    return code == CLI_OK && only_name ? path_check_output(out->partial) : code;
}

int output_take_no_locks(void *options, const char *value)
{
    (void)options;
    (void)value;
    tokmap_i_file_take_no_locks();
    return CLI_OK;
}

/* ---- Folders ---- */

int output_flush_folder(const char *path)
{
    errno = tokmap_i_folder_sync(path);
    return errno == 0 ? CLI_OK : cli_fail_errno(path, "flush its folder", errno);
}

int output_make_folders(const char *path)
{
    char folder[4096 + 8];
    int code = CLI_OK;
    if (strlen(path) >= sizeof folder)
        return cli_error(CLI_USAGE, "%.200s...: the path is too long", path);
    strcpy(folder, path);
    for (char *slash = folder + 1; code == CLI_OK && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (!file_exists(folder)) { /* if it is a file, the next call fails */
            code = mkdir(folder, 0777) == 0 || errno == EEXIST
                       ? output_flush_folder(folder)
                       : cli_fail_errno(folder, "create the folder", errno);
        }
        *slash = '/';
    }
    return code;
}

/* ---- The partial file ---- */

/* Another process may have removed or renamed the file between open and lock. */
bool output_has_name(int fd, const char *path)
{
    file_facts by_fd, by_path;
    return file_describe_open(fd, &by_fd) == 0 && file_describe_name(path, &by_path) == 0 &&
           file_id_compare(&by_fd.id, &by_path.id) == 0;
}

/* Reports that a file could not be made or locked, with this errno. */
static int fail_lock(const char *path)
{
    if (errno == EWOULDBLOCK)
        return fail_exists(path, TOKMAP_ERR_LOCKED);
    return cli_fail_because(path, errno == ENOLCK ? tokmap_i_file_lock_text(errno) : "cannot write",
                            errno);
}

/* Removes the partial file of a process that was killed. It is never written to, because it may be
 * a link to another file. Returns CLI_OK also if it has disappeared in the meantime. */
static int remove_stale(const char *partial)
{
    if (!file_name_exists(partial)) /* if it cannot be made either, the next call says why */
        return CLI_OK;
    /* NFS locks only files that are open for writing. A link to a read-only file is locked
     * elsewhere. */
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(partial, O_RDWR | flags);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        fd = open(partial, O_RDONLY | flags);
    if (fd < 0)
        return errno == ENOENT ? CLI_OK : cli_fail_errno(partial, "take over", errno);
    int code = CLI_OK;
    errno = tokmap_i_file_lock_open(fd, false);
    if (errno != 0)
        code = fail_lock(partial);
    else if (output_has_name(fd, partial) && unlink(partial) != 0)
        code = cli_fail_errno(partial, "remove", errno);
    close(fd);
    return code;
}

int output_begin(output_file *out)
{
    file_facts facts;
    int code = output_make_folders(out->path);
    if (code == CLI_OK)
        code = remove_stale(out->partial);
    if (code != CLI_OK)
        return code;
    errno = tokmap_i_file_lock(out->partial, &out->fd);
    if (errno != 0)
        return fail_lock(out->path);
    if (file_describe_open(out->fd, &facts) != 0 || facts.n_bytes != 0 || facts.n_names != 1) {
        output_keep(out); /* another process has made it, and was killed */
        return fail_exists(out->partial, TOKMAP_ERR_LOCKED);
    }
    const char *text;
    errno = tokmap_i_file_probe(out->path, &text);
    if (errno == 0)
        return CLI_OK;
    code = cli_fail_because(out->path, text, errno);
    output_close(out);
    return code;
}

int output_resume(output_file *out)
{
    file_facts facts;
    int fd = open(out->partial, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || file_describe_open(fd, &facts) != 0)
        return cli_fail_errno(out->partial, "open", errno);
    int code = CLI_OK;
    if (facts.kind != FILE_REGULAR)
        code = cli_error(CLI_INPUT, "%s: is not a regular file", out->partial);
    else if (facts.n_names > 1)
        code = cli_error(CLI_EXISTS,
                         "%s: also has another name (a hard link); remove one of them to resume",
                         out->partial);
    else if ((errno = tokmap_i_file_lock_open(fd, false)) != 0)
        code = fail_lock(out->partial);
    if (code == CLI_OK)
        out->fd = fd;
    else
        close(fd);
    return code;
}

int output_try_write(output_file *out, const void *data, size_t n_bytes)
{
    const uint8_t *p = data;
    unsigned n_times = 0;
    while (n_bytes > 0) {
        ssize_t n = write(out->fd, p, n_bytes);
        if (n < 0 && tokmap_i_is_interrupted(&n_times))
            continue;
        if (n <= 0)
            return n == 0 ? EIO : errno;
        p += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

int output_write(output_file *out, const void *data, size_t n_bytes)
{
    errno = output_try_write(out, data, n_bytes);
    return errno == 0 ? CLI_OK : cli_fail_errno(out->path, "write", errno);
}

int output_try_cut(output_file *out, uint64_t n_bytes)
{
    return ftruncate(out->fd, (off_t)n_bytes) != 0 || lseek(out->fd, 0, SEEK_END) < 0 ? errno : 0;
}

/* ---- Copies ---- */

/* Reports that the source was truncated or cannot be read. */
static int fail_source(const char *path, uint64_t offset, bool has_ended)
{
    tokmap_error err = {.status = TOKMAP_ERR_IO, .sys_errno = has_ended ? 0 : errno};
    snprintf(err.text, sizeof err.text, "%.300s: cannot read at byte %" PRIu64 ": %s", path, offset,
             has_ended ? "the file ends there; it was truncated" : strerror(errno));
    return cli_fail(&err);
}

#define BUFFER_BYTES (1 << 20)

static int copy_by_hand(output_file *out, const output_source *src, uint64_t offset, size_t n_bytes)
{
    char *buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        return cli_no_memory();
    int code = CLI_OK;
    while (code == CLI_OK && n_bytes > 0) {
        size_t n_wanted = n_bytes < BUFFER_BYTES ? n_bytes : BUFFER_BYTES, n;
        errno = tokmap_i_file_read(src->fd, buffer, n_wanted, offset, &n);
        code = n == 0 ? fail_source(src->path, offset, errno == 0) : output_write(out, buffer, n);
        offset += n;
        n_bytes -= n;
    }
    free(buffer);
    return code;
}

int output_copy(output_file *out, output_source *src, uint64_t src_offset, uint64_t n_bytes)
{
    int code = CLI_OK;
    bool in_kernel = true;
    for (uint64_t done = 0; code == CLI_OK && done < n_bytes;) {
        size_t n_wanted = n_bytes - done < COPY_BYTES ? (size_t)(n_bytes - done) : COPY_BYTES;
        off_t from = (off_t)(src_offset + done);
        ssize_t n = in_kernel ? copy_file_range(src->fd, &from, out->fd, NULL, n_wanted, 0) : 0;
        if (n <= 0) {
            /* After any error, read and write either work or report the cause. */
            in_kernel = false;
            code = copy_by_hand(out, src, src_offset + done, n_wanted);
            n = (ssize_t)n_wanted;
        }
        done += (size_t)n;
        src->n_copied += (size_t)n;
        cli_progress_update(src->progress, src->n_copied, src->n_to_copy);
    }
    cli_progress_clear(src->progress);
    return code;
}

/* ---- Final names ---- */

/* Renames a file. Returns 0, or -1 with errno = EEXIST if the name is taken. */
static int rename_to_free_name(const char *from, const char *to)
{
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) /* for musl */
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* The file system does not support that flag; link() does not replace files either. */
    if (link(from, to) == 0)
        return unlink(from);
    if (errno != EEXIST)
        errno = tokmap_i_file_rename(from, to);
    return errno == 0 ? 0 : -1;
}

int output_give_name(output_file *out)
{
    const int failed = out->replace ? rename(out->partial, out->path)
                                    : rename_to_free_name(out->partial, out->path);
    out->is_placed = !failed;
    return !failed           ? CLI_OK
           : errno == EEXIST ? fail_exists(out->path, TOKMAP_ERR_EXISTS)
                             : cli_fail_errno(out->path, "write", errno);
}

static int flush_file(const output_file *out)
{
    errno = tokmap_i_file_sync(out->fd);
    return errno == 0 ? CLI_OK : cli_fail_errno(out->path, "flush", errno);
}

int output_finish(output_file *out)
{
    const int code = flush_file(out);
    if (code == CLI_OK)
        output_keep(out);
    return code;
}

int output_place(output_file *out)
{
    int code = flush_file(out);
    if (code == CLI_OK)
        code = output_give_name(out);
    if (code != CLI_OK)
        return code;
    output_keep(out);
    return output_flush_folder(out->path);
}

/* Makes `partial` a link to the file that is open as src, and renames it to path. It is not an
 * error if no hard link can be made; out->is_placed is then false. */
static int place_link(output_file *out, const output_source *src)
{
    if (linkat(AT_FDCWD, src->path, AT_FDCWD, out->partial, AT_SYMLINK_FOLLOW) != 0)
        return errno == EEXIST ? fail_exists(out->partial, TOKMAP_ERR_LOCKED) : CLI_OK;
    int code = output_has_name(src->fd, out->partial) ? output_give_name(out) : CLI_OK;
    if (!out->is_placed)
        unlink(out->partial);
    return code;
}

static int share_by_link(output_file *out, const output_source *src)
{
    /* A rename onto another link to the same file does nothing and leaves partial behind. */
    out->is_placed = out->replace && output_has_name(src->fd, out->path);
    int code = out->is_placed ? CLI_OK : output_make_folders(out->path);
    if (code == CLI_OK && !out->is_placed)
        code = remove_stale(out->partial);
    if (out->is_placed || code != CLI_OK)
        return code;
    /* The lock keeps other processes from removing the link as stale. It is shared, because they
     * may hold the source under other names. Without locks, the file is copied. */
    errno = tokmap_i_file_lock_open(src->fd, true);
    if (errno != 0)
        return errno == EWOULDBLOCK ? fail_lock(src->path) : CLI_OK;
    code = place_link(out, src);
    flock(src->fd, LOCK_UN);
    return code;
}

int output_share(output_file *out, output_source *src, output_way *way)
{
    file_facts facts;
    *way = OUTPUT_HARD_LINK;
    int code = share_by_link(out, src);
    if (code != CLI_OK || out->is_placed)
        return code == CLI_OK ? output_flush_folder(out->path) : code;
    errno = file_describe_open(src->fd, &facts);
    if (errno != 0)
        return cli_fail_errno(src->path, "read", errno);
    code = output_begin(out);
    if (code != CLI_OK)
        return code;
    *way = OUTPUT_REFLINK;
    if (tokmap_i_file_clone(src->fd, out->fd) != 0) {
        *way = OUTPUT_COPY;
        code = output_copy(out, src, 0, facts.n_bytes);
    }
    return code == CLI_OK ? output_place(out) : code;
}

void output_keep(output_file *out)
{
    tokmap_i_file_close(out->fd);
    out->fd = -1;
}

void output_close(output_file *out)
{
    if (out->fd < 0)
        return;
    unlink(out->partial);
    output_keep(out);
}

int output_try_remove(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT ? 0 : errno;
}

int output_remove(const char *path)
{
    errno = output_try_remove(path);
    return errno == 0 ? CLI_OK : cli_fail_errno(path, "remove", errno);
}

void output_abandon(output_file *out)
{
    output_close(out);
    if (out->is_placed)
        unlink(out->path);
    out->is_placed = false;
}
