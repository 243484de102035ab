/* SPDX-License-Identifier: Apache-2.0 */
#include "core/steps.h"

void bench_take_steps(bench_steps *s)
{
    const uint64_t step_ns = (uint64_t)(s->step_ms * 1e6);
    s->n = 0;
    s->waited = s->processor = 0;
    s->begun_ns = tokmap_i_now_ns();
    while (s->n < s->most && (s->until_ns == 0 || tokmap_i_now_ns() < s->until_ns)) {
        if (step_ns > 0)
            tokmap_i_sleep_ns(step_ns);
        const uint64_t processor_ns = tokmap_i_thread_cpu_ns(), asked = tokmap_i_now_ns();
        s->take(s->context);
        const double wait = bench_ns_since(asked) / 1e3;
        s->processor += (double)(tokmap_i_thread_cpu_ns() - processor_ns) / 1e3;
        s->waits[s->n++] = wait;
        s->waited += wait;
    }
    s->ended_ns = tokmap_i_now_ns();
}

double bench_utilisation(size_t n, double step_ms, double waited)
{
    const double computed = (double)n * step_ms * 1e3;
    return computed > 0 ? computed / (computed + waited) : 0;
}

double bench_percentile(const double *sorted, size_t n, size_t thousandths)
{
    const size_t rank = (n * thousandths + 999) / 1000;
    return n == 0 ? 0 : sorted[rank > 0 ? rank - 1 : 0];
}
