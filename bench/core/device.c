/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/device_ring.h"
#include "core/load_data.h"
#include "system/platform_thread.h"

enum {
    MAX_AT_ONCE = 128
};

bool device_open(device_file *file, const char *path)
{
    struct stat st;
    struct statfs system;
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
    file->direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &st) || fstatfs(file->fd, &system)) {
        cli_warn("%s: %s", path, strerror(errno));
        device_close(file);
        return false;
    }
    file->n_bytes = (uint64_t)st.st_size;
    file->in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
    if (file->in_memory && file->direct_fd >= 0) {
        close(file->direct_fd);
        file->direct_fd = -1;
    }
    return true;
}

void device_close(device_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->direct_fd >= 0)
        close(file->direct_fd);
    file->fd = file->direct_fd = -1;
}

/* ---- Rate ---- */

typedef struct run {
    const device_file *file;
    const device_reads *reads;
    uint64_t n_places, until;
    atomic_uint_fast64_t n_reads; /* started */
} run;

static uint64_t next_offset(run *r, uint64_t *seed)
{
    const uint64_t i = atomic_fetch_add(&r->n_reads, 1);
    const uint64_t place = r->reads->sequential
                               ? i * (r->reads->read_bytes / DEVICE_BLOCK) % r->n_places
                               : bench_random(seed) % r->n_places;
    return place * DEVICE_BLOCK;
}

static void add_read(run *r, device_ring *ring, uint8_t *buffers, uint64_t slot, uint64_t *seed)
{
    const device_ring_read read = {.fd = r->file->direct_fd,
                                   .buffer = buffers + slot * r->reads->read_bytes,
                                   .n_bytes = r->reads->read_bytes,
                                   .offset = next_offset(r, seed),
                                   .user = slot};
    device_ring_add(ring, &read);
}

/* Waits for all started reads, so that none writes to freed memory. */
static bool read_by_ring(run *r, device_ring *ring, uint8_t *buffers)
{
    uint64_t seed = r->reads->seed, slot;
    uint32_t n_under_way = r->reads->n_at_once;
    int32_t result;
    bool fine = true;
    for (uint32_t i = 0; i < r->reads->n_at_once; i++)
        add_read(r, ring, buffers, i, &seed);
    while (n_under_way > 0) {
        if (!device_ring_wait(ring))
            abort(); /* running reads would write to freed memory */
        const bool again = fine && tokmap_i_now_ns() < r->until;
        while (device_ring_take(ring, &slot, &result)) {
            fine = fine && result == (int32_t)r->reads->read_bytes;
            if (again && fine)
                add_read(r, ring, buffers, slot, &seed);
            else
                n_under_way--;
        }
    }
    return fine;
}

typedef struct reader {
    run *run;
    uint8_t *buffer;
    uint64_t seed;
    bool failed;
} reader;

/* At least one, also if the time is over before the thread runs: a rate of 0 is no limit. */
static void *read_places(void *arg)
{
    reader *r = arg;
    const size_t n = r->run->reads->read_bytes;
    do
        r->failed = pread(r->run->file->direct_fd, r->buffer, n,
                          (off_t)next_offset(r->run, &r->seed)) != (ssize_t)n;
    while (!r->failed && tokmap_i_now_ns() < r->run->until);
    return NULL;
}

static bool read_by_threads(run *r, uint8_t *buffers)
{
    tokmap_i_thread threads[MAX_AT_ONCE];
    reader readers[MAX_AT_ONCE];
    uint64_t seed = r->reads->seed;
    bool failed = false;
    for (uint32_t i = 0; i < r->reads->n_at_once; i++) {
        readers[i] = (reader){r, buffers + i * r->reads->read_bytes, bench_random(&seed), false};
        if (tokmap_i_thread_start(&threads[i], read_places, &readers[i]))
            abort();
    }
    for (uint32_t i = 0; i < r->reads->n_at_once; i++) {
        tokmap_i_thread_join(threads[i]);
        failed |= readers[i].failed;
    }
    return !failed;
}

double device_rate(const device_file *file, const device_reads *reads)
{
    const size_t n_bytes = reads->n_at_once * reads->read_bytes;
    run r = {.file = file, .reads = reads};
    if (file->direct_fd < 0 || file->n_bytes < reads->read_bytes + DEVICE_BLOCK ||
        reads->n_at_once > MAX_AT_ONCE)
        return -1;
    r.n_places = (file->n_bytes - reads->read_bytes) / DEVICE_BLOCK;
    uint8_t *buffers = aligned_alloc(DEVICE_BLOCK, n_bytes);
    if (!buffers)
        return -1;
    memset(buffers, 0, n_bytes); /* allocates its pages before the clock starts */
    device_ring *ring = device_ring_open(reads->n_at_once);
    const uint64_t start = tokmap_i_now_ns();
    r.until = start + reads->ns;
    const bool fine = ring ? read_by_ring(&r, ring, buffers) : read_by_threads(&r, buffers);
    const double rate = (double)r.n_reads * 1e9 / (double)(tokmap_i_now_ns() - start);
    device_ring_close(ring);
    free(buffers);
    return fine ? rate : -1;
}

/* ---- What the system counts and keeps ---- */

uint64_t device_bytes(void)
{
    const double n = bench_system_number("/proc/self/io", "read_bytes:");
    return n < 0 ? 0 : (uint64_t)n;
}

void device_forget(const device_file *file, const tokmap_dataset *ds)
{
    const void *tokens;
    if (ds && tokmap_dataset_tokens(ds, 0, 1, &tokens) == TOKMAP_OK) {
        const tokmap_dataset_info info = load_data_info(ds);
        const size_t within = (uintptr_t)tokens % DEVICE_BLOCK; /* the tokens follow a header */
        madvise((uint8_t *)(uintptr_t)tokens - within, info.n_tokens * info.token_bytes + within,
                MADV_DONTNEED);
    }
    fdatasync(file->fd);
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}
