/* device.h - a file read past the page cache, at the rate of the device below it, and the page
 * cache made to forget it. */
#ifndef TOKMAP_BENCH_DEVICE_H
#define TOKMAP_BENCH_DEVICE_H

#include "core/bench.h"
#include "tokmap.h"

enum {
    DEVICE_BLOCK = 4096 /* what O_DIRECT is content with everywhere */
};

typedef struct device_file {
    int fd, direct_fd; /* direct_fd -1: the file system has no O_DIRECT, or */
    bool in_memory;    /* it is a tmpfs: there is no device, and nothing is ever cold */
    uint64_t n_bytes;
} device_file;

/* False: it cannot be read at all, and stderr says why. */
bool device_open(device_file *file, const char *path);
void device_close(device_file *file);

typedef struct device_reads {
    size_t read_bytes;  /* of each; a multiple of DEVICE_BLOCK */
    uint32_t n_at_once; /* up to 128 under way */
    bool sequential;    /* else from random places */
    uint64_t seed, ns;  /* for so long */
} device_reads;

/* Reads a second, by io_uring, or by as many threads where that is not allowed; -1: it failed, or
 * the file is smaller than what is to be read of it. */
double device_rate(const device_file *file, const device_reads *reads);

/* What this process had read from disks, in bytes. */
uint64_t device_bytes(void);
/* Drops the file from the page cache. What is mapped stays there, so the map of the dataset lets go
 * of it first. */
void device_forget(const device_file *file, const tokmap_dataset *ds);

#endif /* TOKMAP_BENCH_DEVICE_H */
