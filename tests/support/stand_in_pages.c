/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_pages.c - preloaded into a program: the system seems to have pages of 64 KiB, as kernels
 * of aarch64 may have. Maps begin at such pages, and a call for a part of one is refused as the
 * kernel would refuse it; what such a kernel maps behind the end is there, too. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)65536)
#define MOST_RINGS 1024
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#define PUBLIC __attribute__((visibility("default")))

static size_t whole_pages(size_t n_bytes)
{
    return (n_bytes + PAGE - 1) / PAGE * PAGE;
}

static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

PUBLIC long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))next_of("sysconf");
    return name == _SC_PAGESIZE ? (long)PAGE : real(name);
}

/* The rings of io_uring, which the kernel maps where it likes. */
static const void *_Atomic rings[MOST_RINGS];

static bool forget_ring(const void *at)
{
    for (size_t i = 0; i < MOST_RINGS; i++) {
        const void *same = at;
        if (atomic_compare_exchange_strong(&rings[i], &same, NULL))
            return true;
    }
    return false;
}

static void *remember_ring(void *at)
{
    for (size_t i = 0; i < MOST_RINGS; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&rings[i], &none, at))
            return at;
    }
    abort();
}

PUBLIC int munmap(void *at, size_t n_bytes)
{
    int (*real)(void *, size_t) = (int (*)(void *, size_t))next_of("munmap");
    if (forget_ring(at))
        return real(at, n_bytes);
    if ((uintptr_t)at % PAGE == 0)
        return real(at, whole_pages(n_bytes));
    errno = EINVAL;
    return -1;
}

PUBLIC int madvise(void *at, size_t n_bytes, int advice)
{
    int (*real)(void *, size_t, int) = (int (*)(void *, size_t, int))next_of("madvise");
    const size_t whole = whole_pages(n_bytes);
    int result = 0;
    if ((uintptr_t)at % PAGE != 0) {
        errno = EINVAL;
        return -1;
    }
    if (advice != MADV_POPULATE_READ)
        return real(at, whole, advice);
    /* A page is there if it begins before the end of the file. */
    for (size_t first = 0; first < whole && result == 0; first += PAGE) {
        result = real((uint8_t *)at + first, 4096, advice);
        if (result == 0 && real((uint8_t *)at + first, PAGE, advice) != 0 && errno != EFAULT)
            result = -1;
    }
    return result;
}

/* A page is there if a part of it is, because the kernel reads only the part. */
PUBLIC int mincore(void *at, size_t n_bytes, unsigned char *present)
{
    int (*real)(void *, size_t, unsigned char *) =
        (int (*)(void *, size_t, unsigned char *))next_of("mincore");
    for (size_t first = 0; first < n_bytes; first += PAGE) {
        unsigned char parts[PAGE / 4096] = {0};
        if (real((uint8_t *)at + first, PAGE, parts) != 0)
            return -1;
        *present = 0;
        for (size_t i = 0; i < sizeof parts; i++)
            *present |= parts[i] & 1;
        present++;
    }
    return 0;
}

/* Tests may have an mmap of their own, which calls stand_in_mmap. */
static void *real_mmap(void *wanted, size_t n_bytes, int protection, int flags, int fd,
                       off_t offset)
{
    return (void *)syscall(SYS_mmap, wanted, n_bytes, protection, flags, fd, offset);
}

PUBLIC void *mmap(void *wanted, size_t n_bytes, int protection, int flags, int fd, off_t offset)
{
    int (*unmap)(void *, size_t) = (int (*)(void *, size_t))next_of("munmap");
    const size_t whole = whole_pages(n_bytes);
    if (wanted || (size_t)offset % PAGE != 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (flags & MAP_SHARED && protection & PROT_WRITE)
        return remember_ring(real_mmap(NULL, n_bytes, protection, flags, fd, offset));
    /* All of it is zeros first, also what lies behind the end of a file. */
    uint8_t *all = real_mmap(NULL, whole + PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return all;
    uint8_t *at = all + -(uintptr_t)all % PAGE;
    if (at > all)
        unmap(all, (size_t)(at - all));
    unmap(at + whole, PAGE - (size_t)(at - all));
    if (real_mmap(at, n_bytes, protection, flags | MAP_FIXED, fd, offset) != MAP_FAILED)
        return at;
    const int why = errno;
    unmap(at, whole);
    errno = why;
    return MAP_FAILED;
}

PUBLIC void *mmap64(void *, size_t, int, int, int, off_t)
    __attribute__((alias("mmap"), nothrow, leaf));
PUBLIC void *stand_in_mmap(void *, size_t, int, int, int, off_t)
    __attribute__((alias("mmap"), nothrow, leaf));
