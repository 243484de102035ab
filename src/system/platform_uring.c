/* SPDX-License-Identifier: Apache-2.0 */
#define _FILE_OFFSET_BITS 64
#include "system/platform_uring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "system/interrupted.h"

static void *map_ring(int fd, size_t n_bytes, off_t offset)
{
    void *map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return map == MAP_FAILED ? NULL : map;
}

static int map_queues(tokmap_i_uring *u, const struct io_uring_params *p)
{
    const size_t sq_bytes = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    const size_t cq_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    if (!(p->features & IORING_FEAT_SINGLE_MMAP)) /* such kernels also lack IORING_OP_READ */
        return ENOSYS;
    u->ring_bytes = MAX(sq_bytes, cq_bytes);
    u->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    u->ring = map_ring(u->fd, u->ring_bytes, IORING_OFF_SQ_RING);
    if (u->ring)
        u->entries = map_ring(u->fd, u->entries_bytes, (off_t)IORING_OFF_SQES);
    if (!u->entries)
        return errno;
    uint8_t *ring = u->ring;
    u->sq_tail = (_Atomic uint32_t *)(ring + p->sq_off.tail);
    u->sq_places = (uint32_t *)(ring + p->sq_off.array);
    u->cq_head = (_Atomic uint32_t *)(ring + p->cq_off.head);
    u->cq_tail = (_Atomic uint32_t *)(ring + p->cq_off.tail);
    u->results = (const struct io_uring_cqe *)(ring + p->cq_off.cqes);
    u->sq_mask = p->sq_entries - 1;
    u->cq_mask = p->cq_entries - 1;
    return 0;
}

int tokmap_i_uring_open(tokmap_i_uring *u, uint32_t n_reads)
{
    struct io_uring_params params = {0};
    *u = (tokmap_i_uring){.fd = -1};
    u->fd = (int)syscall(SYS_io_uring_setup, n_reads, &params);
    if (u->fd < 0)
        return errno;
    const int error = map_queues(u, &params);
    if (error)
        tokmap_i_uring_close(u);
    return error;
}

void tokmap_i_uring_close(tokmap_i_uring *u)
{
    if (u->ring)
        munmap(u->ring, u->ring_bytes);
    if (u->entries)
        munmap(u->entries, u->entries_bytes);
    if (u->fd >= 0)
        close(u->fd);
    *u = (tokmap_i_uring){.fd = -1};
}

void tokmap_i_uring_put(tokmap_i_uring *u, const tokmap_i_uring_read *read)
{
    const uint32_t tail = atomic_load_explicit(u->sq_tail, memory_order_relaxed);
    const uint32_t i = tail & u->sq_mask;
    struct io_uring_sqe *entry = &u->entries[i];
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_READ;
    entry->fd = read->fd;
    entry->addr = (uintptr_t)read->dst;
    entry->len = read->n_bytes;
    entry->off = read->offset;
    entry->user_data = read->id;
    u->sq_places[i] = i;
    atomic_store_explicit(u->sq_tail, tail + 1, memory_order_release);
    u->n_put++;
}

bool tokmap_i_uring_take_back(tokmap_i_uring *u, uint64_t *id)
{
    if (u->n_put == 0)
        return false;
    const uint32_t tail = atomic_load_explicit(u->sq_tail, memory_order_relaxed) - 1;
    *id = u->entries[tail & u->sq_mask].user_data;
    atomic_store_explicit(u->sq_tail, tail, memory_order_release);
    u->n_put--;
    return true;
}

int tokmap_i_uring_submit(tokmap_i_uring *u, bool wait)
{
    unsigned n_times = 0;
    do {
        const long n = syscall(SYS_io_uring_enter, u->fd, u->n_put, wait ? 1 : 0,
                               wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
        if (n < 0 && !tokmap_i_is_interrupted(&n_times))
            return errno;
        if (n > 0)
            u->n_put -= (uint32_t)n;
        if (n == 0 && u->n_put > 0)
            return EAGAIN;
    } while (u->n_put > 0);
    return 0;
}

bool tokmap_i_uring_take(tokmap_i_uring *u, uint64_t *id, int32_t *result)
{
    const uint32_t head = atomic_load_explicit(u->cq_head, memory_order_relaxed);
    if (head == atomic_load_explicit(u->cq_tail, memory_order_acquire))
        return false;
    const struct io_uring_cqe *done = &u->results[head & u->cq_mask];
    *id = done->user_data;
    *result = done->res;
    atomic_store_explicit(u->cq_head, head + 1, memory_order_release);
    return true;
}
