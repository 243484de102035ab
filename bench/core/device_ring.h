/* SPDX-License-Identifier: Apache-2.0 */
/* device_ring.h - reads by io_uring: a queue of whole reads, used only by device.c. */
#ifndef TOKMAP_BENCH_DEVICE_RING_H
#define TOKMAP_BENCH_DEVICE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device_ring device_ring;

/* NULL: not allowed on this machine, or the kernel is too old. */
device_ring *device_ring_open(uint32_t n_reads);
void device_ring_close(device_ring *r);

typedef struct device_ring_read {
    int fd;
    void *buffer;
    size_t n_bytes;
    uint64_t offset, user;
} device_ring_read;

/* At most n_reads may be running. */
void device_ring_add(device_ring *r, const device_ring_read *read);
/* Starts the added reads, and waits for one to end. */
bool device_ring_wait(device_ring *r);
/* False: none has ended. */
bool device_ring_take(device_ring *r, uint64_t *user, int32_t *result);

#endif /* TOKMAP_BENCH_DEVICE_RING_H */
