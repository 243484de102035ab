/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_processors.c - preloaded into a program: the machine seems to have STAND_IN_PROCESSORS
 * processors, so that defaults which follow from their number are tested on any machine. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    const char *text = getenv("STAND_IN_PROCESSORS");
    const int n = text ? atoi(text) : 0;
    (void)pid;
    if (n < 1 || (size_t)n > size * 8) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, size);
    for (int i = 0; i < n; i++)
        CPU_SET_S(i, size, set);
    return 0;
}
