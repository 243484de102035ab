/* register_page.c - E3: which mapped files the driver takes, how long that is, whether the system
 * copies the pages for it (they become anonymous memory), and how fast the device reads them. Then
 * what registering does to work that is under way. */
#include "gpubench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernels.h"

enum {
    N_FILES = 4,
    N_MAPPINGS = 3,
    MOST_WORK = 4000
};
#define FILE_BYTES (256 * MIB)
#define CHUNK_BYTES (64 * MIB)

typedef struct mapping {
    const char *name;
    int protection, flags;
    unsigned how;
} mapping;

static const mapping mappings[N_MAPPINGS] = {
    {"shared, read-only, as read-only", PROT_READ, MAP_SHARED, cudaHostRegisterReadOnly},
    {"shared, writable", PROT_READ | PROT_WRITE, MAP_SHARED, 0},
    {"private, read-only, as read-only", PROT_READ, MAP_PRIVATE, cudaHostRegisterReadOnly}};

/* ---- Files ---- */

static const char *file_system(int fd)
{
    static char text[32];
    struct statfs s;
    if (fstatfs(fd, &s))
        return "unknown";
    switch ((unsigned long)s.f_type) {
    case 0xEF53:
        return "ext4";
    case 0x58465342:
        return "xfs";
    case 0x01021994:
        return "tmpfs";
    case 0x794c7630:
        return "overlayfs";
    case 0x9123683E:
        return "btrfs";
    default:
        snprintf(text, sizeof text, "file system 0x%lx", (unsigned long)s.f_type);
        return text;
    }
}

static int temporary(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/registered_XXXXXX", dir);
    const int fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* -1: cannot be had here. */
static int open_file(const options *o, int which, char *name, size_t n_bytes)
{
    const int fd = which == 0   ? temporary(o->dir)
                   : which == 1 ? temporary("/dev/shm")
                   : which == 2 ? memfd_create("registered", MFD_CLOEXEC)
                                : memfd_create("registered", MFD_CLOEXEC | MFD_HUGETLB);
    snprintf(name, n_bytes, "%s",
             which == 2   ? "memfd"
             : which == 3 ? "hugetlbfs"
             : fd < 0     ? "no file"
                          : file_system(fd));
    return fd;
}

static bool fill_file(int fd, bool by_map)
{
    if (ftruncate(fd, (off_t)FILE_BYTES))
        return false;
    if (by_map) {
        void *map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            return false;
        memset(map, 0x5A, FILE_BYTES);
        munmap(map, FILE_BYTES);
        return true;
    }
    uint8_t *block = malloc(MIB);
    bool ok = block != NULL;
    if (ok)
        memset(block, 0x5A, MIB);
    for (uint64_t at = 0; at < FILE_BYTES && ok; at += MIB)
        ok = pwrite(fd, block, MIB, (off_t)at) == (ssize_t)MIB;
    free(block);
    return ok;
}

/* ---- One map ---- */

/* The line that begins the part of smaps about a piece of memory. */
static bool is_heading(const char *line, uintptr_t *begin, uintptr_t *end)
{
    char *after;
    *begin = strtoul(line, &after, 16);
    if (*after != '-')
        return false;
    *end = strtoul(after + 1, &after, 16);
    return *after == ' ';
}

/* KiB of it that are no file's pages any more. */
static double anonymous_kib(const void *map)
{
    static const char name[] = "Anonymous:";
    char line[512];
    uintptr_t begin, end;
    double kib = 0;
    bool here = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (is_heading(line, &begin, &end))
            here = begin >= (uintptr_t)map && end <= (uintptr_t)map + FILE_BYTES;
        else if (here && strncmp(line, name, strlen(name)) == 0)
            kib += strtod(line + strlen(name), NULL);
    }
    if (f)
        fclose(f);
    return kib;
}

static double read_rate(stream_timer *t, const void *map, void *sink)
{
    void *device = NULL;
    if (!fine(cudaHostGetDevicePointer(&device, (void *)(uintptr_t)map, 0),
              "cudaHostGetDevicePointer"))
        return -1;
    slices s = {.source = device, .n = MAX_SLICES, .n_bytes = 16 << 10};
    uint64_t seed = 3;
    enum {
        N = 50
    };
    if (!timer_begin_later(t, 500))
        return -1;
    for (int i = 0; i < N; i++) {
        for (uint32_t k = 0; k < s.n; k++)
            s.offsets[k] = random_next(&seed) % (FILE_BYTES - s.n_bytes - 16) & ~1ull;
        if (!fine(kernel_pull(&s, sink, 32, t->stream), "starting the kernel"))
            return -1;
    }
    const double us = timer_end(t);
    return us > 0 ? (double)N * s.n * s.n_bytes / us / 1e3 : -1;
}

static void measure_map(stream_timer *t, const uint8_t *map, const mapping *m, const char *file)
{
    void *sink = NULL, *memory = (void *)(uintptr_t)map;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < FILE_BYTES; i += 4096)
        sum += ((const volatile uint8_t *)map)[i];
    const double before = anonymous_kib(map);
    const uint64_t begun = now_ns();
    const bool ok =
        sum != 1 &&
        fine(cudaHostRegister(memory, FILE_BYTES,
                              cudaHostRegisterPortable | cudaHostRegisterMapped | m->how),
             "cudaHostRegister");
    const double took = (double)(now_ns() - begun) / 1e9;
    if (!ok) {
        row_left_out(last_problem(), "register %s, %s", file, m->name);
        return;
    }
    figure time = row_of("s/GiB", "register %s, %s", file, m->name);
    figure copied = row_of("MiB", "register %s, %s: pages copied, of 256 MiB", file, m->name);
    figure rate = row_of("GB/s", "register %s, %s: read by a kernel", file, m->name);
    row_add(&time, took * (double)GIB / (double)FILE_BYTES);
    row_add(&copied, (anonymous_kib(map) - before) / 1024);
    if (fine(cudaMalloc(&sink, 2 * MIB), "cudaMalloc")) {
        const double gb = read_rate(t, map, sink);
        if (gb > 0)
            row_add(&rate, gb);
    }
    cudaFree(sink);
    fine(cudaHostUnregister(memory), "cudaHostUnregister");
    row_write(&time);
    row_write(&copied);
    row_write(&rate);
}

static void measure_file(const options *o, stream_timer *t, int which)
{
    char name[32];
    const int fd = open_file(o, which, name, sizeof name);
    if (fd < 0 || !fill_file(fd, which == 3)) {
        row_left_out(strerror(errno), "register %s", name);
        if (fd >= 0)
            close(fd);
        return;
    }
    for (int i = 0; i < N_MAPPINGS; i++) {
        const mapping *m = &mappings[i];
        void *map = mmap(NULL, FILE_BYTES, m->protection, m->flags, fd, 0);
        if (map == MAP_FAILED) {
            row_left_out(strerror(errno), "register %s, %s", name, m->name);
            continue;
        }
        measure_map(t, map, m, name);
        munmap(map, FILE_BYTES);
    }
    close(fd);
}

/* ---- Beside work ---- */

typedef struct registering {
    atomic_bool quit;
    uint32_t n;
} registering;

static void *keep_registering(void *context)
{
    registering *r = context;
    uint8_t *memory = memory_map(CHUNK_BYTES, MADV_HUGEPAGE);
    if (!memory)
        return NULL;
    memset(memory, 1, CHUNK_BYTES);
    while (!atomic_load(&r->quit)) {
        if (!fine(cudaHostRegister(memory, CHUNK_BYTES, cudaHostRegisterPortable),
                  "cudaHostRegister") ||
            !fine(cudaHostUnregister(memory), "cudaHostUnregister"))
            break;
        r->n++;
    }
    munmap(memory, CHUNK_BYTES);
    return NULL;
}

/* Pieces of work, one after another, each waited for; how long each took. */
static size_t work(stream_timer *t, uint32_t n_loops, double seconds, double *us)
{
    const uint64_t begun = now_ns();
    size_t n = 0;
    while (n < MOST_WORK && (double)(now_ns() - begun) / 1e9 < seconds) {
        const uint64_t asked = now_ns();
        if (!fine(kernel_work(NULL, n_loops, t->stream), "starting the kernel") ||
            !fine(cudaStreamSynchronize(t->stream), "waiting for the kernel"))
            return 0;
        us[n++] = (double)(now_ns() - asked) / 1e3;
    }
    return n;
}

static void write_work(const char *beside, double *us, size_t n)
{
    static const struct {
        const char *name;
        double share;
    } parts[] = {{"p50", 0.5}, {"p99", 0.99}, {"max", 1}};
    for (int i = 0; i < 3; i++) {
        figure r = row_of("us", "work of a millisecond %s, %s", parts[i].name, beside);
        if (n > 0)
            row_add(&r, percentile(us, n, parts[i].share));
        row_place(&r, "gpu, work beside registering", beside);
        row_write(&r);
    }
}

static void measure_beside(stream_timer *t)
{
    static double us[MOST_WORK];
    registering r = {.n = 0};
    pthread_t thread;
    uint32_t n_loops = 20000;
    if (work(t, n_loops, 0.01, us) == 0)
        return;
    const size_t n_first = work(t, n_loops, 0.05, us);
    n_loops = (uint32_t)(n_loops * 1000 / percentile(us, n_first, 0.5)) + 1;
    write_work("nothing else", us, work(t, n_loops, 1, us));
    if (pthread_create(&thread, NULL, keep_registering, &r))
        return;
    const size_t n = work(t, n_loops, 1.5, us);
    atomic_store(&r.quit, true);
    pthread_join(thread, NULL);
    fprintf(stderr, "gpubench: registered %u times meanwhile\n", r.n);
    write_work("registering 64 MiB again and again", us, n);
}

int register_page(const options *o)
{
    stream_timer t;
    const bool ok = timer_open(&t);
    for (int i = 0; i < N_FILES && ok; i++) {
        if (seconds_left() > 0)
            measure_file(o, &t, i);
        else
            row_left_out("no time was left", "register, file %d", i);
    }
    if (ok)
        measure_beside(&t);
    timer_close(&t);
    return ok ? 0 : STATUS_FAILED;
}
