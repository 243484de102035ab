/* cold_page.c - E10: a token file that is not in memory, through the loader and the stage: as fast
 * as it goes, and with steps of 20 ms. */
#include "gpubench.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LENGTH = 4096,
    N_ROWS = 16,
    N_WAYS = 4,
    STEP_US = 20000,
    MOST_STEPS = 2000
};

typedef struct measure {
    const options *o;
    cudaStream_t stream;
    double seconds; /* of each of the two parts of a way */
} measure;

typedef struct way {
    const char *name;
    tokmap_io io;
} way;

static double cached_share(int fd, uint64_t n_bytes)
{
    const size_t n_pages = n_bytes / 4096;
    uint8_t *in_memory = malloc(n_pages + 1);
    void *map = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    size_t n = 0;
    const bool ok = in_memory && map != MAP_FAILED && mincore(map, n_bytes, in_memory) == 0;
    for (size_t i = 0; i < n_pages && ok; i++)
        n += in_memory[i] & 1;
    if (map != MAP_FAILED)
        munmap(map, n_bytes);
    free(in_memory);
    return ok && n_pages ? (double)n / (double)n_pages : -1;
}

/* Nobody may have it mapped. Returns how much of it stayed in memory, below 0: it failed. */
static double forget(const char *data)
{
    char path[4096];
    struct stat st;
    double stayed = -1;
    snprintf(path, sizeof path, "%s.bin", data);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        stayed = cached_share(fd, (uint64_t)st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return stayed;
}

/* Bytes that the system has fetched from a disk for this process. */
static double bytes_fetched(void)
{
    static const char name[] = "read_bytes:";
    double n = 0;
    char line[128];
    FILE *f = fopen("/proc/self/io", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            n = strtod(line + strlen(name), NULL);
    if (f)
        fclose(f);
    return n;
}

static bool open_cold(const measure *m, const way *w, uint64_t seed, feed *f)
{
    const feed_options fo = {
        .data = m->o->large,
        .loader = {.sequence_length = LENGTH, .batch_rows = N_ROWS, .seed = seed, .io = w->io},
        .stage = {.outputs = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS}};
    tokmap_loader_info info = {.struct_size = sizeof info};
    const double stayed = forget(m->o->large);
    if (!feed_open(f, &fo))
        return false;
    tokmap_loader_get_info(f->loader, &info);
    fprintf(stderr, "gpubench: %s: %.1f %% of the file were in memory\n", w->name, 100 * stayed);
    if (info.io == w->io)
        return true;
    feed_close(f);
    return fine(cudaErrorNotSupported, "this way of reading does not work here");
}

static double since(uint64_t begun)
{
    return (double)(now_ns() - begun) / 1e9;
}

static void measure_rate(const measure *m, const way *w)
{
    figure rate = row_of("rows/s", "cold to the device, %s", w->name);
    figure device = row_of("x", "cold to the device, bytes fetched a token byte, %s", w->name);
    figure cpu = row_of("us", "cold to the device, CPU a row, %s", w->name);
    feed f;
    uint64_t n = 0;
    bool ok = open_cold(m, w, 1, &f);
    const double fetched = bytes_fetched(), processor = processor_seconds();
    const uint64_t begun = now_ns();
    for (; ok && since(begun) < m->seconds; n += N_ROWS)
        ok = feed_step(&f, m->stream);
    const double took = since(begun);
    if (ok && n > 0) {
        row_add(&rate, (double)n / took);
        row_add(&device, (bytes_fetched() - fetched) / ((double)n * LENGTH * 2));
        row_add(&cpu, 1e6 * (processor_seconds() - processor) / (double)n);
    }
    feed_close(&f);
    row_place(&rate, "gpu, a file that is not in memory", "tokmap");
    snprintf(rate.system, sizeof rate.system, "tokmap, %s", w->name);
    row_write(&rate);
    row_write(&device);
    row_write(&cpu);
}

static void measure_stalls(const measure *m, const way *w)
{
    static double us[MOST_STEPS];
    figure p50 = row_of("us", "cold stall p50, %s, steps of 20 ms", w->name);
    figure p99 = row_of("us", "cold stall p99, %s, steps of 20 ms", w->name);
    feed f;
    size_t n = 0;
    bool ok = open_cold(m, w, 2, &f) && feed_step(&f, m->stream);
    const uint64_t begun = now_ns();
    while (ok && since(begun) < m->seconds && n < MOST_STEPS) {
        usleep(STEP_US);
        const uint64_t asked = now_ns();
        ok = feed_step(&f, m->stream) &&
             fine(cudaStreamSynchronize(m->stream), "waiting for a batch");
        us[n++] = (double)(now_ns() - asked) / 1e3;
    }
    if (ok && n > 0) {
        row_add(&p50, percentile(us, n, 0.5));
        row_add(&p99, percentile(us, n, 0.99));
    }
    feed_close(&f);
    row_place(&p50, "gpu, waiting for a batch from a cold file", w->name);
    row_place(&p99, "gpu, waiting for a batch from a cold file", w->name);
    row_write(&p50);
    row_write(&p99);
}

int cold_page(const options *o)
{
    static const way ways[N_WAYS] = {{"direct", TOKMAP_IO_DIRECT},
                                     {"populate", TOKMAP_IO_POPULATE},
                                     {"read", TOKMAP_IO_READ},
                                     {"map", TOKMAP_IO_MAP}};
    measure m = {.o = o, .seconds = o->seconds / N_WAYS / 2 * 0.85};
    const double stayed = forget(o->large);
    if (!fine(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking), "making a stream"))
        return STATUS_FAILED;
    if (stayed < 0 || stayed > 0.1) {
        printf("skip: the file does not leave the page cache: %.0f %% of it stay\n", 100 * stayed);
        return STATUS_SKIPPED;
    }
    for (int i = 0; i < N_WAYS; i++) {
        measure_rate(&m, &ways[i]);
        measure_stalls(&m, &ways[i]);
    }
    cudaStreamDestroy(m.stream);
    return 0;
}
