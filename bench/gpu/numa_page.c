/* numa_page.c - E12: copies from memory of each node; and a mapped file read by a kernel without
 * being registered, where the device can do that. */
#include "gpubench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels.h"

enum {
    MAX_NODES = 16,
    BIND = 2, /* of mbind: this node and no other */
    ROUNDS = 3
};
#define NODE_BYTES (256 * MIB)
#define FILE_BYTES (64 * MIB)

static int count_nodes(void)
{
    char path[64];
    int n = 0;
    for (int i = 0; i < MAX_NODES; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

static void measure_node(int node, stream_timer *t, void *device)
{
    unsigned long mask = 1ul << node;
    host_memory m = {.kind = REGISTERED, .n_bytes = NODE_BYTES};
    figure r = row_of("GB/s", "h2d from memory node %d", node);
    m.bytes = memory_map(NODE_BYTES, MADV_HUGEPAGE);
    if (m.bytes && syscall(SYS_mbind, m.bytes, NODE_BYTES, BIND, &mask, 64, 0) == 0) {
        memset(m.bytes, 0x5A, NODE_BYTES);
        if (fine(cudaHostRegister(m.bytes, NODE_BYTES, cudaHostRegisterPortable),
                 "cudaHostRegister")) {
            for (int i = 0; i < ROUNDS; i++) {
                const double rate = copy_rate(t, &m, device, 16 * MIB, 64);
                if (rate > 0)
                    row_add(&r, rate);
            }
            cudaHostUnregister(m.bytes);
        }
    }
    if (m.bytes)
        munmap(m.bytes, NODE_BYTES);
    row_write(&r);
}

static void measure_nodes(stream_timer *t)
{
    const int n = count_nodes();
    void *device = NULL;
    int own = -1;
    if (n < 2) {
        row_left_out("this machine has one memory node", "h2d from memory nodes");
        return;
    }
    (void)cudaDeviceGetAttribute(&own, cudaDevAttrHostNumaId, 0);
    fprintf(stderr, "gpubench: the device is at memory node %d\n", own);
    if (fine(cudaMalloc(&device, NODE_BYTES), "cudaMalloc"))
        for (int node = 0; node < n; node++)
            measure_node(node, t, device);
    cudaFree(device);
}

/* ---- A file that is only mapped ---- */

static void *map_file(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/mapped_XXXXXX", dir);
    const int fd = mkstemp(path);
    uint8_t *block = malloc(FILE_BYTES);
    void *map = MAP_FAILED;
    if (fd >= 0)
        unlink(path);
    if (block)
        memset(block, 0x5A, FILE_BYTES);
    if (fd >= 0 && block && write(fd, block, FILE_BYTES) == (ssize_t)FILE_BYTES)
        map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    free(block);
    if (fd >= 0)
        close(fd);
    return map;
}

static void measure_mapped(const options *o, stream_timer *t)
{
    int can = 0;
    void *sum = NULL;
    (void)cudaDeviceGetAttribute(&can, cudaDevAttrPageableMemoryAccess, 0);
    if (!can) {
        row_left_out("the device cannot read memory that is not registered (attribute 88 is 0)",
                     "a mapped file read by a kernel");
        return;
    }
    void *map = map_file(o->dir);
    if (map == MAP_FAILED || !fine(cudaMalloc(&sum, 8), "cudaMalloc")) {
        row_left_out("no file, or no memory", "a mapped file read by a kernel");
        return;
    }
    static const char *const names[] = {"first time", "again"};
    for (int i = 0; i < 2; i++) {
        figure r = row_of("GB/s", "a mapped file read by a kernel, %s", names[i]);
        const bool ok = timer_begin(t) &&
                        fine(kernel_read(map, FILE_BYTES, sum, t->stream), "starting the kernel");
        const double us = ok ? timer_end(t) : -1;
        if (us > 0)
            row_add(&r, (double)FILE_BYTES / us / 1e3);
        row_write(&r);
        if (us < 0)
            break;
    }
    cudaFree(sum);
    munmap(map, FILE_BYTES);
}

int numa_page(const options *o)
{
    stream_timer t;
    const bool ok = timer_open(&t);
    if (ok) {
        measure_nodes(&t);
        measure_mapped(o, &t);
    }
    timer_close(&t);
    return ok ? 0 : STATUS_FAILED;
}
