/* SPDX-License-Identifier: Apache-2.0 */
/* interrupted.h - how often a system call that a signal interrupted is made again. */
#pragma once

#include <errno.h>
#include <stdbool.h>

/* Whether the call that just failed is made again; n_times begins with 0. Not forever: a broken
 * file system may answer EINTR each time. */
static inline bool tokmap_i_is_interrupted(unsigned *n_times)
{
    const unsigned max_times = 1000000;
    return errno == EINTR && ++*n_times < max_times;
}
