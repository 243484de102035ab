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

/* The smallest limit of a control group and those above it. */
static uint64_t least_limit(const char *root, char *group, const char *name)
{
    char path[4300], limit[64];
    uint64_t least = UINT64_MAX;
    group[strcspn(group, "\n")] = 0;
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        if (read_text(path, limit, sizeof limit) && limit[0] >= '0' && limit[0] <= '9')
            least = MIN(least, strtoull(limit, NULL, 10));
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* Of our control group, whichever of the two versions rules memory here. */
static uint64_t group_limit(void)
{
    char text[4096];
    uint64_t limit = UINT64_MAX;
    if (!read_text("/proc/self/cgroup", text, sizeof text))
        return limit;
    char *second = strstr(text, "0::/"), *first = strstr(text, ":memory:/");
    if (second)
        limit = least_limit("/sys/fs/cgroup", second + strlen("0::"), "memory.max");
    if (first) {
        const uint64_t other = least_limit("/sys/fs/cgroup/memory", first + strlen(":memory:"),
                                           "memory.limit_in_bytes");
        limit = MIN(limit, other);
    }
    return limit;
}

uint64_t tokmap_i_memory_available(void)
{
    const uint64_t system = system_available(), group = group_limit();
    return MIN(system, group);
}
