/* SPDX-License-Identifier: Apache-2.0 */
/* work_thread.h - the threads of the commands by what they do: their names, and how much processor
 * time they have used. */
#pragma once

#include <stdint.h>

typedef enum work_thread {
    WORK_READ,       /* reads records */
    WORK_DECOMPRESS, /* reads and decompresses for one that reads records */
    WORK_ENCODE,
    WORK_N_KINDS
} work_thread;

/* The first and the last thing that such a thread does. */
void work_thread_begin(work_thread kind);
void work_thread_end(work_thread kind);
/* What the threads of this kind that have ended have used. */
uint64_t work_thread_ns(work_thread kind);
