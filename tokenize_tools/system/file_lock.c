/* SPDX-License-Identifier: Apache-2.0 */
#include "system/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "system/files.h"

/* Opens and locks the file. Another process may remove it between the two; then the lock is on a
 * file without a name, and *again is true. */
static int try_lock(file_lock *lock, bool *again)
{
    file_facts facts;
    *again = false;
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (lock->fd < 0)
        return errno;
    int error = flock(lock->fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == 0)
        error = file_describe_open(lock->fd, &facts);
    if (error == 0)
        *again = !file_is(lock->path, facts.id);
    if (error || *again)
        close(lock->fd);
    return error;
}

int file_lock_take(file_lock *lock, const char *path)
{
    enum {
        MAX_TRIES = 100
    };
    *lock = (file_lock){path, -1};
    for (int i = 0; i < MAX_TRIES; i++) {
        bool again;
        const int error = try_lock(lock, &again);
        if (!again)
            return error;
    }
    return EWOULDBLOCK;
}

void file_lock_release(file_lock *lock)
{
    unlink(lock->path);
    close(lock->fd);
}
