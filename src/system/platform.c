/* SPDX-License-Identifier: Apache-2.0 */
#define _FILE_OFFSET_BITS 64 /* off_t of 64 bits on every machine */
#include "system/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "system/control_group.h"
#include "system/interrupted.h"
#include "system/platform_thread.h"

_Static_assert(sizeof(off_t) == 8, "off_t must hold 64-bit offsets");

enum {
    MAX_CALL_BYTES = 1 << 30,
    WILL_NEED_BYTES = 128 << 10, /* the kernel silently shortens longer requests */
    READ_AHEAD_BYTES = 8 << 20
};

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* musl has RENAME_NOREPLACE since version 1.2.6. */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
static int renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
#endif
#include <linux/fs.h> /* has the constants too, so it comes after this check */
#include <linux/magic.h>

static int open_retrying(int folder_fd, const char *path, int flags)
{
    int fd = openat(folder_fd, path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    for (unsigned n_times = 0; fd < 0 && tokmap_i_is_interrupted(&n_times);)
        fd = openat(folder_fd, path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    return fd;
}

/* Opens a regular file. It is looked at before it is opened: opening a device can do something,
 * such as starting a watchdog, and the name may come from a file. A name that leads nowhere is left
 * to open(). O_NONBLOCK: opening a pipe would wait for its other end. */
static int open_regular(int folder_fd, const char *path, int flags, int *fd)
{
    struct stat st;
    *fd = -1;
    const int how = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(folder_fd, path, &st, how) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    *fd = open_retrying(folder_fd, path, flags | O_NONBLOCK);
    if (*fd < 0)
        return errno;
    int error = fstat(*fd, &st) ? errno : 0;
    if (!error && !S_ISREG(st.st_mode))
        error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    if (error) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

int tokmap_i_file_open_from(int folder_fd, const char *path, int *fd)
{
    return open_regular(folder_fd < 0 ? AT_FDCWD : folder_fd, path, O_RDONLY, fd);
}

int tokmap_i_file_open(const char *path, int *fd)
{
    return tokmap_i_file_open_from(AT_FDCWD, path, fd);
}

bool tokmap_i_file_may_stay(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)fd < limit.rlim_cur / 2;
}

int tokmap_i_file_open_again(const char *path, int *fd)
{
    return open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, fd);
}

int tokmap_i_file_create(const char *path, int *fd)
{
    *fd = -1;
    if (unlink(path) && errno != ENOENT)
        return errno;
    *fd = open_retrying(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL);
    return *fd < 0 ? errno : 0;
}

/* Set by tokmap_i_file_take_no_locks. */
static bool takes_no_locks;

void tokmap_i_file_take_no_locks(void)
{
    takes_no_locks = true;
}

int tokmap_i_file_lock_open(int fd, bool is_shared)
{
    const int how = (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    int result = takes_no_locks ? 0 : flock(fd, how);
    for (unsigned n_times = 0; result && tokmap_i_is_interrupted(&n_times);)
        result = flock(fd, how);
    return !result ? 0 : errno == ENOSYS || errno == EOPNOTSUPP ? ENOLCK : errno;
}

const char *tokmap_i_file_lock_text(int error)
{
    return error != ENOLCK
               ? "cannot create"
               : "this file system has no locks; mount it with locks (Lustre: -o flock, NFS: "
                 "without nolock), or give the command --no-lock if nobody else writes this";
}

/* Locks the file if it still has this name: between our open and our lock, another writer may
 * finish and remove the name. The lock is then on a finished file. */
static int lock_named(const char *path, int fd)
{
    struct stat held, named;
    const int error = tokmap_i_file_lock_open(fd, false);
    if (error || fstat(fd, &held))
        return error ? error : errno;
    if (!S_ISREG(held.st_mode))
        return EINVAL;
    if (lstat(path, &named))
        return errno == ENOENT ? EWOULDBLOCK : errno;
    return held.st_dev == named.st_dev && held.st_ino == named.st_ino ? 0 : EWOULDBLOCK;
}

int tokmap_i_file_lock(const char *path, int *fd)
{
    *fd = open_retrying(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL);
    const bool made = *fd >= 0;
    if (!made && errno == EEXIST)
        *fd = open_retrying(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (*fd < 0)
        return errno;
    const int error = lock_named(path, *fd);
    if (!error)
        return 0;
    if (made && error != EWOULDBLOCK)
        unlink(path);
    close(*fd);
    *fd = -1;
    return error;
}

/* Fills in *out after stat or fstat. */
static int take_stat(int failed, const struct stat *st, tokmap_i_file_stat *out)
{
    if (failed)
        return errno;
    *out = (tokmap_i_file_stat){
        .n_bytes = (uint64_t)st->st_size,
        .device = st->st_dev,
        .inode = st->st_ino,
        .n_names = st->st_nlink,
        .modified_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
    };
    return 0;
}

int tokmap_i_file_stat_fd(int fd, tokmap_i_file_stat *out)
{
    struct stat st;
    return take_stat(fstat(fd, &st), &st, out);
}

int tokmap_i_file_known_size(int fd, uint64_t *n_bytes)
{
    struct statx stx;
    tokmap_i_file_stat st = {0};
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &stx) == 0) {
        *n_bytes = stx.stx_size;
        return 0;
    }
    const int error = tokmap_i_file_stat_fd(fd, &st); /* an old system, or a sandbox */
    *n_bytes = st.n_bytes;
    return error;
}

int tokmap_i_file_stat_path(const char *path, tokmap_i_file_stat *out)
{
    struct stat st;
    return take_stat(stat(path, &st), &st, out);
}

bool tokmap_i_file_is(const char *path, const tokmap_i_file_stat *file)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode;
}

bool tokmap_i_file_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool tokmap_i_file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool tokmap_i_file_same(const char *path, const char *other_path)
{
    struct stat a, b;
    return lstat(path, &a) == 0 && lstat(other_path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

void tokmap_i_file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

int tokmap_i_file_read(int fd, void *dst, size_t n_bytes, uint64_t offset, size_t *n_read)
{
    *n_read = 0;
    for (unsigned n_times = 0; *n_read < n_bytes;) {
        const ssize_t n = pread(fd, (char *)dst + *n_read, MIN(n_bytes - *n_read, MAX_CALL_BYTES),
                                (off_t)(offset + *n_read));
        if (n < 0 && tokmap_i_is_interrupted(&n_times))
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        *n_read += (size_t)n;
    }
    return 0;
}

int tokmap_i_file_write(int fd, const void *src, size_t n_bytes, uint64_t offset)
{
    size_t n_written = 0;
    for (unsigned n_times = 0; n_written < n_bytes;) {
        const ssize_t n =
            pwrite(fd, (const char *)src + n_written, MIN(n_bytes - n_written, MAX_CALL_BYTES),
                   (off_t)(offset + n_written));
        if (n < 0 && tokmap_i_is_interrupted(&n_times))
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return EIO;
        n_written += (size_t)n;
    }
    return 0;
}

int tokmap_i_file_set_direct(int fd, bool is_direct)
{
    const int flags = fcntl(fd, F_GETFL);
    const int wanted = is_direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    return flags < 0 || fcntl(fd, F_SETFL, wanted) != 0 ? errno : 0;
}

int tokmap_i_file_write_direct(int fd, const void *src, size_t n_bytes, uint64_t offset)
{
    const uint64_t all_sizes = (uintptr_t)src | n_bytes | offset;
    size_t n_written = 0;
    if (all_sizes % TOKMAP_I_DIRECT_BYTES == 0 && tokmap_i_file_set_direct(fd, true) == 0) {
        const ssize_t n = pwrite(fd, src, MIN(n_bytes, MAX_CALL_BYTES), (off_t)offset);
        int error = n < 0 ? errno : 0;
        if (error == EINTR || error == EINVAL) /* EINVAL: its blocks are larger */
            error = 0;
        const int unset = tokmap_i_file_set_direct(fd, false);
        if (error || unset)
            return error ? error : unset;
        n_written = n > 0 ? (size_t)n : 0;
    }
    return tokmap_i_file_write(fd, (const char *)src + n_written, n_bytes - n_written,
                               offset + n_written);
}

int tokmap_i_file_resize(int fd, uint64_t n_bytes)
{
    int result = ftruncate(fd, (off_t)n_bytes);
    for (unsigned n_times = 0; result && tokmap_i_is_interrupted(&n_times);)
        result = ftruncate(fd, (off_t)n_bytes);
    return result ? errno : 0;
}

int tokmap_i_file_copy(const tokmap_i_copy *copy)
{
    off_t from = (off_t)copy->from_offset, to = (off_t)copy->to_offset;
    uint64_t n_left = copy->n_bytes;
    for (unsigned n_times = 0; n_left > 0;) {
        const ssize_t n = copy_file_range(copy->from_fd, &from, copy->to_fd, &to,
                                          (size_t)MIN(n_left, MAX_CALL_BYTES), 0);
        if (n < 0 && tokmap_i_is_interrupted(&n_times))
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return EIO;
        n_left -= (uint64_t)n;
    }
    return 0;
}

int tokmap_i_file_clone(int from_fd, int to_fd)
{
    return ioctl(to_fd, FICLONE, from_fd) ? errno : 0;
}

int tokmap_i_file_sync(int fd)
{
    int result = fsync(fd);
    for (unsigned n_times = 0; result && tokmap_i_is_interrupted(&n_times);)
        result = fsync(fd);
    return result ? errno : 0;
}

/* Finds the folder of a path, in memory on the caller's stack: the last step of a writer must not
 * run out of memory. */
static bool find_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const size_t n_bytes = !slash || slash == path ? 1 : (size_t)(slash - path);
    errno = ENAMETOOLONG; /* for a result of false */
    if (n_bytes >= PATH_MAX)
        return false;
    memcpy(folder, slash ? path : ".", n_bytes);
    folder[n_bytes] = 0;
    return true;
}

int tokmap_i_folder_resolve(const char *path, char **out)
{
    char folder[PATH_MAX];
    *out = find_folder(path, folder) ? realpath(folder, NULL) : NULL;
    return *out ? 0 : errno;
}

static int open_folder(const char *path, int flags)
{
    char folder[PATH_MAX];
    return find_folder(path, folder) ? open_retrying(AT_FDCWD, folder, flags | O_DIRECTORY) : -1;
}

int tokmap_i_folder_open(const char *path, int *fd)
{
    *fd = open_folder(path, O_PATH);
    return *fd < 0 ? errno : 0;
}

int tokmap_i_folder_sync(const char *path)
{
    const int fd = open_folder(path, O_RDONLY);
    if (fd < 0)
        return errno;
    const int error = tokmap_i_file_sync(fd);
    close(fd);
    /* Some file systems cannot flush a folder. */
    return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ? 0 : error;
}

/* NFS may make the link and still report EEXIST, if it sent the request twice. */
int tokmap_i_file_link(const char *from, const char *to)
{
    if (link(from, to) == 0 || (errno == EEXIST && tokmap_i_file_same(from, to)))
        return 0;
    return errno;
}

int tokmap_i_file_rename(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (tokmap_i_file_exists(to)) /* there is no RENAME_NOREPLACE here: check first */
        return EEXIST;
    return tokmap_i_file_rename_over(from, to);
}

int tokmap_i_file_rename_over(const char *from, const char *to)
{
    return rename(from, to) ? errno : 0;
}

/* Whether an error means that the file system cannot do this at all. */
static bool is_unsupported(int error)
{
    return error == EINVAL || error == EPERM || error == ENOSYS || error == EOPNOTSUPP;
}

#define ELSEWHERE "; write to a local disk, and copy the complete files here"

int tokmap_i_file_probe(const char *path, const char **text)
{
    char name[PATH_MAX], new_name[PATH_MAX];
    int fd = -1;
    *text = "cannot create";
    if (strlen(path) + sizeof ".probed.partial" > PATH_MAX)
        return ENAMETOOLONG;
    snprintf(name, sizeof name, "%s.probe.partial", path);
    snprintf(new_name, sizeof new_name, "%s.probed.partial", path);
    int error = tokmap_i_file_create(name, &fd);
    if (!error) {
        error = tokmap_i_file_write(fd, "b", 1, 1);
        if (!error)
            error = tokmap_i_file_write(fd, "a", 1, 0);
        *text = !is_unsupported(error)
                    ? "cannot write"
                    : "this file system writes files only from front to back" ELSEWHERE;
    }
    tokmap_i_file_close(fd);
    if (!error && rename(name, new_name) != 0) {
        error = errno;
        *text = is_unsupported(error) ? "this file system cannot rename files" ELSEWHERE
                                      : "cannot rename";
    }
    unlink(name);
    unlink(new_name);
    if (error)
        return error;
    *text = "cannot flush its folder to the disk";
    return tokmap_i_folder_sync(path);
}

int tokmap_i_file_remove(const char *path)
{
    return unlink(path) ? errno : 0;
}

static const uint64_t empty_map[1];

int tokmap_i_map(int fd, uint64_t n_bytes, const void **out)
{
    const void *map = empty_map;
    if (n_bytes > 0)
        map = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    *out = map == MAP_FAILED ? NULL : map;
    return *out ? 0 : errno;
}

void tokmap_i_unmap(const void *map, uint64_t n_bytes)
{
    if (map && map != empty_map)
        munmap((void *)map, (size_t)n_bytes);
}

/* ---- The page cache ---- */

uint32_t tokmap_i_page_bytes(void)
{
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (uint32_t)n : 4096;
}

void tokmap_i_map_expect_random(const void *map, uint64_t n_bytes, bool random)
{
    if (map && map != empty_map)
        madvise((void *)map, (size_t)n_bytes, random ? MADV_RANDOM : MADV_NORMAL);
}

int tokmap_i_map_populate(const void *at, size_t n_bytes)
{
    int result = madvise((void *)at, n_bytes, MADV_POPULATE_READ);
    for (unsigned n_times = 0; result && tokmap_i_is_interrupted(&n_times);)
        result = madvise((void *)at, n_bytes, MADV_POPULATE_READ);
    return result ? errno : 0;
}

bool tokmap_i_map_never_populates(int error)
{
    return error == EINVAL || error == EPERM || error == ENOSYS;
}

void tokmap_i_map_forget(const void *at, size_t n_bytes)
{
    madvise((void *)at, n_bytes, MADV_DONTNEED);
}

void tokmap_i_file_expect_random(int fd, bool random)
{
    posix_fadvise(fd, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
}

void tokmap_i_file_will_need(int fd, uint64_t offset, uint64_t n_bytes)
{
    while (n_bytes > 0) {
        const uint64_t n = MIN(n_bytes, WILL_NEED_BYTES);
        posix_fadvise(fd, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
        offset += n;
        n_bytes -= n;
    }
}

/* The kernel alone reads 128 KiB ahead on FUSE and NFS, where a request may take 30 ms. */
void tokmap_i_file_read_ahead(int fd, uint64_t at, uint64_t n_bytes, uint64_t *asked)
{
    const uint64_t most = MIN(n_bytes, READ_AHEAD_BYTES);
    const uint64_t from = *asked > at ? *asked : at;
    if (from + most / 2 > at + most)
        return;
    tokmap_i_file_will_need(fd, from, at + most - from);
    *asked = at + most;
}

void tokmap_i_file_forget(int fd, uint64_t offset, uint64_t n_bytes)
{
    posix_fadvise(fd, (off_t)offset, (off_t)n_bytes, POSIX_FADV_DONTNEED);
}

/* Uses preadv2 because mincore reports every page as present to a process that may not write the
 * file. The read does not wait for a missing page but starts to read it, and without the advice
 * "random" megabytes around it. */
int tokmap_i_file_count_cold(int fd, const uint64_t *offsets, size_t n)
{
    uint8_t byte;
    struct statfs fs;
    const struct iovec to = {&byte, 1};
    int n_cold = 0, error = 0;
    tokmap_i_file_expect_random(fd, true);
    for (size_t i = 0; i < n && !error; i++) {
        /* musl has preadv2 since version 1.2.5. */
        if (syscall(SYS_preadv2, fd, &to, 1, (off_t)offsets[i], 0L, RWF_NOWAIT) >= 0)
            continue;
        n_cold += errno == EAGAIN;
        error = errno == EAGAIN ? 0 : errno;
    }
    tokmap_i_file_expect_random(fd, false);
    if (!error)
        return n_cold;
    const bool in_memory =
        fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    return in_memory ? 0 : -1;
}

/* Does not use its name, which another file may have by now. */
int tokmap_i_file_open_direct(int fd, int *direct_fd, uint32_t *alignment)
{
    char path[32];
    *direct_fd = -1;
    *alignment = TOKMAP_I_DIRECT_BYTES; /* used if the system does not say: fits every usual disk */
#ifdef STATX_DIOALIGN
    struct statx stx;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
        (stx.stx_mask & STATX_DIOALIGN) != 0)
        *alignment = stx.stx_dio_offset_align == 0
                         ? 0
                         : MAX(stx.stx_dio_offset_align, stx.stx_dio_mem_align);
#endif
    if (*alignment == 0 || (*alignment & (*alignment - 1)) != 0)
        return EINVAL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *direct_fd = open_retrying(AT_FDCWD, path, O_RDONLY | O_DIRECT);
    return *direct_fd < 0 ? errno : 0;
}

int tokmap_i_memory_take(size_t n_bytes, void **out)
{
    void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *out = memory == MAP_FAILED ? NULL : memory;
    return *out ? 0 : errno;
}

void tokmap_i_memory_give_back(void *memory, size_t n_bytes)
{
    if (memory)
        munmap(memory, n_bytes);
}

int tokmap_i_memory_file(uint64_t n_bytes, int *fd, void **map)
{
    *fd = memfd_create("tokmap", MFD_CLOEXEC);
    *map = (void *)empty_map;
    if (*fd < 0)
        return errno;
    int error = tokmap_i_file_resize(*fd, n_bytes);
    if (!error && n_bytes > 0) {
        *map = mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        error = *map == MAP_FAILED ? errno : 0;
    }
    if (error) {
        tokmap_i_file_close(*fd);
        *fd = -1;
        *map = NULL;
    }
    return error;
}

int tokmap_i_memory_take_wiped(size_t n_bytes, void **out)
{
    int error = tokmap_i_memory_take(n_bytes, out);
    if (!error && madvise(*out, n_bytes, MADV_WIPEONFORK) != 0)
        error = errno;
    if (error) {
        tokmap_i_memory_give_back(*out, n_bytes);
        *out = NULL;
    }
    return error;
}

/* ---- Processes and threads ---- */

void tokmap_i_fork_mark_set(tokmap_i_fork_mark *mark)
{
    *mark = (tokmap_i_fork_mark){NULL, getpid()};
    if (tokmap_i_memory_take_wiped(1, &mark->page) == 0 && mark->page)
        *(uint8_t *)mark->page = 1;
}

bool tokmap_i_fork_mark_is_child(const tokmap_i_fork_mark *mark)
{
    return mark->page ? *(const uint8_t *)mark->page == 0 : mark->process != getpid();
}

void tokmap_i_fork_mark_free(tokmap_i_fork_mark *mark)
{
    tokmap_i_memory_give_back(mark->page, 1);
    mark->page = NULL;
}

uint32_t tokmap_i_n_processors(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return (uint32_t)MIN((uint64_t)MAX(n, 1), tokmap_i_group_limits_now().processors);
}

void tokmap_i_run_threads(uint32_t n_threads, void *(*work)(void *), void *context)
{
    tokmap_i_thread threads[TOKMAP_I_MAX_THREADS];
    uint32_t n_started = 0;
    while (n_started + 1 < MIN(n_threads, TOKMAP_I_MAX_THREADS) &&
           tokmap_i_thread_start(&threads[n_started], work, context) == 0)
        n_started++;
    work(context);
    for (uint32_t i = 0; i < n_started; i++)
        tokmap_i_thread_join(threads[i]);
}
