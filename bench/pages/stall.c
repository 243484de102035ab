/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - how long a training step waits for its batch: a thread sleeps for the time of a step,
 * like one that waits for a GPU, then asks for the next batch and copies it. The first batch of a
 * loader is not counted: that is part of starting, see `start`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pages/pages.h"
#include "cli/cli.h"
#include "core/cold_reads.h"
#include "core/device.h"
#include "core/load_data.h"

enum {
    ROUNDS = 2,
    LENGTH = 4096,
    BATCH_ROWS = 32,
    N_KINDS = 7,
    N_FIGURES = 7,
    N_PERCENTILES = 4 /* the first of these */
};
static const uint64_t usual_bytes = (uint64_t)1 << 30;
/* Over all rounds: with fewer steps there is no 99th percentile, or no 99.9th. */
enum {
    LEAST_STEPS = 100,
    LEAST_STEPS_P999 = 1000 /* where they are short */
};
static const double short_ms = 10;

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
    uint64_t seed;
    uint32_t n_rounds;
    bool trial;
    bool works[N_KINDS];
} stall;

/* High percentiles are taken over the steps of all rounds. */
typedef struct stall_rows {
    bench_row *p50, *p99, *p999, *most, *processor, *share, *steps;
    uint32_t n_steps; /* of a round */
    double *waits;    /* in us; room for all rounds */
    size_t n_waits;
} stall_rows;

/* The smallest value that `thousandths` of all values do not exceed. */
static double get_percentile(double *sorted, size_t n, size_t thousandths)
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
    const tokmap_loader_options options = {.sequence_length = LENGTH,
                                           .batch_rows = BATCH_ROWS,
                                           .io = io,
                                           .seed = bench_random(&s->seed)};
    return load_data_one_source(&s->ds, 1, options);
}

static bool take_batch(const stall *s, tokmap_loader *l)
{
    const tokmap_gather_options gather = {.struct_size = sizeof gather, .inputs = s->buffer};
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    if (tokmap_loader_next(l, &b, &err) == TOKMAP_OK &&
        tokmap_batch_gather(&b, &gather, &err) == TOKMAP_OK)
        return true;
    cli_warn("%s", err.text);
    return false;
}

typedef struct result {
    double processor_us, share; /* of a step; of the time that was not waited, in % */
} result;

/* The step sleeps; the time that the batch takes after that is what a training loop waits. */
static bool take_steps(const stall *s, tokmap_loader *l, double step_ms, const stall_rows *r,
                       result *out)
{
    const uint64_t processor = processor_ns(), step_ns = (uint64_t)(step_ms * 1e6);
    const uint32_t n_steps = r->n_steps;
    double *waits = r->waits + r->n_waits, waited = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        sleep_until(tokmap_i_now_ns() + step_ns);
        const uint64_t asked = tokmap_i_now_ns();
        if (!take_batch(s, l))
            return false;
        waits[i] = (double)(tokmap_i_now_ns() - asked) / 1e3;
        waited += waits[i];
    }
    const double working = (double)n_steps * (double)step_ns / 1e3;
    *out = (result){(double)(processor_ns() - processor) / 1e3 / n_steps,
                    100 * working / (working + waited)};
    return true;
}

static int measure_steps(stall *s, const kind *k, double step_ms, stall_rows *r)
{
    result got;
    double *waits = r->waits + r->n_waits;
    if (k->cold)
        device_forget(&s->file, s->ds);
    else if (load_data_warm_up(s->ds))
        return 1;
    tokmap_loader *l = open_loader(s, k->io);
    const bool fine = l && take_batch(s, l) && take_steps(s, l, step_ms, r, &got);
    tokmap_loader_close(l);
    if (!fine)
        return 1;
    r->n_waits += r->n_steps;
    bench_sort(waits, r->n_steps);
    bench_add_value(r->p50, get_percentile(waits, r->n_steps, 500));
    bench_add_value(r->processor, got.processor_us);
    bench_add_value(r->share, got.share);
    return 0;
}

/* ---- Rows of figures ---- */

static bench_row *add_row(bench_report *report, const kind *k, double step_ms, int i)
{
    static const char *const what[N_FIGURES][2] = {{"p50", "us"}, {"p99", "us"}, {"p99.9", "us"},
                                                   {"max", "us"}, {"CPU", "us"}, {"busy", "%"},
                                                   {"steps", "n"}};
    bench_row *row = bench_add_cell(report, "stall", what[i], "%s, %g ms", k->name, step_ms);
    if (i < N_PERCENTILES)
        bench_set_group(row, "", "waiting for a batch, steps of %g ms", step_ms);
    return row;
}

static void add_rows(const stall *s, bench_report *report, const kind *k, double step_ms,
                     stall_rows *r)
{
    bench_row **rows[N_FIGURES] = {&r->p50,       &r->p99,   &r->p999, &r->most,
                                   &r->processor, &r->share, &r->steps};
    const bool is_short = step_ms <= short_ms && !s->trial;
    const uint32_t n_all = is_short ? LEAST_STEPS_P999 : LEAST_STEPS;
    *r = (stall_rows){.n_steps = (n_all + s->n_rounds - 1) / s->n_rounds};
    for (int i = 0; i < N_FIGURES; i++)
        if (rows[i] != &r->p999 || is_short)
            *rows[i] = add_row(report, k, step_ms, i);
}

static void finish_rows(stall_rows *r)
{
    if (r->n_waits == 0)
        return;
    bench_sort(r->waits, r->n_waits);
    bench_add_value(r->p99, get_percentile(r->waits, r->n_waits, 990));
    if (r->p999)
        bench_add_value(r->p999, get_percentile(r->waits, r->n_waits, 999));
    bench_add_value(r->most, r->waits[r->n_waits - 1]);
    bench_add_value(r->steps, (double)r->n_waits);
    snprintf(r->share->limit, sizeof r->share->limit, "steps that never wait");
    r->share->fraction = bench_median(r->share) / 100;
}

/* ---- Page ---- */

static bool take_room(const stall *s, stall_rows *r)
{
    r->waits = malloc((size_t)s->n_rounds * r->n_steps * sizeof *r->waits);
    if (!r->waits)
        cli_warn("out of memory");
    return r->waits != NULL;
}

static int measure_all(stall *s, const bench_options *options, bench_report *report)
{
    static const double usual_ms[] = {5, 20, 100};
    const uint32_t n_ms = options->n_step_ms ? options->n_step_ms : 3;
    const double *ms = options->n_step_ms ? options->step_ms : usual_ms;
    static stall_rows all[BENCH_MAX_STEPS * N_KINDS];
    int code = 0;
    for (uint32_t at = 0; at < n_ms * N_KINDS; at++)
        if (s->works[at % N_KINDS])
            add_rows(s, report, &kinds[at % N_KINDS], ms[at / N_KINDS], &all[at]);
    for (uint32_t at = 0; at < n_ms * N_KINDS && !code; at++)
        code = s->works[at % N_KINDS] && !take_room(s, &all[at]);
    for (uint32_t i = 0; i < s->n_rounds && !code; i++)
        for (uint32_t at = 0; at < n_ms * N_KINDS && !code; at++)
            if (s->works[at % N_KINDS])
                code = measure_steps(s, &kinds[at % N_KINDS], ms[at / N_KINDS], &all[at]);
    for (uint32_t at = 0; at < n_ms * N_KINDS; at++) {
        finish_rows(&all[at]);
        free(all[at].waits);
    }
    return code;
}

/* Ways that do not work on this machine are reported once; data that does not fit in memory is
 * never hot. */
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
        cli_warn("the data take more than half of the memory: 'hot' is left out");
    if (s->file.in_memory)
        cli_warn("the file system is in memory (see --dir): 'cold' is left out");
    for (int w = 0; w < 4; w++) {
        const bool works = cold_reads_works(s->ds, ways[w].io, ways[w].name);
        for (int k = 0; k < N_KINDS; k++)
            if (kinds[k].io == ways[w].io)
                s->works[k] = works && (kinds[k].cold ? !s->file.in_memory : fits);
    }
}

static int run_stall(const bench_options *options, bench_report *report)
{
    stall s = {.seed = 1, .n_rounds = bench_rounds(options, ROUNDS), .file = {-1, -1, false, 0}};
    tokmap_dataset_info info = {0};
    int code = load_data_open(options, usual_bytes, &s.ds);
    if (!code) {
        info = load_data_info(s.ds);
        if (info.n_tokens <= LENGTH) {
            cli_warn("%s: stall needs more than %d tokens", info.token_path, LENGTH);
            code = 1;
        }
    }
    s.trial = !code && load_data_is_trial(s.ds);
    s.buffer = malloc(BATCH_ROWS * 4 * (size_t)(LENGTH + 1));
    if (!code)
        code = !s.buffer || !device_open(&s.file, info.token_path);
    if (!code) {
        try_kinds(&s);
        code = measure_all(&s, options, report);
    }
    device_close(&s.file);
    free(s.buffer);
    load_data_close(&s.ds, 1);
    load_data_remove(options, 1);
    return code;
}

const bench_page stall_page = {
    .name = "stall",
    .help = "a simulated training step: how long it waits for its batch, hot and cold",
    .takes = {"load-mib", "data", "step-ms"},
    .in_all = true,
    .run = run_stall,
};
