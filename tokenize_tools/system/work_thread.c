/* SPDX-License-Identifier: Apache-2.0 */
#include "system/work_thread.h"

#include "system/platform_thread.h"

static uint64_t used_ns[WORK_N_KINDS];

void work_thread_begin(work_thread kind)
{
    static const char *const names[] = {"tokmap-read", "tokmap-inflate", "tokmap-encode"};
    tokmap_i_thread_name(names[kind]);
}

void work_thread_end(work_thread kind)
{
    __atomic_fetch_add(&used_ns[kind], tokmap_i_thread_cpu_ns(), __ATOMIC_RELAXED);
}

uint64_t work_thread_ns(work_thread kind)
{
    return __atomic_load_n(&used_ns[kind], __ATOMIC_RELAXED);
}
