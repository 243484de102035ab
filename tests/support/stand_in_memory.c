/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_memory.c - preloaded into a program: its n-th allocation fails, and all later ones when
 * NO_MEMORY_FROM_THEN_ON is set. NO_MEMORY_AT is n; without it nothing fails. The program ends as
 * it does, and NO_MEMORY_COUNT, if set, is a file to which the number of allocations goes. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

extern void *__libc_malloc(size_t n_bytes);
extern void *__libc_calloc(size_t n, size_t n_bytes);
extern void *__libc_realloc(void *old, size_t n_bytes);

static atomic_uint_least64_t n_calls;
static uint64_t failing_call; /* 0: none */
static bool from_then_on, armed;

static bool fails(void)
{
    if (!armed)
        return false;
    uint64_t call = atomic_fetch_add(&n_calls, 1) + 1;
    bool now = call == failing_call || (from_then_on && failing_call && call > failing_call);
    if (now)
        errno = ENOMEM;
    return now;
}

SEEN void *malloc(size_t n_bytes)
{
    return fails() ? NULL : __libc_malloc(n_bytes);
}

SEEN void *calloc(size_t n, size_t n_bytes)
{
    return fails() ? NULL : __libc_calloc(n, n_bytes);
}

SEEN void *realloc(void *old, size_t n_bytes)
{
    return fails() ? NULL : __libc_realloc(old, n_bytes);
}

__attribute__((constructor)) static void arm(void)
{
    const char *at = getenv("NO_MEMORY_AT");
    failing_call = at ? strtoull(at, NULL, 10) : 0;
    from_then_on = getenv("NO_MEMORY_FROM_THEN_ON") != NULL;
    armed = true;
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("NO_MEMORY_COUNT");
    char text[32];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)atomic_load(&n_calls));
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0 && write(fd, text, (size_t)n) == n)
        close(fd);
}
