/* SPDX-License-Identifier: Apache-2.0 */
/* control_group.h - the limits that a container or a scheduler of jobs sets: those of the control
 * group of this process and of its parents, in version 1 or 2. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tokmap_i_group_limits {
    uint64_t memory;     /* bytes; UINT64_MAX: no limit */
    uint64_t processors; /* the quota of time, rounded up; UINT64_MAX: no limit */
} tokmap_i_group_limits;

tokmap_i_group_limits tokmap_i_group_limits_now(void);
/* The limits of the groups that a text like /proc/self/cgroup names, below a folder like
 * /sys/fs/cgroup. */
tokmap_i_group_limits tokmap_i_group_limits_of(const char *root, const char *groups);
/* Reads the beginning of a small file and terminates it; false if it cannot be read. */
bool tokmap_i_small_file_read(const char *path, char *text, size_t n_bytes);
