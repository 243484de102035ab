/* timer.c - device time between two events in a stream of its own. */
#include "gpubench.h"

#include "kernels.h"

bool timer_open(stream_timer *t)
{
    *t = (stream_timer){NULL, NULL, NULL};
    return fine(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking), "making a stream") &&
           fine(cudaEventCreate(&t->begin), "making an event") &&
           fine(cudaEventCreate(&t->end), "making an event");
}

void timer_close(stream_timer *t)
{
    if (t->stream)
        cudaStreamDestroy(t->stream);
    if (t->begin)
        cudaEventDestroy(t->begin);
    if (t->end)
        cudaEventDestroy(t->end);
}

bool timer_begin(stream_timer *t)
{
    return fine(cudaEventRecord(t->begin, t->stream), "recording an event");
}

bool timer_begin_later(stream_timer *t, uint32_t wait_us)
{
    return fine(kernel_wait(1000ull * wait_us, t->stream), "starting the kernel that waits") &&
           timer_begin(t);
}

double timer_end(stream_timer *t)
{
    float ms = 0;
    if (!fine(cudaEventRecord(t->end, t->stream), "recording an event") ||
        !fine(cudaEventSynchronize(t->end), "waiting for an event") ||
        !fine(cudaEventElapsedTime(&ms, t->begin, t->end), "reading an event"))
        return -1;
    return 1e3 * (double)ms;
}

/* Both sides rotate, so that no cache holds what is copied. */
double copy_rate(stream_timer *t, const host_memory *m, void *to, size_t copy_bytes,
                 uint32_t n_copies)
{
    const size_t n_places = m->n_bytes / copy_bytes;
    bool ok = n_places > 0 && timer_begin(t);
    for (uint32_t i = 0; i < n_copies && ok; i++) {
        const size_t at = i % n_places * copy_bytes;
        ok = fine(cudaMemcpyAsync((uint8_t *)to + at, m->bytes + at, copy_bytes,
                                  cudaMemcpyHostToDevice, t->stream),
                  "cudaMemcpyAsync");
    }
    const double us = ok ? timer_end(t) : -1;
    return us > 0 ? (double)copy_bytes * n_copies / us / 1e3 : -1;
}
