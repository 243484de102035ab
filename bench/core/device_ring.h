/* device_ring.h - reads by io_uring: a queue of whole reads, for device.c alone. */
#ifndef TOKMAP_BENCH_DEVICE_RING_H
#define TOKMAP_BENCH_DEVICE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device_ring device_ring;

/* NULL: not allowed here, or too old. */
device_ring *device_ring_open(uint32_t n_reads);
void device_ring_close(device_ring *r);

typedef struct device_ring_read {
    int fd;
    void *buffer;
    size_t n_bytes;
    uint64_t offset, user;
} device_ring_read;

/* No more than n_reads may be under way. */
void device_ring_add(device_ring *r, const device_ring_read *read);
/* Begins those that were added, and waits for one. */
bool device_ring_wait(device_ring *r);
/* False: none is done. */
bool device_ring_take(device_ring *r, uint64_t *user, int32_t *result);

#endif /* TOKMAP_BENCH_DEVICE_RING_H */
