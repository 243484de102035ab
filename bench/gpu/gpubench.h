/* gpubench.h - what the experiments of bench/gpu.sh share that run on a device: options, rows of
 * figures, host memory of several kinds, a loader with a stage on it.
 *
 * They are written in the CUDA runtime, which the library does without: what it is compared with is
 * what everybody else calls. A page measures, writes its rows as it goes, and gives up on the part
 * that fails, not on the rest. */
#ifndef GPUBENCH_H
#define GPUBENCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap_cuda.h"

enum {
    MAX_VALUES = 16,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_SKIPPED = 77
};
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

typedef struct options {
    /* Datasets: a large and a small one of 16-bit tokens, a small one of 32-bit tokens. */
    const char *large, *small, *wide;
    const char *dir;  /* for files that are made and removed */
    double seconds;   /* that the page may take, about */
    uint32_t n_cases; /* of `expand`: that many, and no timing; 0: by time */
    uint64_t n_bytes; /* of `large` */
    bool hold_link;   /* h2d: copy until the time is up, and measure nothing */
} options;

/* Returns an exit status, after it has said on stderr what went wrong. */
typedef int page(const options *o);
page data_page, h2d_page, slices_page, register_page, expand_page, pipeline_page, stress_page;
page cold_page, fork_page, numa_page;

/* ---- main.c ---- */

uint64_t now_ns(void);
/* Of the page's time; below 0 when it is over. */
double seconds_left(void);
/* Says what is wrong and remembers it for `last_problem`; true when nothing is. */
bool fine(cudaError_t error, const char *what);
bool fine_status(tokmap_status status, const tokmap_error *err);
const char *last_problem(void);
uint64_t random_next(uint64_t *state);
/* "4 KiB", "16 MiB"; in a buffer that the fourth call after it takes again. */
const char *size_text(uint64_t n_bytes);
/* Of this process, all threads, in seconds. */
double processor_seconds(void);

/* ---- rows.c: lines of JSON, one a row, in the form of bench/report.h ---- */

typedef enum goal {
    NO_GOAL,
    AT_LEAST,
    AT_MOST
} goal;

typedef struct figure {
    char name[160], unit[16], group[96], system[64], x_unit[16], limit[160];
    double x, fraction, target; /* 0: none */
    goal goal;
    double values[MAX_VALUES];
    uint32_t n_values;
} figure;

bool rows_open(const char *path);
figure row_of(const char *unit, const char *name, ...) __attribute__((format(printf, 2, 3)));
/* Values that are no finite number, and those beyond the last place, are left out. */
void row_add(figure *r, double value);
void row_place(figure *r, const char *group, const char *system);
void row_x(figure *r, double x, const char *unit);
void row_goal(figure *r, goal g, double target);
/* How much of the limit it is, by the medians; rates only. */
void row_limit(figure *r, const figure *limit);
double row_median(const figure *r);
/* A row without values says that the last problem is why. */
void row_write(const figure *r);
void row_left_out(const char *reason, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* The smallest value that the share of all, 0 to 1, does not exceed; sorts them. */
double percentile(double *values, size_t n, double share);

/* ---- memory.c ---- */

typedef enum memory_kind {
    REGISTERED_SMALL, /* pages of 4 KiB, */
    REGISTERED,       /* huge pages: as a stage has them */
    HOST_ALLOC,
    WRITE_COMBINED,
    PAGEABLE,
    N_MEMORY_KINDS
} memory_kind;

typedef struct host_memory {
    memory_kind kind;
    uint8_t *bytes;
    uint8_t *device; /* its address for a kernel; NULL: none */
    size_t n_bytes;
} host_memory;

extern const char *const memory_names[N_MEMORY_KINDS];
bool memory_open(host_memory *m, memory_kind kind, size_t n_bytes);
void memory_close(host_memory *m);
/* Aligned to a huge page, not touched; NULL: none. Given back by munmap. */
uint8_t *memory_map(size_t n_bytes, int advice);

/* ---- timer.c: what happens in a stream, by two events ---- */

typedef struct stream_timer {
    cudaStream_t stream;
    cudaEvent_t begin, end;
} stream_timer;

bool timer_open(stream_timer *t);
void timer_close(stream_timer *t);
bool timer_begin(stream_timer *t);
/* The same behind a kernel that waits for so long: what is queued meanwhile is timed without the
 * time that queueing took. */
bool timer_begin_later(stream_timer *t, uint32_t wait_us);
/* Records the end and waits for it; microseconds, or below 0. */
double timer_end(stream_timer *t);
/* GB/s of n_copies from m to `to`, both n_bytes of them on: the link's own limit. Below 0: it
 * failed. */
double copy_rate(stream_timer *t, const host_memory *m, void *to, size_t copy_bytes,
                 uint32_t n_copies);

/* ---- feed.c: a dataset, a loader, a stage ---- */

typedef struct feed {
    tokmap_dataset *ds;
    tokmap_loader *loader;
    tokmap_cuda *stage;
    char log[512]; /* what the stage said last */
} feed;

typedef struct feed_options {
    const char *data;
    tokmap_loader_options loader; /* but for the source; */
    tokmap_cuda_options stage;    /* but for the loader: 0 outputs means no stage */
} feed_options;

bool feed_open(feed *f, const feed_options *o);
void feed_close(feed *f);
/* Reads all of a dataset once, so that its pages are in memory. */
bool feed_warm_up(const char *data);
const char *delivery_name(tokmap_cuda_delivery delivery);
/* next and release. */
bool feed_step(feed *f, cudaStream_t stream);
/* False: the stage was refused its way of transfer, and took a simpler one. */
bool feed_kept_way(const feed *f, tokmap_cuda_delivery delivery);

#endif /* GPUBENCH_H */
