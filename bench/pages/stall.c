/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - how long a training step waits for its batch, which it copies. The first batch of a
 * loader is not counted: that is part of starting, see `start`. */
#include <stdlib.h>
#include <time.h>

#include "cli/cli.h"
#include "core/steps.h"
#include "pages/pages.h"

enum {
    ROUNDS = 2,
    LENGTH = 4096,
    N_KINDS = 7
};
typedef struct kind {
    bool cold;
    tokmap_io io;
} kind;

static const kind kinds[N_KINDS] = {{false, TOKMAP_IO_MAP},     {false, TOKMAP_IO_POPULATE},
                                    {false, TOKMAP_IO_READ},    {true, TOKMAP_IO_DIRECT},
                                    {true, TOKMAP_IO_POPULATE}, {true, TOKMAP_IO_READ},
                                    {true, TOKMAP_IO_MAP}};

typedef struct stall {
    const load_data *data;
    uint8_t *buffer;
    uint64_t seed;
    uint32_t n_rounds;
    bool works[N_KINDS];
} stall;

/* The figures of a kind. High percentiles are taken over the steps of all rounds. */
enum {
    P50,
    P99,
    P999,
    MOST,
    PROCESSOR,
    SHARE,
    STEPS,
    N_FIGURES
};
static const char *const figures[N_FIGURES][2] = {{"p50", "us"}, {"p99", "us"}, {"p99.9", "us"},
                                                  {"max", "us"}, {"CPU", "us"}, {"busy", "%"},
                                                  {"steps", "n"}};

typedef struct stall_rows {
    bench_row *rows[N_FIGURES]; /* P999 may be NULL */
    double step_ms;
    uint32_t n_steps; /* of a round */
    double *waits;    /* in us; room for all rounds */
    size_t n_waits;
} stall_rows;

/* ---- Steps ---- */

typedef struct stall_loader {
    tokmap_loader *loader;
    tokmap_batch batch;
    tokmap_gather_options gather;
} stall_loader;

static void take_batch(void *context)
{
    stall_loader *l = context;
    load_data_next(l->loader, &l->batch, &l->gather);
}

static void measure_round(stall *s, const kind *k, stall_rows *r)
{
    const tokmap_loader_options options = {
        .sequence_length = LENGTH, .io = k->io, .seed = bench_random(&s->seed)};
    if (k->cold)
        device_forget(&s->data->file, s->data->ds);
    else
        load_data_warm_up(s->data->ds);
    stall_loader l = {
        .loader = load_data_one_source(&s->data->ds, 1, options),
        .batch = {.struct_size = sizeof l.batch},
        .gather = {.struct_size = sizeof l.gather,
                   .format = TOKMAP_GATHER_TOKENS,
                   .inputs = s->buffer},
    };
    bench_steps steps = {.step_ms = r->step_ms,
                         .most = r->n_steps,
                         .take = take_batch,
                         .context = &l,
                         .waits = r->waits + r->n_waits};
    take_batch(&l);
    const clock_t processor = clock(); /* in us, as POSIX requires */
    bench_take_steps(&steps);
    bench_add_value(r->rows[PROCESSOR], (double)(clock() - processor) / r->n_steps);
    bench_add_value(r->rows[SHARE], 100 * bench_utilisation(steps.n, steps.step_ms, steps.waited));
    r->n_waits += r->n_steps;
    bench_sort(steps.waits, steps.n);
    bench_add_value(r->rows[P50], bench_percentile(steps.waits, steps.n, 500));
    tokmap_loader_close(l.loader);
}

/* ---- Rows of figures ---- */

/* Adds the rows of a kind. Fewer steps over all rounds have no 99th percentile; the 99.9th is left
 * out where it would take long. */
static void add_rows(const stall *s, bench_report *report, const kind *k, double step_ms,
                     stall_rows *r)
{
    const bool is_short = step_ms <= 10 && !s->data->is_trial;
    const uint32_t n_all = is_short ? 1000 : 100;
    *r = (stall_rows){.step_ms = step_ms, .n_steps = (n_all + s->n_rounds - 1) / s->n_rounds};
    for (int i = 0; i < N_FIGURES; i++) {
        if (i == P999 && !is_short)
            continue;
        r->rows[i] = bench_add_cell(report, figures[i], "%s, %s, %g ms", k->cold ? "cold" : "hot",
                                    load_data_ways[k->io], step_ms);
        if (i <= MOST)
            bench_set_group(r->rows[i], "", "waiting for a batch, steps of %g ms", step_ms);
    }
    r->waits = bench_memory((size_t)s->n_rounds * r->n_steps * sizeof *r->waits);
}

static void finish_rows(stall_rows *r)
{
    bench_sort(r->waits, r->n_waits);
    bench_add_value(r->rows[P99], bench_percentile(r->waits, r->n_waits, 990));
    if (r->rows[P999])
        bench_add_value(r->rows[P999], bench_percentile(r->waits, r->n_waits, 999));
    bench_add_value(r->rows[MOST], r->waits[r->n_waits - 1]);
    bench_add_value(r->rows[STEPS], (double)r->n_waits);
    bench_row *share = r->rows[SHARE];
    snprintf(share->limit, sizeof share->limit, "steps that never wait");
    share->fraction = bench_median(share) / 100;
    free(r->waits);
}

/* ---- Page ---- */

void bench_stall(const bench_options *options, bench_report *report)
{
    static const double usual_ms[] = {5, 20, 100};
    static stall_rows all[BENCH_MAX_STEPS * N_KINDS];
    const double *ms = options->n_step_ms ? options->step_ms : usual_ms;
    const uint32_t n = N_KINDS * (options->n_step_ms ? options->n_step_ms : 3);
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    stall s = {.data = &data,
               .seed = 1,
               .n_rounds = bench_rounds(options, ROUNDS),
               .buffer = bench_memory(LOAD_DATA_ROWS * 4 * (size_t)(LENGTH + 1))};
    if (data.info.n_tokens <= LENGTH)
        bench_fail("%s: stall needs more than %d tokens", data.info.token_path, LENGTH);
    /* Ways that do not work on this machine are reported once; data that does not fit in memory is
     * never hot. */
    const bool fits = data.fits, in_memory = data.file.in_memory;
    if (!fits)
        cli_warn("the data take more than half of the memory: 'hot' is left out");
    if (in_memory)
        cli_warn("the file system is in memory (see --dir): 'cold' is left out");
    for (tokmap_io io = TOKMAP_IO_MAP; io <= TOKMAP_IO_READ; io++) {
        const bool works = load_data_works(data.ds, io);
        for (int k = 0; k < N_KINDS; k++)
            if (kinds[k].io == io)
                s.works[k] = works && (kinds[k].cold ? !in_memory : fits);
    }
    for (uint32_t i = 0; i < n; i++)
        if (s.works[i % N_KINDS])
            add_rows(&s, report, &kinds[i % N_KINDS], ms[i / N_KINDS], &all[i]);
    for (uint32_t i = 0; i < s.n_rounds * n; i++)
        if (s.works[i % N_KINDS])
            measure_round(&s, &kinds[i % N_KINDS], &all[i % n]);
    for (uint32_t i = 0; i < n; i++)
        if (s.works[i % N_KINDS])
            finish_rows(&all[i]);
    free(s.buffer);
    load_data_close(&data);
}
