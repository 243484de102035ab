/* stall_page.c - how long a training step waits for its batch: a thread that is busy elsewhere for
 * the time of a step (it sleeps, as one does that waits for a GPU), then asks for the next batch
 * and copies it. The first batch of a loader is not counted: that is starting up, see `scale`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "cold_reads.h"
#include "device.h"
#include "load_data.h"

enum {
    ROUNDS = 2,
    LENGTH = 4096,
    BATCH_ROWS = 32,
    N_KINDS = 7,
    N_FIGURES = 6,
    N_PERCENTILES = 4 /* the first of these */
};
static const uint64_t usual_bytes = (uint64_t)1 << 30;
static const uint64_t all_ns = 40000000000, trial_ns = 2000000000; /* of all that sleeps */
enum {
    LEAST_STEPS = 10,
    LEAST_TRIAL_STEPS = 3,
    MOST_STEPS = 5000
};

typedef struct kind {
    const char *name;
    tokmap_io io;
    bool cold;
} kind;

static const kind kinds[N_KINDS] = {{"hot, map", TOKMAP_IO_MAP, false},
                                    {"hot, populate", TOKMAP_IO_POPULATE, false},
                                    {"hot, read", TOKMAP_IO_READ, false},
                                    {"cold, direct", TOKMAP_IO_DIRECT, true},
                                    {"cold, populate", TOKMAP_IO_POPULATE, true},
                                    {"cold, read", TOKMAP_IO_READ, true},
                                    {"cold, map", TOKMAP_IO_MAP, true}};

typedef struct stall {
    const tokmap_dataset *ds;
    device_file file;
    uint8_t *buffer;
    uint64_t seed, ns; /* that a measure may take; longer where a few steps take longer */
    uint32_t n_steps_least;
    double *waits; /* of the steps of a measure, in us */
    bool works[N_KINDS];
} stall;

/* Steps of all rounds together: a maximum is the maximum of everything. */
typedef struct stall_rows {
    bench_row *p50, *p99, *p999, *most, *processor, *share;
    double *waits;
    size_t n_waits;
} stall_rows;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The smallest value that `thousandths` of all do not exceed. */
static double percentile(double *sorted, size_t n, size_t thousandths)
{
    const size_t rank = (n * thousandths + 999) / 1000;
    return sorted[rank > 0 ? rank - 1 : 0];
}

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

/* ---- Steps ---- */

static tokmap_loader *open_loader(stall *s, tokmap_io io)
{
    const tokmap_loader_source source = {.datasets = &s->ds, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options options = {.struct_size = sizeof options,
                                           .sources = &source,
                                           .n_sources = 1,
                                           .sequence_length = LENGTH,
                                           .batch_rows = BATCH_ROWS,
                                           .io = io,
                                           .seed = bench_random(&s->seed)};
    return load_data_loader(&options);
}

static bool take_batch(const stall *s, tokmap_loader *l)
{
    const tokmap_gather_options gather = {.struct_size = sizeof gather, .inputs = s->buffer};
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    if (tokmap_loader_next(l, &b, &err) == TOKMAP_OK &&
        tokmap_batch_gather(&b, &gather, &err) == TOKMAP_OK)
        return true;
    fprintf(stderr, "tokbench: %s\n", err.text);
    return false;
}

typedef struct result {
    uint32_t n_steps;
    double processor_us, share; /* of a step; of the time that was not waited, in % */
} result;

/* The step sleeps, and what the batch takes after that is what a training loop waits. */
static bool take_steps(stall *s, tokmap_loader *l, uint64_t step_ns, result *out)
{
    const uint64_t begun = bench_now_ns(), processor = processor_ns();
    double waited = 0;
    uint32_t n = 0;
    while (n < MOST_STEPS && (n < s->n_steps_least || bench_now_ns() - begun < s->ns)) {
        sleep_until(bench_now_ns() + step_ns);
        const uint64_t asked = bench_now_ns();
        if (!take_batch(s, l))
            return false;
        s->waits[n] = (double)(bench_now_ns() - asked) / 1e3;
        waited += s->waits[n++];
    }
    const double working = (double)n * (double)step_ns / 1e3;
    *out = (result){n, (double)(processor_ns() - processor) / 1e3 / n,
                    100 * working / (working + waited)};
    return true;
}

static int measure(stall *s, const kind *k, double step_ms, stall_rows *r)
{
    result got;
    if (k->cold)
        device_forget(&s->file, s->ds);
    else if (load_data_warm_up(s->ds))
        return 1;
    tokmap_loader *l = open_loader(s, k->io);
    const bool fine = l && take_batch(s, l) && take_steps(s, l, (uint64_t)(step_ms * 1e6), &got);
    tokmap_loader_close(l);
    if (!fine)
        return 1;
    double *all = realloc(r->waits, (r->n_waits + got.n_steps) * sizeof *all);
    if (!all)
        return 1;
    memcpy(all + r->n_waits, s->waits, got.n_steps * sizeof *all);
    r->waits = all;
    r->n_waits += got.n_steps;
    qsort(s->waits, got.n_steps, sizeof *s->waits, by_value);
    bench_add_value(r->p50, percentile(s->waits, got.n_steps, 500));
    bench_add_value(r->p99, percentile(s->waits, got.n_steps, 990));
    bench_add_value(r->processor, got.processor_us);
    bench_add_value(r->share, got.share);
    return 0;
}

/* ---- Rows of figures ---- */

static void add_rows(bench_report *report, const kind *k, double step_ms, stall_rows *r)
{
    static const char *const what[N_FIGURES][2] = {{"p50", "us"}, {"p99", "us"}, {"p99.9", "us"},
                                                   {"max", "us"}, {"CPU", "us"}, {"busy", "%"}};
    bench_row **rows[N_FIGURES] = {&r->p50, &r->p99, &r->p999, &r->most, &r->processor, &r->share};
    char name[80], group[80];
    for (int i = 0; i < N_FIGURES; i++) {
        snprintf(name, sizeof name, "%s, %g ms, %s", k->name, step_ms, what[i][0]);
        *rows[i] = bench_add_row(report, "stall", name, what[i][1]);
        (*rows[i])->cell = true;
        snprintf(group, sizeof group, "waiting for a batch, steps of %g ms", step_ms);
        if (i < N_PERCENTILES)
            bench_set_group(*rows[i], group, "");
    }
}

static void finish_rows(stall_rows *r)
{
    if (r->n_waits == 0)
        return;
    qsort(r->waits, r->n_waits, sizeof *r->waits, by_value);
    bench_add_value(r->p999, percentile(r->waits, r->n_waits, 999));
    bench_add_value(r->most, r->waits[r->n_waits - 1]);
    snprintf(r->share->limit, sizeof r->share->limit, "steps that never wait");
    r->share->fraction = bench_median(r->share) / 100;
}

/* ---- Page ---- */

static int measure_all(stall *s, const bench_options *options, bench_report *report)
{
    static const double usual_ms[] = {5, 20, 100};
    const uint32_t n_ms = options->n_step_ms ? options->n_step_ms : 3;
    const double *ms = options->n_step_ms ? options->step_ms : usual_ms;
    const uint32_t n_rounds = bench_rounds(options, ROUNDS);
    static stall_rows rows[BENCH_MAX_STEPS][N_KINDS];
    int code = 0;
    s->ns /= N_KINDS * n_ms * n_rounds;
    for (uint32_t m = 0; m < n_ms; m++)
        for (int k = 0; k < N_KINDS; k++)
            if (s->works[k])
                add_rows(report, &kinds[k], ms[m], &rows[m][k]);
    for (uint32_t i = 0; i < n_rounds && !code; i++)
        for (uint32_t at = 0; at < n_ms * N_KINDS && !code; at++)
            if (s->works[at % N_KINDS])
                code = measure(s, &kinds[at % N_KINDS], ms[at / N_KINDS],
                               &rows[at / N_KINDS][at % N_KINDS]);
    for (uint32_t at = 0; at < n_ms * N_KINDS; at++) {
        finish_rows(&rows[at / N_KINDS][at % N_KINDS]);
        free(rows[at / N_KINDS][at % N_KINDS].waits);
    }
    return code;
}

/* Ways that do not work here are said once; data that do not fit into memory are never hot. */
static void try_kinds(stall *s)
{
    static const struct {
        const char *name;
        tokmap_io io;
    } ways[] = {{"map", TOKMAP_IO_MAP},
                {"populate", TOKMAP_IO_POPULATE},
                {"read", TOKMAP_IO_READ},
                {"direct", TOKMAP_IO_DIRECT}};
    const bool fits = load_data_fits(s->ds);
    if (!fits)
        fputs("tokbench: the data take more than half of the memory: 'hot' is left out\n", stderr);
    if (s->file.in_memory)
        fputs("tokbench: the file system is in memory (see --dir): 'cold' is left out\n", stderr);
    for (int w = 0; w < 4; w++) {
        const bool works = cold_reads_works(s->ds, ways[w].io, ways[w].name);
        for (int k = 0; k < N_KINDS; k++)
            if (kinds[k].io == ways[w].io)
                s->works[k] = works && (kinds[k].cold ? !s->file.in_memory : fits);
    }
}

int stall_page(const bench_options *options, bench_report *report)
{
    stall s = {.seed = 1, .ns = all_ns, .n_steps_least = LEAST_STEPS, .file = {-1, -1, false, 0}};
    tokmap_dataset_info info = {.struct_size = sizeof info};
    int code = load_data_open(options, usual_bytes, &s.ds);
    if (!code) {
        tokmap_dataset_get_info(s.ds, &info);
        if (info.n_tokens <= LENGTH) {
            fprintf(stderr, "tokbench: %s: stall needs more than %d tokens\n", info.token_path,
                    LENGTH);
            code = 1;
        }
    }
    if (!code && load_data_is_trial(s.ds)) {
        s.ns = trial_ns;
        s.n_steps_least = LEAST_TRIAL_STEPS;
    }
    s.buffer = malloc(BATCH_ROWS * 4 * (size_t)(LENGTH + 1));
    s.waits = malloc(MOST_STEPS * sizeof *s.waits);
    if (!code)
        code = !s.buffer || !s.waits || !device_open(&s.file, info.token_path);
    if (!code) {
        try_kinds(&s);
        code = measure_all(&s, options, report);
    }
    device_close(&s.file);
    free(s.buffer);
    free(s.waits);
    load_data_close(&s.ds, 1);
    load_data_remove(options, 1);
    return code;
}
