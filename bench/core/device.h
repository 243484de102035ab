/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - reads a file past the page cache, at the rate of its device, and drops files from the
 * page cache. What fails ends the page (bench_fail). */
#pragma once

#include "core/bench.h"

enum {
    DEVICE_BLOCK = 4096 /* an alignment that O_DIRECT accepts everywhere */
};

typedef struct device_file {
    int fd, direct_fd; /* direct_fd -1: the file system has no O_DIRECT, or */
    bool in_memory;    /* it is on a tmpfs: there is no device, and data is never cold */
    uint64_t n_bytes;
} device_file;

/* Opens a file; the caller closes both descriptors. */
device_file device_open(const char *path);

typedef struct device_reads {
    size_t read_bytes;  /* bytes of each read; a multiple of DEVICE_BLOCK */
    uint32_t n_at_once; /* a power of two */
    bool sequential;    /* else at random offsets */
    uint64_t seed, ns;  /* for so long */
} device_reads;

/* Measures reads per second, by io_uring, or, if it is not allowed, by at most 64 threads. The file
 * is longer than a read and a block. */
double device_rate(const device_file *file, const device_reads *reads);

/* Drops the file from the page cache. Mapped pages would stay, so the map of the dataset, if ds is
 * not NULL, drops them first. */
void device_forget(const device_file *file, const tokmap_dataset *ds);
