/* SPDX-License-Identifier: Apache-2.0 */
#include "system/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "system/interrupted.h"

int input_stop_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void input_stop_raise(int stop_fd)
{
    int sys_errno = errno;
    eventfd_write(stop_fd, 1);
    errno = sys_errno;
}

bool input_stop_raised(int stop_fd)
{
    struct pollfd fd = {.fd = stop_fd, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Without O_NONBLOCK, opening a named pipe would wait for a writer and ignore the stop; so only the
 * first read waits. */
int input_file_open(const char *path)
{
    if (strcmp(path, "-") == 0)
        return STDIN_FILENO;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

ssize_t input_file_read(int fd, int stop_fd, void *to, size_t n_bytes)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
    ssize_t n;
    unsigned n_times = 0;
    do {
        n = poll(fds, 2, -1) < 0 ? -1 : 0;
        if (n == 0 && fds[1].revents) {
            errno = ECANCELED;
            return -1;
        }
        if (n == 0)
            n = read(fd, to, n_bytes);
    } while (n < 0 && tokmap_i_is_interrupted(&n_times));
    return n;
}

int input_file_skip_to(int fd, uint64_t offset)
{
    if (offset > INT64_MAX)
        return EOVERFLOW;
    return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? errno : 0;
}

void input_file_close(int fd)
{
    if (fd > STDIN_FILENO)
        close(fd);
}

FILE *input_file_open_text(const char *path)
{
    return strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
}

void input_file_close_text(FILE *file)
{
    if (file != stdin)
        fclose(file);
}
