/* SPDX-License-Identifier: Apache-2.0 */
/* file_lock.h - a lock that one process at a time can have: a file that it locks, and removes when
 * it is done. The lock of a process that is killed ends with it. */
#ifndef TOKMAP_FILE_LOCK_H
#define TOKMAP_FILE_LOCK_H

#include <stdbool.h>

typedef struct file_lock {
    const char *path; /* must stay valid */
    int fd;
} file_lock;

/* 0, or an errno value: EWOULDBLOCK if another process has it. */
int file_lock_take(file_lock *lock, const char *path);
void file_lock_release(file_lock *lock);

#endif /* TOKMAP_FILE_LOCK_H */
