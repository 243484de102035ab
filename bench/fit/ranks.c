/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - the processes of a training that is measured: each opens its own loader, takes a first
 * batch, and then steps with batches. What they find is in memory that they share with the
 * parent. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "fit/fit.h"

/* What a rank has found. */
typedef struct rank_result {
    size_t n_steps;
    double processor, waited, first_batch_ms, cpu_us; /* us, if no other unit is named */
    uint64_t n_tokens, ns, own_bytes;
    double longest[FIT_TIMES];
    tokmap_io io;
    char io_reason[160];
    double waits[FIT_MOST_WAITS]; /* in the order of the steps */
} rank_result;

typedef struct shared {
    atomic_bool begins;
    atomic_uint n_ready;
    rank_result ranks[];
} shared;

double fit_needed(const fit_options *o)
{
    return (double)o->n_gpus * o->tokens_per_second;
}

/* ---- A rank ---- */

typedef struct rank {
    const fit_options *o;
    const fit_data *data;
    const fit_phase *phase;
    uint64_t number;
    tokmap_dataset **datasets;
    tokmap_view **views;
    tokmap_loader *loader;
    tokmap_batch batch;
    tokmap_gather_options gather;
} rank;

static void open_datasets(rank *r)
{
    const size_t n = r->data->names.n_names;
    const tokmap_view_options of_view = {
        .struct_size = sizeof of_view, .where = r->o->where, .path = r->o->view};
    r->datasets = calloc(n, sizeof *r->datasets);
    r->views = of_view.where || of_view.path ? calloc(n, sizeof *r->views) : NULL;
    for (size_t i = 0; i < n; i++) {
        tokmap_dataset *ds;
        tokmap_view *view;
        bench_check(tokmap_dataset_open(&ds, r->data->names.names[i], &bench_error));
        r->datasets[i] = ds;
        if (!r->views)
            continue;
        bench_check(tokmap_view_open(&view, ds, &of_view, &bench_error));
        r->views[i] = view;
    }
}

static void open_loader(rank *r)
{
    open_datasets(r);
    const tokmap_loader_source source = {.datasets = r->datasets,
                                         .n_datasets = (uint32_t)r->data->names.n_names,
                                         .weight = 1,
                                         .views = r->views};
    const tokmap_loader_options options = {
        .struct_size = sizeof options,
        .sources = &source,
        .n_sources = 1,
        .source_stride = sizeof source,
        .phase_stride = sizeof *options.phases,
        .row_stride = sizeof(tokmap_row),
        .sequence_length = (uint32_t)r->o->length,
        .batch_rows = (uint32_t)r->o->batch_rows,
        .rank = (uint32_t)r->number,
        .n_ranks = (uint32_t)r->o->n_ranks,
        .row_parts = r->o->row_parts,
        .seed = 1,
        .io = r->phase->asked_io,
        .shuffle = (tokmap_shuffle)r->phase->shuffle,
        .mixed_tokenizers = 1,
    };
    const size_t n_bytes = r->o->batch_rows * r->o->length * sizeof(int64_t);
    r->batch = (tokmap_batch){.struct_size = sizeof r->batch};
    r->gather = (tokmap_gather_options){.struct_size = sizeof r->gather,
                                        .format = TOKMAP_GATHER_I64,
                                        .mask_labels = r->o->has_labels &&
                                                       (r->o->row_parts & TOKMAP_ROW_LOSS_MASK),
                                        .inputs = r->o->has_inputs ? bench_memory(n_bytes) : NULL,
                                        .labels = r->o->has_labels ? bench_memory(n_bytes) : NULL};
    bench_check(tokmap_loader_open(&r->loader, &options, &bench_error));
    r->gather.loader = r->loader;
}

static void close_loader(rank *r)
{
    tokmap_loader_close(r->loader);
    for (size_t i = 0; i < r->data->names.n_names; i++) {
        if (r->views)
            tokmap_view_close(r->views[i]);
        tokmap_dataset_close(r->datasets[i]);
    }
    free(r->datasets);
    free(r->views);
    free(r->gather.inputs);
    free(r->gather.labels);
}

static void take_batch(void *context)
{
    rank *r = context;
    bench_check(tokmap_loader_next(r->loader, &r->batch, &bench_error));
    if (r->gather.inputs || r->gather.labels)
        bench_check(tokmap_batch_gather(&r->batch, &r->gather, &bench_error));
}

/* Returns how many steps an epoch has, at least 1. */
static size_t steps_of_epoch(const rank *r)
{
    tokmap_loader_source_info info = {.struct_size = sizeof info};
    bench_check(tokmap_loader_get_source(r->loader, 0, &info));
    return (size_t)MAX(info.n_windows / (r->o->batch_rows * r->o->n_ranks), 1);
}

/* Returns the microseconds of processor time that all threads of the process took. */
static double processor_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Sets the longest wait of each part of the time. */
static void note_times(rank_result *to, const bench_steps *s)
{
    double at = 0, all = (double)(s->ended_ns - s->begun_ns) / 1e3;
    for (size_t i = 0; i < s->n; i++) {
        at += s->step_ms * 1e3 + s->waits[i];
        const size_t part = (size_t)MIN(at / all * FIT_TIMES, FIT_TIMES - 1);
        to->longest[part] = MAX(to->longest[part], s->waits[i]);
    }
}

static void run_rank(rank *r, shared *all)
{
    rank_result *to = &all->ranks[r->number];
    tokmap_loader_info info = {.struct_size = sizeof info};
    atomic_fetch_add(&all->n_ready, 1);
    while (!atomic_load(&all->begins))
        tokmap_i_sleep_ns(100000);
    const uint64_t start = tokmap_i_now_ns();
    open_loader(r);
    take_batch(r);
    to->first_batch_ms = bench_ns_since(start) / 1e6;
    const double before_us = processor_us();
    bench_steps steps = {.step_ms = r->phase->step_ms,
                         .until_ns = tokmap_i_now_ns() + (uint64_t)(r->phase->seconds * 1e9),
                         .most = r->phase->is_cold ? MIN(steps_of_epoch(r), FIT_MOST_WAITS)
                                                   : FIT_MOST_WAITS,
                         .take = take_batch,
                         .context = r,
                         .waits = to->waits};
    bench_take_steps(&steps);
    to->cpu_us = processor_us() - before_us;
    to->n_steps = steps.n;
    to->waited = steps.waited;
    to->processor = steps.processor;
    to->ns = steps.ended_ns - steps.begun_ns;
    to->n_tokens = steps.n * r->o->batch_rows * r->o->length;
    to->own_bytes = (uint64_t)MAX(bench_system_number("/proc/self/status", "RssAnon:"), 0) << 10;
    note_times(to, &steps);
    tokmap_loader_get_info(r->loader, &info);
    to->io = info.io;
    snprintf(to->io_reason, sizeof to->io_reason, "%s", info.io_reason);
    close_loader(r);
}

/* ---- All ranks ---- */

static void add_rank(fit_phase *p, const rank_result *r)
{
    const size_t n_skipped = MIN(FIT_SKIPPED, r->n_steps / 4);
    for (size_t i = n_skipped; i < r->n_steps; i++) {
        p->waits[p->n_waits++] = r->waits[i];
        p->waited += r->waits[i];
    }
    p->processor += r->processor;
    p->first_batch_ms = MAX(p->first_batch_ms, r->first_batch_ms);
    p->cpu_us_per_token += r->cpu_us;
    p->n_tokens += r->n_tokens;
    p->own_bytes = MAX(p->own_bytes, r->own_bytes);
    p->tokens_per_second += (double)r->n_tokens * 1e9 / (double)MAX(r->ns, 1);
    for (size_t i = 0; i < FIT_TIMES; i++)
        p->longest[i] = MAX(p->longest[i], r->longest[i]);
}

static void add_ranks(fit_phase *p, const shared *all, size_t n_ranks)
{
    double waited = 0;
    size_t n = 0;
    for (size_t k = 0; k < n_ranks; k++)
        n += all->ranks[k].n_steps;
    p->waits = bench_memory((n + 1) * sizeof *p->waits);
    for (size_t k = 0; k < n_ranks; k++) {
        add_rank(p, &all->ranks[k]);
        waited += all->ranks[k].waited;
    }
    bench_sort(p->waits, p->n_waits);
    p->processor = waited > 0 ? p->processor / waited : 0;
    p->cpu_us_per_token /= (double)MAX(p->n_tokens, 1);
    p->utilisation = bench_utilisation(p->n_waits, p->step_ms, p->waited);
    p->io = all->ranks->io;
    memcpy(p->io_reason, all->ranks->io_reason, sizeof p->io_reason);
    p->was_run = true;
}

/* Starts the process of a rank, which ends with this one. Returns its number, or -1. */
static pid_t start_rank(rank *r, shared *all)
{
    const pid_t parent = getpid(), process = fork();
    if (process != 0)
        return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent ||
        (r->number > 0 && !freopen("/dev/null", "w", stderr))) /* rank 0 says what is wrong */
        _exit(1);
    run_rank(r, all);
    _exit(0);
}

static _Noreturn void fail_ranks(const pid_t *processes, size_t n, const char *why)
{
    for (size_t k = 0; k < n; k++)
        kill(processes[k], SIGKILL);
    bench_fail("%s", why);
}

/* Waits until each rank is ready to begin. */
static void await_ranks(const pid_t *processes, size_t n_ranks, const shared *all)
{
    siginfo_t ended;
    while (atomic_load(&all->n_ready) < n_ranks) {
        ended.si_pid = 0;
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
            fail_ranks(processes, n_ranks, "a rank ended before it began");
        tokmap_i_sleep_ns(1000000);
    }
}

void fit_free(fit_phase *phases, size_t n_phases)
{
    for (size_t i = 0; i < n_phases; i++)
        free(phases[i].waits);
}

void fit_run_phase(const fit_options *o, const fit_data *data, fit_phase *phase)
{
    const size_t n_ranks = o->n_gpus, n_bytes = sizeof(shared) + n_ranks * sizeof(rank_result);
    pid_t processes[FIT_MOST_RANKS];
    shared *all = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, killed_by = 0;
    if (all == MAP_FAILED)
        bench_fail("out of memory");
    fflush(NULL);
    for (size_t k = 0; k < n_ranks; k++) {
        rank r = {.o = o, .data = data, .phase = phase, .number = k};
        processes[k] = start_rank(&r, all);
        if (processes[k] < 0)
            fail_ranks(processes, k, "not all ranks can be started");
    }
    await_ranks(processes, n_ranks, all);
    atomic_store(&all->begins, true);
    for (size_t k = 0; k < n_ranks; k++) {
        int status = 0;
        waitpid(processes[k], &status, 0);
        failed += status != 0;
        killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : killed_by;
    }
    if (killed_by)
        bench_fail("a rank was ended by signal %d, perhaps because memory ran out", killed_by);
    if (failed > 0)
        bench_fail("%d of %zu ranks failed", failed, n_ranks);
    add_ranks(phase, all, n_ranks);
    munmap(all, n_bytes);
}
