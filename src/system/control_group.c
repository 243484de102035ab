/* SPDX-License-Identifier: Apache-2.0 */
#include "system/control_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

#define PATH_BYTES 4400

bool tokmap_i_small_file_read(const char *path, char *text, size_t n_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, n_bytes - 1);
    if (fd >= 0)
        close(fd);
    text[MAX(n, 0)] = 0;
    return n >= 0;
}

/* Reads the number at the beginning of a file, and *second, if there is one after it. Returns
 * UINT64_MAX if there is none: a limit that is "max", or -1. */
static uint64_t read_number(const char *folder, const char *name, uint64_t *second)
{
    char path[PATH_BYTES + 64], text[64], *end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!tokmap_i_small_file_read(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    const uint64_t number = strtoull(text, &end, 10);
    if (second && *end == ' ')
        *second = strtoull(end, NULL, 10);
    return number;
}

/* The limits that files of this folder state, in either version. */
static tokmap_i_group_limits limits_in(const char *folder)
{
    uint64_t period = 0;
    tokmap_i_group_limits limits = {.memory = read_number(folder, "memory.max", NULL)};
    uint64_t quota = read_number(folder, "cpu.max", &period);
    limits.memory = MIN(limits.memory, read_number(folder, "memory.limit_in_bytes", NULL));
    if (quota == UINT64_MAX) {
        quota = read_number(folder, "cpu.cfs_quota_us", NULL);
        period = read_number(folder, "cpu.cfs_period_us", NULL);
    }
    const bool has_quota = quota != UINT64_MAX && period > 0 && period != UINT64_MAX;
    limits.processors = has_quota ? MAX(quota / period + (quota % period > 0), 1) : UINT64_MAX;
    return limits;
}

/* Takes the smaller limits of a group below a folder, and of its parents. */
static void take_limits(tokmap_i_group_limits *least, const char *folder, const char *group)
{
    char path[PATH_BYTES];
    const size_t n_root = strlen(folder);
    const int n = snprintf(path, sizeof path, "%s%.*s", folder, (int)strcspn(group, "\n"), group);
    if (n < 0 || (size_t)n >= sizeof path)
        return;
    for (;;) {
        const tokmap_i_group_limits limits = limits_in(path);
        least->memory = MIN(least->memory, limits.memory);
        least->processors = MIN(least->processors, limits.processors);
        char *slash = strrchr(path + n_root, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

tokmap_i_group_limits tokmap_i_group_limits_of(const char *root, const char *groups)
{
    tokmap_i_group_limits least = {UINT64_MAX, UINT64_MAX};
    for (const char *line = groups; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *controllers = strchr(line, ':');
        const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group > line + strcspn(line, "\n"))
            continue;
        char folder[PATH_BYTES];
        const size_t n = (size_t)(group - controllers - 1);
        if (n == 0) /* version 2 */
            snprintf(folder, sizeof folder, "%s", root);
        else /* the folder of the controllers, such as cpu,cpuacct */
            snprintf(folder, sizeof folder, "%s/%.*s", root, (int)n, controllers + 1);
        take_limits(&least, folder, group + 1);
    }
    return least;
}

tokmap_i_group_limits tokmap_i_group_limits_now(void)
{
    char groups[4096];
    return tokmap_i_small_file_read("/proc/self/cgroup", groups, sizeof groups)
               ? tokmap_i_group_limits_of("/sys/fs/cgroup", groups)
               : (tokmap_i_group_limits){UINT64_MAX, UINT64_MAX};
}
