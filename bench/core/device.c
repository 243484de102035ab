/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "system/platform.h"
#include "system/platform_uring.h"

device_file device_open(const char *path)
{
    struct statfs system;
    tokmap_i_file_stat stat;
    device_file file = {.direct_fd = -1};
    bench_check_errno(tokmap_i_file_open(path, &file.fd), path);
    bench_check_errno(tokmap_i_file_stat_fd(file.fd, &stat), path);
    bench_check_errno(fstatfs(file.fd, &system) ? errno : 0, path);
    file.n_bytes = stat.n_bytes;
    file.in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
    if (!file.in_memory)
        file.direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    return file;
}

typedef struct run {
    const device_file *file;
    const device_reads *reads;
    uint8_t *buffers; /* of n_at_once reads */
    uint64_t n_places, until;
    atomic_uint_fast64_t n_reads; /* started */
    atomic_uint n_threads;        /* likewise */
} run;

static uint64_t next_offset(run *r, uint64_t *seed)
{
    const uint64_t i = atomic_fetch_add(&r->n_reads, 1);
    const uint64_t place = r->reads->sequential
                               ? i * (r->reads->read_bytes / DEVICE_BLOCK) % r->n_places
                               : bench_random(seed) % r->n_places;
    return place * DEVICE_BLOCK;
}

static void check_read(int64_t n_read, size_t n_bytes)
{
    if (n_read != (int64_t)n_bytes)
        bench_fail("the data could not be read past the page cache");
}

static void put_read(run *r, tokmap_i_uring *ring, uint64_t slot, uint64_t *seed)
{
    const tokmap_i_uring_read read = {.fd = r->file->direct_fd,
                                      .n_bytes = (uint32_t)r->reads->read_bytes,
                                      .offset = next_offset(r, seed),
                                      .dst = r->buffers + slot * r->reads->read_bytes,
                                      .id = slot};
    tokmap_i_uring_put(ring, &read);
}

/* Waits for all started reads, so that none writes to freed memory. */
static void read_by_ring(run *r, tokmap_i_uring *ring)
{
    uint64_t seed = r->reads->seed, slot;
    int32_t result;
    uint32_t n_running = r->reads->n_at_once;
    for (slot = 0; slot < n_running; slot++)
        put_read(r, ring, slot, &seed);
    while (n_running > 0) {
        if (tokmap_i_uring_submit(ring, true))
            bench_fail("io_uring could not submit a read");
        while (tokmap_i_uring_take(ring, &slot, &result)) {
            check_read(result, r->reads->read_bytes);
            if (tokmap_i_now_ns() < r->until)
                put_read(r, ring, slot, &seed);
            else
                n_running--;
        }
    }
}

/* Reads at least once, even if the time is over before the thread runs: a rate of 0 would not be a
 * limit. */
static void *read_places(void *context)
{
    run *r = context;
    const size_t n = r->reads->read_bytes;
    const uint64_t thread = atomic_fetch_add(&r->n_threads, 1);
    uint64_t seed = r->reads->seed + thread;
    do
        check_read(
            pread(r->file->direct_fd, r->buffers + thread * n, n, (off_t)next_offset(r, &seed)), n);
    while (tokmap_i_now_ns() < r->until);
    return NULL;
}

double device_rate(const device_file *file, const device_reads *reads)
{
    run r = {.file = file,
             .reads = reads,
             .buffers = bench_memory(reads->n_at_once * reads->read_bytes),
             .n_places = (file->n_bytes - reads->read_bytes) / DEVICE_BLOCK};
    tokmap_i_uring ring;
    const bool has_ring = tokmap_i_uring_open(&ring, reads->n_at_once) == 0;
    const uint64_t start = tokmap_i_now_ns();
    r.until = start + reads->ns;
    if (has_ring)
        read_by_ring(&r, &ring);
    else
        tokmap_i_run_threads(reads->n_at_once < TOKMAP_I_MAX_THREADS ? reads->n_at_once
                                                                     : TOKMAP_I_MAX_THREADS,
                             read_places, &r);
    const double rate = (double)r.n_reads * 1e9 / bench_ns_since(start);
    if (has_ring)
        tokmap_i_uring_close(&ring);
    free(r.buffers);
    return rate;
}

void device_forget(const device_file *file, const tokmap_dataset *ds)
{
    const void *tokens;
    if (ds && tokmap_dataset_tokens(ds, 0, 1, &tokens) == TOKMAP_OK) {
        const tokmap_dataset_info info = cli_dataset_info(ds);
        const size_t within = (uintptr_t)tokens % DEVICE_BLOCK; /* the tokens follow a header */
        tokmap_i_map_forget((const uint8_t *)tokens - within,
                            info.n_tokens * info.token_bytes + within);
    }
    fdatasync(file->fd);
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}
