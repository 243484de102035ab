/* fork_page.c - E11: how long fork takes beside pinned memory, with and without the advice that
 * keeps it out of a child; and what a child is told that uses its parent's stage. */
#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIALS = 7
};
#define PINNED_BYTES (256 * MIB)

/* Microseconds until the parent goes on; below 0: there was no child. */
static double fork_us(void)
{
    const uint64_t begun = now_ns();
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    const double us = (double)(now_ns() - begun) / 1e3;
    return child > 0 && waitpid(child, NULL, 0) == child ? us : -1;
}

static void measure(const char *beside)
{
    figure r = row_of("us", "fork beside %s", beside);
    for (int i = 0; i < TRIALS; i++) {
        const double us = fork_us();
        if (us >= 0)
            row_add(&r, us);
    }
    row_write(&r);
}

static void measure_pinned(const char *beside, int advice)
{
    host_memory m;
    if (!memory_open(&m, REGISTERED, PINNED_BYTES)) {
        row_left_out(last_problem(), "fork beside %s", beside);
        return;
    }
    (void)madvise(m.bytes, m.n_bytes, advice);
    measure(beside);
    (void)madvise(m.bytes, m.n_bytes, MADV_DOFORK);
    memory_close(&m);
}

/* 0: the child was told that the stage is not its own. */
static bool child_is_told(feed *f, cudaStream_t stream)
{
    tokmap_cuda_batch b = {.struct_size = sizeof b};
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(tokmap_cuda_next(f->stage, &b, stream, NULL) == TOKMAP_ERR_FORKED ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int fork_page(const options *o)
{
    const feed_options fo = {.data = o->small,
                             .loader = {.sequence_length = 8192, .batch_rows = 512},
                             .stage = {.outputs = TOKMAP_CUDA_INPUTS, .n_host_slots = 32}};
    cudaStream_t stream = NULL;
    feed f;
    bool ok = fine(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    if (!ok)
        return STATUS_FAILED;
    measure("nothing pinned");
    measure_pinned("256 MiB pinned", MADV_DOFORK);
    measure_pinned("256 MiB pinned, kept out of children", MADV_DONTFORK);
    ok = feed_open(&f, &fo);
    if (ok) {
        figure told = row_of("children", "fork: children that a stage does not refuse");
        measure("a stage with 256 MiB pinned");
        row_add(&told, child_is_told(&f, stream) ? 0 : 1);
        row_goal(&told, AT_MOST, 0);
        row_write(&told);
        ok = told.values[0] == 0 && feed_step(&f, stream); /* the parent's still works */
    }
    feed_close(&f);
    cudaStreamDestroy(stream);
    return ok ? 0 : STATUS_FAILED;
}
