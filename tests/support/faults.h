/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - makes the n-th system call of this program fail, fall short, or be its last.
 *
 * The functions here stand in front of libc's for the whole program, the library's calls among
 * them, and go to the kernel by syscall(), past the interceptors of sanitizers. Only the programs
 * that include this get them. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fault_call {
    FAULT_OPEN = 1 << 0,
    FAULT_PREAD = 1 << 1,
    FAULT_PWRITE = 1 << 2,
    FAULT_FSYNC = 1 << 3,
    FAULT_FTRUNCATE = 1 << 4,
    FAULT_FLOCK = 1 << 5,
    FAULT_LINK = 1 << 6,
    FAULT_RENAME = 1 << 7,
    FAULT_RENAMEAT2 = 1 << 8,
    FAULT_UNLINK = 1 << 9,
    FAULT_COPY = 1 << 10,
    FAULT_MMAP = 1 << 11,
    FAULT_MEMORY = 1 << 12,
    FAULT_DIRECT = 1 << 13, /* asking for writes past the page cache */
    FAULT_STAT = 1 << 14,   /* by name; only to do something meanwhile */
    FAULT_ALL_FILE_CALLS = (1 << 11) - 1,
    FAULT_INTERRUPTIBLE = FAULT_OPEN | FAULT_PREAD | FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE |
                          FAULT_FLOCK | FAULT_COPY,
    FAULT_TRANSFERS = FAULT_PREAD | FAULT_PWRITE | FAULT_COPY
} fault_call;

typedef enum fault_mode {
    FAULT_OFF,          /* only counts */
    FAULT_ONCE,         /* the n-th call fails */
    FAULT_FROM_THEN_ON, /* the n-th and all later ones fail */
    FAULT_SHORT,        /* from the n-th on, transfers move half of the requested bytes */
    FAULT_MEANWHILE,    /* before the n-th call, fault.meanwhile is called */
    FAULT_KILL_BEFORE,  /* SIGKILL instead of the n-th call */
    FAULT_KILL_AFTER    /* SIGKILL when it is done */
} fault_mode;

extern struct fault_state {
    fault_mode mode;
    unsigned calls;   /* those that count */
    unsigned missing; /* those that the system does not know: EPERM, always */
    int errno_value;
    uint64_t nth, n_seen, n_fired;
    fault_call last_fired;
    bool armed;
    /* When set, decides about each pread: 0 or an errno value. May run in many threads. */
    int (*pread_hook)(int fd, uint64_t offset, size_t n_bytes);
    void (*meanwhile)(void);
    void (*open_hook)(const char *path); /* if set, called before each open */
    void (*sync_hook)(int fd);           /* and of each fsync that is executed */
} fault;

void fault_arm(fault_mode mode, unsigned calls, int errno_value, uint64_t nth);
/* Whether the fault has struck. */
bool fault_disarm(void);

/* Whether FAULT_MEMORY works: a sanitizer has its own memory and cannot do without it. */
#if defined(__has_feature)
#define FAULT_HAS_FEATURE(x) __has_feature(x)
#else
#define FAULT_HAS_FEATURE(x) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !FAULT_HAS_FEATURE(address_sanitizer) && !FAULT_HAS_FEATURE(thread_sanitizer)
#define FAULT_MEMORY_WORKS 1
#else
#define FAULT_MEMORY_WORKS 0
#endif
extern volatile int64_t fault_n_live; /* blocks allocated and not freed while armed */
