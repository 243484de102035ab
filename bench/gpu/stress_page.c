/* stress_page.c - E9: batches that are held across steps and released in any order, in one of two
 * streams, with waits of random lengths everywhere. Forward and backward each take a sum of the
 * whole batch, late, on the device; then the consumer spoils the memory before it gives it back.
 * Now and then a batch goes through `fill` into a graph. Every sum must be the one that the stage
 * on the host has for the batch. */
#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

enum {
    N_ROWS = 8,
    LENGTH = 509,
    N_INPUTS = N_ROWS * LENGTH,
    N_SLOTS = 6,
    MOST_HELD = 4,
    LEAST_STEPS = 200,
    MOST_STEPS = 4000,
    N_RUNS = 4,
    N_ARRAYS = 5,
    POISON = 0xA5
};

typedef struct held {
    tokmap_cuda_batch batch;
    uint64_t step;
} held;

typedef struct stress {
    feed feed;
    cudaStream_t forward, backward;
    cudaEvent_t joined;
    uint64_t *sums; /* of the device: forward, then backward */
    uint64_t *graph_sum;
    void *fixed[N_ARRAYS]; /* what the graph reads */
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    held held[MOST_HELD + 1];
    uint32_t n_held;
    uint64_t n_steps, seed;
} stress;

static const size_t n_words[N_ARRAYS] = {N_INPUTS, 2 * N_INPUTS, N_INPUTS, N_INPUTS, N_INPUTS + 1};

static summed arrays_of(const tokmap_cuda_batch *b)
{
    const void *const at[N_ARRAYS] = {b->inputs, b->labels, b->position_ids, b->document_ids,
                                      b->cu_seqlens};
    summed s = {.n_words = {0}};
    for (int i = 0; i < N_ARRAYS; i++) {
        s.words[i] = at[i];
        s.n_words[i] = n_words[i];
    }
    return s;
}

static uint32_t below(stress *s, uint32_t n)
{
    return (uint32_t)(random_next(&s->seed) >> 33) % n;
}

static feed_options feed_for(const options *o, tokmap_cuda_delivery delivery, bool in_next)
{
    return (feed_options){.data = o->small,
                          .loader = {.sequence_length = LENGTH,
                                     .batch_rows = N_ROWS,
                                     .seed = 77,
                                     .random_phase = 1,
                                     .row_parts = TOKMAP_ROW_DOCUMENTS,
                                     .io = TOKMAP_IO_MAP},
                          .stage = {.outputs = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS |
                                               TOKMAP_CUDA_POSITION_IDS | TOKMAP_CUDA_DOCUMENT_IDS |
                                               TOKMAP_CUDA_CU_SEQLENS,
                                    .n_slots = N_SLOTS,
                                    .n_host_slots = 3,
                                    .delivery = delivery,
                                    .expand_in_next = in_next}};
}

/* ---- Steps ---- */

static bool wait_somewhat(stress *s, cudaStream_t stream)
{
    return below(s, 3) > 0 || fine(kernel_wait(below(s, 30000), stream), "starting a kernel");
}

/* `after` goes on when `first` has done what it has so far. */
static bool join(stress *s, cudaStream_t first, cudaStream_t after)
{
    return fine(cudaEventRecord(s->joined, first), "recording an event") &&
           fine(cudaStreamWaitEvent(after, s->joined, 0), "waiting for an event");
}

static bool forward(stress *s)
{
    held *h = &s->held[s->n_held];
    tokmap_error err = {0};
    h->batch = (tokmap_cuda_batch){.struct_size = sizeof h->batch};
    if (!fine_status(tokmap_cuda_next(s->feed.stage, &h->batch, s->forward, &err), &err))
        return false;
    h->step = h->batch.first_sample / N_ROWS;
    s->n_held++;
    const summed all = arrays_of(&h->batch);
    return wait_somewhat(s, s->forward) &&
           fine(kernel_sum(&all, &s->sums[h->step], s->forward), "starting a kernel");
}

static bool spoil(const stress *s, const summed *all)
{
    for (int i = 0; i < N_ARRAYS; i++)
        if (!fine(cudaMemsetAsync((void *)(uintptr_t)all->words[i], POISON, 4 * all->n_words[i],
                                  s->backward),
                  "cudaMemsetAsync"))
            return false;
    return true;
}

static bool backward(stress *s, uint32_t which)
{
    held h = s->held[which];
    const summed all = arrays_of(&h.batch);
    const bool in_forward = below(s, 2);
    tokmap_error err = {0};
    s->held[which] = s->held[--s->n_held];
    return join(s, s->forward, s->backward) && wait_somewhat(s, s->backward) &&
           fine_status(tokmap_cuda_wait(s->feed.stage, &h.batch, s->backward, &err), &err) &&
           fine(kernel_sum(&all, &s->sums[MOST_STEPS + h.step], s->backward),
                "starting a kernel") &&
           spoil(s, &all) && (!in_forward || join(s, s->backward, s->forward)) &&
           fine_status(tokmap_cuda_release(s->feed.stage, &h.batch,
                                           in_forward ? s->forward : s->backward, &err),
                       &err);
}

/* ---- A graph ---- */

static tokmap_cuda_batch fixed_batch(const stress *s)
{
    return (tokmap_cuda_batch){.struct_size = sizeof(tokmap_cuda_batch),
                               .inputs = s->fixed[0],
                               .labels = s->fixed[1],
                               .position_ids = s->fixed[2],
                               .document_ids = s->fixed[3],
                               .cu_seqlens = s->fixed[4]};
}

/* The stage's thread is at work meanwhile, and must not break the capture; a stream that is being
 * captured is refused, and the graph stays whole. */
static bool capture(stress *s)
{
    const tokmap_cuda_batch b = fixed_batch(s);
    const summed all = arrays_of(&b);
    tokmap_cuda_batch refused = {.struct_size = sizeof refused};
    bool ok = fine(cudaStreamBeginCapture(s->forward, cudaStreamCaptureModeGlobal),
                   "beginning a capture");
    if (!ok)
        return false;
    usleep(2000);
    if (tokmap_cuda_next(s->feed.stage, &refused, s->forward, NULL) != TOKMAP_ERR_ARGUMENT) {
        fputs("gpubench: next took a stream that is being captured\n", stderr);
        ok = false;
    }
    ok = ok && fine(cudaMemsetAsync(s->graph_sum, 0, 8, s->forward), "cudaMemsetAsync") &&
         fine(kernel_sum(&all, s->graph_sum, s->forward), "capturing a kernel");
    ok = fine(cudaStreamEndCapture(s->forward, &s->graph), "ending the capture") && ok;
    return ok && fine(cudaGraphInstantiate(&s->replay, s->graph, 0), "making the graph");
}

static bool replay(stress *s)
{
    tokmap_cuda_batch b = fixed_batch(s);
    tokmap_error err = {0};
    if (!fine_status(tokmap_cuda_fill(s->feed.stage, &b, s->forward, &err), &err) ||
        !wait_somewhat(s, s->forward) ||
        !fine(cudaGraphLaunch(s->replay, s->forward), "launching the graph"))
        return false;
    const uint64_t step = b.first_sample / N_ROWS;
    for (int i = 0; i < 2; i++)
        if (!fine(cudaMemcpyAsync(&s->sums[i * MOST_STEPS + step], s->graph_sum, 8,
                                  cudaMemcpyDeviceToDevice, s->forward),
                  "copying a sum"))
            return false;
    return true;
}

/* ---- Runs ---- */

/* What a graph is made of has run before, so that nothing is loaded while it is captured. */
static bool try_kernels(stress *s)
{
    const summed nothing = {.n_words = {0}};
    return fine(kernel_sum(&nothing, s->graph_sum, s->forward), "starting a kernel") &&
           fine(kernel_wait(1, s->forward), "starting a kernel") &&
           fine(cudaStreamSynchronize(s->forward), "waiting for a stream");
}

static bool open_stress(stress *s)
{
    bool ok = fine(cudaStreamCreateWithFlags(&s->forward, cudaStreamNonBlocking), "a stream") &&
              fine(cudaStreamCreateWithFlags(&s->backward, cudaStreamNonBlocking), "a stream") &&
              fine(cudaEventCreateWithFlags(&s->joined, cudaEventDisableTiming), "an event");
    void *sums = NULL, *sum = NULL;
    ok = ok && fine(cudaMalloc(&sums, 2 * MOST_STEPS * sizeof *s->sums), "cudaMalloc") &&
         fine(cudaMemset(sums, 0, 2 * MOST_STEPS * sizeof *s->sums), "cudaMemset") &&
         fine(cudaMalloc(&sum, 8), "cudaMalloc");
    for (int i = 0; i < N_ARRAYS && ok; i++)
        ok = fine(cudaMalloc(&s->fixed[i], 4 * n_words[i]), "cudaMalloc");
    s->sums = sums;
    s->graph_sum = sum;
    return ok && try_kernels(s) && capture(s);
}

static void close_stress(stress *s)
{
    cudaDeviceSynchronize();
    feed_close(&s->feed);
    if (s->replay)
        cudaGraphExecDestroy(s->replay);
    if (s->graph)
        cudaGraphDestroy(s->graph);
    for (int i = 0; i < N_ARRAYS; i++)
        cudaFree(s->fixed[i]);
    cudaFree(s->sums);
    cudaFree(s->graph_sum);
    if (s->joined)
        cudaEventDestroy(s->joined);
    if (s->forward)
        cudaStreamDestroy(s->forward);
    if (s->backward)
        cudaStreamDestroy(s->backward);
}

static bool take_steps(stress *s, double until)
{
    bool ok = true;
    for (; ok && s->n_steps < MOST_STEPS; s->n_steps++) {
        if (s->n_steps >= LEAST_STEPS && seconds_left() < until)
            break;
        if (below(s, 50) == 0)
            usleep(below(s, 400));
        ok = below(s, 8) == 0 ? replay(s) : forward(s);
        while (ok && s->n_held > 0 && (s->n_held > MOST_HELD - 1 || below(s, 2)))
            ok = backward(s, below(s, s->n_held));
    }
    while (ok && s->n_held > 0)
        ok = backward(s, 0);
    return fine(cudaDeviceSynchronize(), "waiting for the device") && ok;
}

static uint64_t sum_on_host(const tokmap_cuda_batch *b)
{
    const summed all = arrays_of(b);
    uint64_t sum = 0, place = 0;
    for (int a = 0; a < N_ARRAYS; a++) {
        for (uint64_t i = 0; i < all.n_words[a]; i++)
            sum += sum_of_word(all.words[a][i], place + i);
        place += all.n_words[a];
    }
    return sum;
}

/* Counts the steps with a wrong sum; below 0: could not be done. */
static int64_t count_wrong(const stress *s, const uint64_t *sums, feed_options fo)
{
    feed f;
    tokmap_error err = {0};
    int64_t n_wrong = 0;
    fo.stage.device = TOKMAP_CUDA_HOST;
    if (!feed_open(&f, &fo))
        return -1;
    for (uint64_t i = 0; i < s->n_steps && n_wrong >= 0; i++) {
        tokmap_cuda_batch b = {.struct_size = sizeof b};
        if (!fine_status(tokmap_cuda_next(f.stage, &b, NULL, &err), &err)) {
            n_wrong = -1;
            break;
        }
        const uint64_t expected = sum_on_host(&b);
        n_wrong += sums[i] != expected || sums[MOST_STEPS + i] != expected;
        tokmap_cuda_release(f.stage, &b, NULL, NULL);
    }
    feed_close(&f);
    return n_wrong;
}

static bool run(int number, const char *name, const feed_options *fo)
{
    static uint64_t sums[2 * MOST_STEPS];
    stress s = {.seed = 1000 + (uint64_t)number};
    /* Less than half of the run's share: the host has to find all sums, too. */
    const double left = seconds_left(), until = left - 0.4 * left / (N_RUNS - number);
    const bool ok =
        feed_open(&s.feed, fo) && open_stress(&s) && take_steps(&s, until) &&
        feed_kept_way(&s.feed, fo->stage.delivery) &&
        fine(cudaMemcpy(sums, s.sums, sizeof sums, cudaMemcpyDeviceToHost), "copying the sums");
    close_stress(&s);
    figure steps = row_of("batches", "lifetimes, batches checked, %s", name);
    figure wrong = row_of("batches", "lifetimes, of these wrong, %s", name);
    const int64_t n_wrong = ok ? count_wrong(&s, sums, *fo) : -1;
    if (n_wrong >= 0) {
        row_add(&steps, (double)s.n_steps);
        row_add(&wrong, (double)n_wrong);
    }
    row_goal(&wrong, AT_MOST, 0);
    row_write(&steps);
    row_write(&wrong);
    return n_wrong == 0;
}

int stress_page(const options *o)
{
    static const struct {
        const char *name;
        tokmap_cuda_delivery delivery;
        bool in_next;
    } runs[N_RUNS] = {{"push", TOKMAP_CUDA_PUSH, false},
                      {"pull", TOKMAP_CUDA_PULL, false},
                      {"direct", TOKMAP_CUDA_DIRECT, false},
                      {"pull, expanded in next", TOKMAP_CUDA_PULL, true}};
    bool ok = true;
    for (int i = 0; i < N_RUNS; i++) {
        const feed_options fo = feed_for(o, runs[i].delivery, runs[i].in_next);
        ok &= run(i, runs[i].name, &fo);
    }
    return ok ? 0 : STATUS_FAILED;
}
