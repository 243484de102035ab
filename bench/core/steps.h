/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - simulated training steps. A thread sleeps for the time of a step, like one that waits
 * for a GPU, and then takes the next batch; the wait is the time that this takes. */
#pragma once

#include "core/bench.h"

typedef struct bench_steps {
    double step_ms;    /* 0: batch after batch, without a pause */
    uint64_t until_ns; /* ends with the first step after this time; 0: after `most` steps */
    size_t most;       /* room in `waits` */
    void (*take)(void *context); /* takes the next batch */
    void *context;
    /* Set by bench_take_steps: */
    double *waits; /* us; of the caller */
    size_t n;
    double waited, processor; /* us of all waits; of the thread's processor time in them */
    uint64_t begun_ns, ended_ns;
} bench_steps;

void bench_take_steps(bench_steps *s);
/* Returns accelerator utilisation: the share of n steps in the time that they and their waits, in
 * us, took. */
double bench_utilisation(size_t n, double step_ms, double waited);
/* Returns the smallest of sorted values that `thousandths` of all do not exceed; 0: there are
 * none. */
double bench_percentile(const double *sorted, size_t n, size_t thousandths);
