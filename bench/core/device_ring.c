/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device_ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct device_ring {
    int fd;
    uint8_t *queues;
    struct io_uring_sqe *entries;
    size_t queues_bytes, entries_bytes;
    struct io_uring_params params;
    uint32_t n_added; /* and not yet started */
};

static _Atomic uint32_t *number_at(const device_ring *r, uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)(r->queues + offset);
}

static bool map_queues(device_ring *r)
{
    const struct io_uring_params *p = &r->params;
    const size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    const size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    if (!(p->features & IORING_FEAT_SINGLE_MMAP))
        return false;
    r->queues_bytes = sq > cq ? sq : cq;
    r->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    void *map =
        mmap(NULL, r->queues_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
    r->queues = map == MAP_FAILED ? NULL : map;
    map = mmap(NULL, r->entries_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
               (off_t)IORING_OFF_SQES);
    r->entries = map == MAP_FAILED ? NULL : map;
    return r->queues && r->entries;
}

device_ring *device_ring_open(uint32_t n_reads)
{
    device_ring *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->fd = (int)syscall(SYS_io_uring_setup, n_reads, &r->params);
    if (r->fd < 0 || !map_queues(r)) {
        device_ring_close(r);
        return NULL;
    }
    return r;
}

void device_ring_close(device_ring *r)
{
    if (!r)
        return;
    if (r->queues)
        munmap(r->queues, r->queues_bytes);
    if (r->entries)
        munmap(r->entries, r->entries_bytes);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

void device_ring_add(device_ring *r, const device_ring_read *read)
{
    _Atomic uint32_t *tail = number_at(r, r->params.sq_off.tail);
    const uint32_t at = atomic_load_explicit(tail, memory_order_relaxed);
    const uint32_t place = at & (r->params.sq_entries - 1);
    r->entries[place] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                              .fd = read->fd,
                                              .addr = (uintptr_t)read->buffer,
                                              .len = (uint32_t)read->n_bytes,
                                              .off = read->offset,
                                              .user_data = read->user};
    ((uint32_t *)(void *)(r->queues + r->params.sq_off.array))[place] = place;
    atomic_store_explicit(tail, at + 1, memory_order_release);
    r->n_added++;
}

bool device_ring_wait(device_ring *r)
{
    long n;
    do
        n = syscall(SYS_io_uring_enter, r->fd, r->n_added, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        r->n_added -= (uint32_t)n;
    return n >= 0;
}

bool device_ring_take(device_ring *r, uint64_t *user, int32_t *result)
{
    _Atomic uint32_t *head = number_at(r, r->params.cq_off.head);
    const uint32_t at = atomic_load_explicit(head, memory_order_relaxed);
    if (at == atomic_load_explicit(number_at(r, r->params.cq_off.tail), memory_order_acquire))
        return false;
    const struct io_uring_cqe *done =
        (const struct io_uring_cqe *)(void *)(r->queues + r->params.cq_off.cqes) +
        (at & (r->params.cq_entries - 1));
    *user = done->user_data;
    *result = done->res;
    atomic_store_explicit(head, at + 1, memory_order_release);
    return true;
}
