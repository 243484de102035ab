/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fault_state fault;
volatile int64_t fault_n_live;

void fault_arm(fault_mode mode, unsigned calls, int errno_value, uint64_t nth)
{
    fault.mode = mode;
    fault.calls = calls;
    fault.errno_value = errno_value;
    fault.nth = nth;
    fault.n_seen = fault.n_fired = 0;
    fault.last_fired = 0;
    fault.armed = true;
}

bool fault_disarm(void)
{
    fault.armed = false;
    return fault.n_fired > 0;
}

/* Counts a call; true when it is hit. */
static bool fault_hits(fault_call call)
{
    if (!fault.armed || !(fault.calls & call))
        return false;
    fault.n_seen++;
    const bool once = fault.mode != FAULT_FROM_THEN_ON && fault.mode != FAULT_SHORT;
    if (fault.mode == FAULT_OFF || (once ? fault.n_seen != fault.nth : fault.n_seen < fault.nth))
        return false;
    fault.n_fired++;
    fault.last_fired = call;
    return true;
}

static bool fault_fails(bool hit)
{
    if (!hit)
        return false;
    if (fault.mode == FAULT_KILL_BEFORE)
        kill(getpid(), SIGKILL);
    if (fault.mode == FAULT_MEANWHILE) {
        fault.armed = false;
        fault.meanwhile();
        fault.armed = true;
    }
    if (fault.mode != FAULT_ONCE && fault.mode != FAULT_FROM_THEN_ON)
        return false;
    errno = fault.errno_value;
    return true;
}

static size_t fault_shorten(bool hit, size_t n_bytes)
{
    return hit && fault.mode == FAULT_SHORT && n_bytes > 1 ? n_bytes / 2 : n_bytes;
}

static long fault_after(bool hit, long result)
{
    if (hit && fault.mode == FAULT_KILL_AFTER)
        kill(getpid(), SIGKILL);
    return result;
}

#define FAULT_CALL(call, ...)                                                                      \
    do {                                                                                           \
        const bool hit = fault_hits(call);                                                         \
        if (fault.armed && (fault.missing & (call))) {                                             \
            errno = EPERM;                                                                         \
            return -1;                                                                             \
        }                                                                                          \
        return fault_fails(hit) ? -1 : (int)fault_after(hit, syscall(__VA_ARGS__));                \
    } while (0)

static int fault_open(int folder_fd, const char *path, int flags, va_list *args)
{
    const mode_t mode = flags & O_CREAT ? va_arg(*args, mode_t) : 0;
    if (fault.open_hook)
        fault.open_hook(path);
    FAULT_CALL(FAULT_OPEN, SYS_openat, folder_fd, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int fd = fault_open(AT_FDCWD, path, flags, &args);
    va_end(args);
    return fd;
}

int openat(int folder_fd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int fd = fault_open(folder_fd, path, flags, &args);
    va_end(args);
    return fd;
}

ssize_t pread(int fd, void *dst, size_t n_bytes, off_t offset)
{
    const int error = fault.pread_hook ? fault.pread_hook(fd, (uint64_t)offset, n_bytes) : 0;
    if (error) {
        errno = error;
        return -1;
    }
    const bool hit = fault_hits(FAULT_PREAD);
    if (fault_fails(hit))
        return -1;
    return fault_after(hit, syscall(SYS_pread64, fd, dst, fault_shorten(hit, n_bytes), offset));
}

ssize_t pwrite(int fd, const void *src, size_t n_bytes, off_t offset)
{
    const bool hit = fault_hits(FAULT_PWRITE);
    if (fault_fails(hit))
        return -1;
    return fault_after(hit, syscall(SYS_pwrite64, fd, src, fault_shorten(hit, n_bytes), offset));
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t n_bytes,
                        unsigned flags)
{
    const bool hit = fault_hits(FAULT_COPY);
    if (fault_fails(hit))
        return -1;
    return fault_after(hit, syscall(SYS_copy_file_range, from, from_at, to, to_at,
                                    fault_shorten(hit, n_bytes), flags));
}

/* No test here needs the data on disk, and waiting for it would make the sweeps slow. */
int fsync(int fd)
{
    const bool hit = fault_hits(FAULT_FSYNC);
    if (fault_fails(hit))
        return -1;
    if (fault.sync_hook)
        fault.sync_hook(fd);
    return (int)fault_after(hit, syscall(SYS_lseek, fd, 0, SEEK_SET));
}

int ftruncate(int fd, off_t n_bytes)
{
    FAULT_CALL(FAULT_FTRUNCATE, SYS_ftruncate, fd, n_bytes);
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    const long argument = va_arg(args, long);
    va_end(args);
    const bool asks = command == F_SETFL && (argument & O_DIRECT);
    const bool hit = asks && fault_hits(FAULT_DIRECT);
    if (fault_fails(hit))
        return -1;
    return (int)fault_after(hit, syscall(SYS_fcntl, fd, command, argument));
}

int flock(int fd, int operation)
{
    FAULT_CALL(FAULT_FLOCK, SYS_flock, fd, operation);
}

int link(const char *from, const char *to)
{
    FAULT_CALL(FAULT_LINK, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int rename(const char *from, const char *to)
{
    FAULT_CALL(FAULT_RENAME, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    FAULT_CALL(FAULT_RENAMEAT2, SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
    FAULT_CALL(FAULT_UNLINK, SYS_unlinkat, AT_FDCWD, path, 0);
}

int stat(const char *path, struct stat *out)
{
    FAULT_CALL(FAULT_STAT, SYS_newfstatat, AT_FDCWD, path, out, 0);
}

int lstat(const char *path, struct stat *out)
{
    FAULT_CALL(FAULT_STAT, SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

#ifdef __GLIBC__
int stat64(const char *path, struct stat64 *out)
{
    FAULT_CALL(FAULT_STAT, SYS_newfstatat, AT_FDCWD, path, out, 0);
}

int lstat64(const char *path, struct stat64 *out)
{
    FAULT_CALL(FAULT_STAT, SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
#endif

/* That of stand_in_pages.c, if it is preloaded. */
static void *(*stand_in_map)(void *, size_t, int, int, int, off_t);

/* Before memory is counted, because dlsym allocates its error. */
__attribute__((constructor)) static void find_stand_in(void)
{
    *(void **)&stand_in_map = dlsym(RTLD_DEFAULT, "stand_in_mmap");
    dlerror();
}

void *mmap(void *where, size_t n_bytes, int protection, int flags, int fd, off_t offset)
{
    const bool hit = fault_hits(FAULT_MMAP);
    if (fault_fails(hit))
        return MAP_FAILED;
    const long map = stand_in_map
                         ? (long)stand_in_map(where, n_bytes, protection, flags, fd, offset)
                         : syscall(SYS_mmap, where, n_bytes, protection, flags, fd, offset);
    return (void *)fault_after(hit, map);
}

/* Their names for large files: off_t has 64 bits. */
#define FAULT_SAME(function) __attribute__((alias(#function)))
int open64(const char *path, int flags, ...) FAULT_SAME(open);
int openat64(int folder_fd, const char *path, int flags, ...) FAULT_SAME(openat);
int fcntl64(int fd, int command, ...) FAULT_SAME(fcntl);
int ftruncate64(int fd, off_t n_bytes) FAULT_SAME(ftruncate);
ssize_t pread64(int fd, void *dst, size_t n_bytes, off_t offset) FAULT_SAME(pread);
ssize_t pwrite64(int fd, const void *src, size_t n_bytes, off_t offset) FAULT_SAME(pwrite);
void *mmap64(void *where, size_t n_bytes, int protection, int flags, int fd, off_t offset)
    FAULT_SAME(mmap);

/* ---- Memory ---- */

#if FAULT_MEMORY_WORKS

void *libc_malloc(size_t n_bytes) __asm__("__libc_malloc");
void *libc_calloc(size_t n, size_t n_bytes) __asm__("__libc_calloc");
void *libc_realloc(void *p, size_t n_bytes) __asm__("__libc_realloc");
void *libc_memalign(size_t alignment, size_t n_bytes) __asm__("__libc_memalign");
void libc_free(void *p) __asm__("__libc_free");

#pragma GCC visibility push(default) /* libc and libxxhash must use these too */

void *malloc(size_t n_bytes)
{
    if (fault_fails(fault_hits(FAULT_MEMORY)))
        return NULL;
    fault_n_live += fault.armed;
    return libc_malloc(n_bytes);
}

void *aligned_alloc(size_t alignment, size_t n_bytes)
{
    if (fault_fails(fault_hits(FAULT_MEMORY)))
        return NULL;
    fault_n_live += fault.armed;
    return libc_memalign(alignment, n_bytes);
}

void *calloc(size_t n, size_t n_bytes)
{
    if (fault_fails(fault_hits(FAULT_MEMORY)))
        return NULL;
    fault_n_live += fault.armed;
    return libc_calloc(n, n_bytes);
}

void *realloc(void *p, size_t n_bytes)
{
    if (fault_fails(fault_hits(FAULT_MEMORY)))
        return NULL;
    fault_n_live += fault.armed && !p;
    return libc_realloc(p, n_bytes);
}

void free(void *p)
{
    fault_n_live -= fault.armed && p;
    libc_free(p);
}

#pragma GCC visibility pop
#endif
