#include "platform_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* The beginning of a small file, with a terminator; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t n_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, n_bytes - 1);
    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = 0;
    return n >= 0;
}

static uint64_t system_available(void)
{
    char text[4096];
    const char *line =
        read_text("/proc/meminfo", text, sizeof text) ? strstr(text, "MemAvailable:") : NULL;
    return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}

/* The smallest limit of our control group (version 2) and those above it. */
static uint64_t group_limit(void)
{
    char text[4096], path[4300], limit[64];
    uint64_t least = UINT64_MAX;
    char *group = read_text("/proc/self/cgroup", text, sizeof text) ? strstr(text, "0::/") : NULL;
    if (!group)
        return UINT64_MAX;
    group += strlen("0::");
    group[strcspn(group, "\n")] = 0;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        if (read_text(path, limit, sizeof limit) && limit[0] >= '0' && limit[0] <= '9')
            least = MIN(least, strtoull(limit, NULL, 10));
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

uint64_t tokmap_i_memory_available(void)
{
    const uint64_t system = system_available(), group = group_limit();
    return MIN(system, group);
}
