/* expand_page.c - E4: outputs of random batches from the device, from the stage on the host and by
 * plain C, which must be equal to the last byte; then the kernel's speed beside a copy inside the
 * device's memory. */
#include "gpubench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expand_case.h"

enum {
    POISON = 0xA5,
    GUARD = 64, /* bytes behind each output that nobody may write */
    ROUNDS = 3,
    TRIALS = 40,
    N_SIZES = 3,
    WAIT_US = 200
};
#define COPY_BYTES (1 * GIB)

/* ---- Equal outputs ---- */

typedef struct check {
    expand_case shape;
    feed device, host, plain; /* the last one is a loader without a stage */
    cudaStream_t stream;
    uint8_t *memory[N_OUTPUTS]; /* of the device; guard included */
    expand_outputs expected, got;
    uint8_t *copy; /* of the largest output and its guard */
} check;

static bool open_check(check *k, const options *o)
{
    feed_options fo = {.data = k->shape.wide ? o->wide : o->small,
                       .loader = k->shape.loader,
                       .stage = k->shape.stage};
    size_t largest = 0;
    bool ok = feed_open(&k->device, &fo);
    fo.stage.device = TOKMAP_CUDA_HOST;
    ok = ok && feed_open(&k->host, &fo);
    fo.stage.outputs = 0;
    ok = ok && feed_open(&k->plain, &fo) && expand_outputs_open(&k->expected, &k->shape) &&
         expand_outputs_open(&k->got, &k->shape) &&
         fine(cudaStreamCreateWithFlags(&k->stream, cudaStreamNonBlocking), "making a stream");
    for (int i = 0; i < N_OUTPUTS && ok; i++) {
        void *at = NULL;
        if (k->got.n_bytes[i] == 0)
            continue;
        largest = k->got.n_bytes[i] > largest ? k->got.n_bytes[i] : largest;
        ok = fine(cudaMalloc(&at, k->got.n_bytes[i] + GUARD), "cudaMalloc");
        k->memory[i] = at;
    }
    k->copy = malloc(largest + GUARD);
    return ok && k->copy;
}

static void close_check(check *k)
{
    feed_close(&k->device);
    feed_close(&k->host);
    feed_close(&k->plain);
    for (int i = 0; i < N_OUTPUTS; i++)
        cudaFree(k->memory[i]);
    if (k->stream)
        cudaStreamDestroy(k->stream);
    expand_outputs_close(&k->expected);
    expand_outputs_close(&k->got);
    free(k->copy);
}

static void set_pointers(tokmap_cuda_batch *b, uint8_t *const *at)
{
    b->inputs = at[0];
    b->labels = at[1];
    b->position_ids = (int32_t *)(void *)at[2];
    b->document_ids = (int32_t *)(void *)at[3];
    b->cu_seqlens = (int32_t *)(void *)at[4];
}

/* One output against what it must be; says the first difference. */
static bool compare(check *k, int i, const uint8_t *got, const char *whose)
{
    char text[256];
    if (memcmp(got, k->expected.bytes[i], k->expected.n_bytes[i]) == 0)
        return true;
    size_t at = 0;
    while (got[at] == k->expected.bytes[i][at])
        at++;
    expand_case_describe(&k->shape, text, sizeof text);
    fprintf(stderr, "gpubench: %s of the %s differ from byte %zu on: %s\n", expand_output_names[i],
            whose, at, text);
    return false;
}

static bool compare_device(check *k, const tokmap_cuda_batch *b, bool *equal)
{
    for (int i = 0; i < N_OUTPUTS; i++) {
        const size_t n = k->expected.n_bytes[i];
        if (n == 0)
            continue;
        if (!fine(cudaMemcpyAsync(k->copy, k->memory[i], n + GUARD, cudaMemcpyDeviceToHost,
                                  k->stream),
                  "copying an output") ||
            !fine(cudaStreamSynchronize(k->stream), "waiting for an output"))
            return false;
        *equal &= compare(k, i, k->copy, "device");
        for (int g = 0; g < GUARD; g++)
            *equal &= k->copy[n + (size_t)g] == POISON;
    }
    const bool cu = k->expected.n_bytes[4] > 0;
    *equal &= !cu || (b->n_documents == k->expected.n_documents &&
                      b->max_seqlen == k->expected.max_seqlen);
    return true;
}

static bool check_step(check *k, bool *equal)
{
    tokmap_cuda_batch b = {.struct_size = sizeof b}, h = b;
    tokmap_batch rows = {.struct_size = sizeof rows};
    tokmap_error err = {0};
    for (int i = 0; i < N_OUTPUTS; i++)
        if (k->memory[i] &&
            !fine(cudaMemsetAsync(k->memory[i], POISON, k->got.n_bytes[i] + GUARD, k->stream),
                  "cudaMemsetAsync"))
            return false;
    set_pointers(&b, k->memory);
    set_pointers(&h, k->got.bytes);
    if (!fine_status(tokmap_loader_next(k->plain.loader, &rows, &err), &err) ||
        !fine_status(tokmap_cuda_fill(k->device.stage, &b, k->stream, &err), &err) ||
        !fine_status(tokmap_cuda_fill(k->host.stage, &h, NULL, &err), &err))
        return false;
    expand_outputs_make(&k->expected, &k->shape, &rows);
    for (int i = 0; i < N_OUTPUTS; i++)
        if (k->expected.n_bytes[i])
            *equal &= compare(k, i, k->got.bytes[i], "host");
    *equal &= b.first_sample == rows.first_sample;
    return compare_device(k, &b, equal);
}

/* False: could not be done. */
static bool run_case(const options *o, uint64_t n, bool *equal)
{
    check k = {.shape = expand_case_make(n, o->n_cases > 0)};
    bool ok = open_check(&k, o);
    *equal = true;
    for (int i = 0; i < STEPS_OF_A_CASE && ok; i++)
        ok = check_step(&k, equal);
    close_check(&k);
    return ok;
}

static int check_cases(const options *o, double until)
{
    uint64_t n_differ = 0, n_failed = 0, n = 0;
    while (o->n_cases ? n < o->n_cases : seconds_left() > until || n < 20) {
        bool equal;
        if (!run_case(o, n++, &equal))
            n_failed++;
        n_differ += !equal;
        if (n_failed > 3)
            break;
    }
    figure cases =
        row_of("cases", "expand: random batches compared, %d steps each", STEPS_OF_A_CASE);
    figure wrong = row_of("cases", "expand: of these differ from plain C");
    figure failed = row_of("cases", "expand: of these could not be done");
    row_add(&cases, (double)n);
    row_add(&wrong, (double)n_differ);
    row_add(&failed, (double)n_failed);
    row_goal(&wrong, AT_MOST, 0);
    row_goal(&failed, AT_MOST, 0);
    if (o->n_cases == 0) {
        row_write(&cases);
        row_write(&wrong);
        row_write(&failed);
    }
    return n_differ + n_failed ? STATUS_FAILED : 0;
}

/* ---- Speed ---- */

/* Bytes read and written, GB/s. */
static double copy_inside(stream_timer *t, uint8_t *memory)
{
    if (!timer_begin_later(t, WAIT_US) ||
        !fine(cudaMemcpyAsync(memory, memory + COPY_BYTES, COPY_BYTES, cudaMemcpyDeviceToDevice,
                              t->stream),
              "cudaMemcpyAsync"))
        return -1;
    const double us = timer_end(t);
    return us > 0 ? 2.0 * (double)COPY_BYTES / us / 1e3 : -1;
}

static double expand_us(feed *f, stream_timer *t, uint64_t n_tokens)
{
    double us[TRIALS];
    for (int i = -3; i < TRIALS; i++) {
        usleep((useconds_t)(1000 + n_tokens / 2000)); /* the next image is copied meanwhile */
        if (!timer_begin_later(t, WAIT_US) || !feed_step(f, t->stream))
            return -1;
        const double took = timer_end(t);
        if (took < 0)
            return -1;
        us[i < 0 ? 0 : i] = took;
    }
    return percentile(us, TRIALS, 0.5);
}

/* Tokens of 2 bytes become 4, 8, 4 and 4. */
static void time_size(const options *o, stream_timer *t, uint8_t *memory, uint32_t n_rows)
{
    enum {
        LENGTH = 8192,
        BYTES_OF_TOKEN = 2 + 4 + 8 + 4 + 4
    };
    const feed_options fo = {.data = o->large,
                             .loader = {.sequence_length = LENGTH,
                                        .batch_rows = n_rows,
                                        .row_parts = TOKMAP_ROW_DOCUMENTS,
                                        .io = TOKMAP_IO_MAP},
                             .stage = {.outputs = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS |
                                                  TOKMAP_CUDA_POSITION_IDS |
                                                  TOKMAP_CUDA_DOCUMENT_IDS,
                                       .delivery = TOKMAP_CUDA_PUSH,
                                       .expand_in_next = 1,
                                       .n_copiers = 4}};
    const uint64_t n = (uint64_t)n_rows * LENGTH;
    figure copy = row_of("GB/s", "copy inside the device, beside %g M tokens", (double)n / 1048576);
    figure rate = row_of("GB/s", "expand, %g M tokens", (double)n / 1048576);
    figure time = row_of("us", "expand, time, %g M tokens", (double)n / 1048576);
    feed f;
    bool ok = feed_open(&f, &fo);
    for (int i = 0; i < ROUNDS && ok; i++) {
        const double limit = copy_inside(t, memory), us = expand_us(&f, t, n);
        ok = limit > 0 && us > 0;
        row_add(&copy, ok ? limit : NAN);
        row_add(&rate, ok ? (double)(n * BYTES_OF_TOKEN) / us / 1e3 : NAN);
        row_add(&time, ok ? us : NAN);
    }
    feed_close(&f);
    row_place(&rate, "gpu, the kernel", "tokmap");
    row_limit(&rate, &copy);
    figure share = row_of("x", "expand / copy inside the device, %g M tokens", (double)n / 1048576);
    for (uint32_t i = 0; i < rate.n_values; i++)
        row_add(&share, rate.values[i] / copy.values[i]);
    row_goal(&share, AT_LEAST, 0.7);
    row_write(&copy);
    row_write(&rate);
    row_write(&time);
    row_write(&share);
}

static bool time_kernel(const options *o)
{
    static const uint32_t n_rows[N_SIZES] = {128, 512, 2048};
    stream_timer t;
    void *memory = NULL;
    const bool ok = timer_open(&t) && fine(cudaMalloc(&memory, 2 * COPY_BYTES), "cudaMalloc") &&
                    fine(cudaMemset(memory, 0x5A, 2 * COPY_BYTES), "cudaMemset") &&
                    feed_warm_up(o->large);
    for (int i = 0; i < N_SIZES && ok; i++)
        time_size(o, &t, memory, n_rows[i]);
    cudaFree(memory);
    timer_close(&t);
    return ok;
}

int expand_page(const options *o)
{
    if (o->n_cases > 0)
        return check_cases(o, 0);
    const bool timed = time_kernel(o);
    const int code = check_cases(o, 0);
    return timed ? code : STATUS_FAILED;
}
