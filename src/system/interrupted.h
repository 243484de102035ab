/* SPDX-License-Identifier: Apache-2.0 */
/* interrupted.h - repeats a system call that a signal interrupted. */
#pragma once

#include <errno.h>
#include <stdbool.h>

/* Whether to repeat the call that just failed; n_times begins with 0. Not for long: a broken file
 * system may answer EINTR each time, after a while. */
static inline bool tokmap_i_is_interrupted(unsigned *n_times)
{
    const unsigned max_times = 100;
    return errno == EINTR && ++*n_times < max_times;
}
