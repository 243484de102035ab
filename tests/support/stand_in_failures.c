/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_failures.c - preloaded into a program: one of its calls fails. FAIL=memory:17 is the
 * 17th allocation; `thread` is a new thread, `read` and `write` are calls that end with EIO and
 * ENOSPC, `short` is a read or write of fewer bytes, and `folder` is a folder that cannot be
 * listed. FAIL=memory:17+ is that one and all later ones. FAIL_COUNTS, if set, is a file to which
 * the numbers of calls go at the end; OPENED one to which the path of each file goes that the
 * program opens. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

extern void *__libc_malloc(size_t n_bytes);
extern void *__libc_calloc(size_t n, size_t n_bytes);
extern void *__libc_realloc(void *old, size_t n_bytes);

enum {
    MEMORY,
    THREAD,
    READ,
    SHORT,
    FOLDER,
    WRITE,
    N_KINDS
};

static const char *const names[N_KINDS] = {"memory", "thread", "read", "short", "folder", "write"};
static atomic_uint_least64_t n_calls[N_KINDS];
static uint64_t failing_call[N_KINDS]; /* 0: none */
static bool from_then_on, armed;
static int opened_fd = -1;

static bool fails(int kind, int sys_errno)
{
    if (!armed)
        return false;
    const uint64_t call = atomic_fetch_add(&n_calls[kind], 1) + 1, first = failing_call[kind];
    const bool now = call == first || (from_then_on && first && call > first);
    if (now)
        errno = sys_errno;
    return now;
}

SEEN void *malloc(size_t n_bytes)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_malloc(n_bytes);
}

SEEN void *calloc(size_t n, size_t n_bytes)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_calloc(n, n_bytes);
}

SEEN void *realloc(void *old, size_t n_bytes)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_realloc(old, n_bytes);
}

SEEN int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *),
                        void *context)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return fails(THREAD, EAGAIN) ? EAGAIN : create(thread, attr, work, context);
}

static size_t shorter(size_t n_bytes)
{
    return n_bytes > 1 && fails(SHORT, errno) ? n_bytes / 3 + 1 : n_bytes;
}

SEEN ssize_t read(int fd, void *to, size_t n_bytes)
{
    return fails(READ, EIO) ? -1 : syscall(SYS_read, fd, to, shorter(n_bytes));
}

SEEN ssize_t pread64(int fd, void *to, size_t n_bytes, off64_t offset)
{
    return fails(READ, EIO) ? -1 : syscall(SYS_pread64, fd, to, shorter(n_bytes), offset);
}

SEEN ssize_t pread(int fd, void *to, size_t n_bytes, off_t offset)
{
    return pread64(fd, to, n_bytes, offset);
}

SEEN ssize_t write(int fd, const void *from, size_t n_bytes)
{
    return fd > 2 && fails(WRITE, ENOSPC) ? -1 : syscall(SYS_write, fd, from, shorter(n_bytes));
}

SEEN ssize_t pwrite64(int fd, const void *from, size_t n_bytes, off64_t offset)
{
    return fails(WRITE, ENOSPC) ? -1 : syscall(SYS_pwrite64, fd, from, shorter(n_bytes), offset);
}

SEEN ssize_t pwrite(int fd, const void *from, size_t n_bytes, off_t offset)
{
    return pwrite64(fd, from, n_bytes, offset);
}

SEEN DIR *opendir(const char *path)
{
    DIR *(*list)(const char *);
    *(void **)&list = dlsym(RTLD_NEXT, "opendir");
    return fails(FOLDER, EACCES) ? NULL : list(path);
}

static int open_and_say(const char *path, int flags, mode_t mode)
{
    if (opened_fd > 0)
        dprintf(opened_fd, "%s\n", path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

SEEN int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_and_say(path, flags, mode);
}

/* As a fortified program calls it; only the headers of one declare it. */
SEEN int __open_2(const char *path, int flags);
SEEN int __open_2(const char *path, int flags)
{
    return open_and_say(path, flags, 0);
}

__attribute__((constructor)) static void arm(void)
{
    const char *opened = getenv("OPENED");
    opened_fd = opened ? open_and_say(opened, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    const char *which = getenv("FAIL");
    const char *colon = which ? strchr(which, ':') : NULL;
    for (int i = 0; i < N_KINDS && colon; i++) {
        if (strncmp(which, names[i], (size_t)(colon - which)) == 0)
            failing_call[i] = strtoull(colon + 1, NULL, 10);
    }
    from_then_on = colon && strchr(colon, '+');
    armed = true;
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("FAIL_COUNTS");
    armed = false;
    FILE *out = path ? fopen(path, "w") : NULL;
    for (int i = 0; i < N_KINDS && out; i++)
        fprintf(out, "%s %llu\n", names[i], (unsigned long long)atomic_load(&n_calls[i]));
    if (out)
        fclose(out);
}
