/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_on_cpu.h - src/stage/cuda/expand.cu, the very text, as C: its phases run on the processor.
 *
 * A phase is what lies between two barriers. All threads of a block do one before any does the
 * next, which is what a barrier promises; in which order they do it is the caller's choice, since
 * a device promises none. */
#pragma once

#include <stdint.h>
#include <string.h>

#define __device__

/* Loads of 16 bytes are right for any type that the image holds. */
typedef struct uint4 {
    uint32_t x, y, z, w;
} __attribute__((aligned(16), may_alias)) uint4;

static inline int __popc(int bits)
{
    return __builtin_popcount((unsigned)bits);
}

static inline int __clz(int bits)
{
    return bits ? __builtin_clz((unsigned)bits) : 32;
}

static inline uint32_t atomicOr(uint32_t *at, uint32_t bits)
{
    const uint32_t was = *at;
    *at |= bits;
    return was;
}

#include "stage/cuda/expand.cu"

enum {
    CUDA_PHASES = 5
};

/* In which order the threads of a block do each phase. */
typedef struct cuda_orders {
    uint16_t threads[CUDA_PHASES][TOKMAP_I_BLOCK_THREADS];
} cuda_orders;

/* For the compiler, as __syncthreads is: what was stored before is read behind it, by whatever
 * type. */
static inline void cuda_barrier(tile *t)
{
    __asm__ volatile("" : : "r"(t) : "memory");
}

/* What tokmap_expand does, for one block of a launch. Memory of a block holds anything at first. */
static inline void cuda_run_block(const tokmap_i_expand_job *job, uint32_t block,
                                  const cuda_orders *orders, uint8_t garbage)
{
    const uint32_t n_threads = TOKMAP_I_BLOCK_THREADS, n_blocks = job->n_rows * job->n_tiles;
    tile t;
    memset(&t, garbage, sizeof t);
    for (uint32_t i = 0; i < n_threads; i++)
        load_row(&t, job, block, orders->threads[0][i]);
    cuda_barrier(&t);
    const place p = find_place(&t, job, block);
    for (uint32_t i = 0; i < n_threads; i++)
        load_tokens(&t, &p, orders->threads[1][i]);
    cuda_barrier(&t);
    for (uint32_t i = 0; job->tile_boundaries && i < n_threads; i++)
        mark_begins(&t, job, &p, orders->threads[2][i]);
    cuda_barrier(&t);
    for (uint32_t i = 0; job->tile_boundaries && i < n_threads; i++)
        count_begins(&t, job, &p, orders->threads[3][i]);
    cuda_barrier(&t);
    for (uint32_t i = 0; i < n_threads; i++) {
        const uint32_t thread = orders->threads[4][i];
        put_tile(&t, job, &p, thread);
        if (job->cu_seqlens)
            put_boundaries(job, (uint64_t)block * n_threads + thread,
                           (uint64_t)n_blocks * n_threads);
    }
}
