/* train_loop.c - a training loop that reads a token dataset: batches on the GPU ahead of the step,
 * two streams, a checkpoint every few steps, and going on from it.
 *
 *     train_loop DATASET STATE_FILE N_STEPS [DEVICE]
 *
 * Trains N_STEPS more steps than STATE_FILE has seen, which need not be there yet. DEVICE is a
 * number, or `host` (the default) for ordinary memory. Instead of training it prints a sum of each
 * batch, so that two short runs can be compared with a long one.
 *
 *     cc train_loop.c -ltokmap -lxxhash                          # batches in ordinary memory
 *     cc -DWITH_CUDA train_loop.c -ltokmap -lxxhash -lcudart     # and on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokmap_stage.h"

enum {
    ROWS = 8,
    LENGTH = 64,
    STEPS_PER_CHECKPOINT = 5,
    ALL = TOKMAP_STAGE_INPUTS | TOKMAP_STAGE_LABELS | TOKMAP_STAGE_CU_SEQLENS
};

/* ---- What stands for the model: everything between a batch and its release ---- */

#ifdef WITH_CUDA
#include <cuda_runtime.h>

/* Training runs in one stream, something that looks at the batch meanwhile (statistics, a second
 * model) in another one. */
typedef struct streams {
    cudaStream_t training, watching;
    cudaEvent_t watched;
} streams;

static void open_streams(streams *s, const char *device)
{
    if (strcmp(device, "host") != 0)
        cudaSetDevice(atoi(device)); /* streams are of the device that batches are on */
    cudaStreamCreate(&s->training);
    cudaStreamCreate(&s->watching);
    cudaEventCreate(&s->watched);
}

/* The second stream has done with the batch before the first one says that it is free. */
static void join(streams *s)
{
    cudaEventRecord(s->watched, s->watching);
    cudaStreamWaitEvent(s->training, s->watched, 0);
}

static void fetch(void *to, const void *from, size_t n_bytes, cudaStream_t stream)
{
    cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream);
    cudaStreamSynchronize(stream);
}
#else
typedef struct streams {
    void *training, *watching; /* ordinary memory knows no streams */
} streams;

static void open_streams(streams *s, const char *device)
{
    (void)device;
    s->training = s->watching = NULL;
}

static void join(streams *s)
{
    (void)s;
}

static void fetch(void *to, const void *from, size_t n_bytes, void *stream)
{
    (void)stream;
    memcpy(to, from, n_bytes);
}
#endif

static void train(const tokmap_stage_batch *b, streams *s)
{
    static int32_t inputs[ROWS * LENGTH];
    static int64_t labels[ROWS * LENGTH];
    unsigned long long sum = 0;
    fetch(inputs, b->inputs, sizeof inputs, s->training);
    fetch(labels, b->labels, sizeof labels, s->training);
    for (int i = 0; i < ROWS * LENGTH; i++)
        sum = sum * 31 + (unsigned long long)inputs[i] + (unsigned long long)labels[i];
    printf("samples from %llu on: sum %016llx, ", (unsigned long long)b->first_sample, sum);
}

static void watch(const tokmap_stage_batch *b, streams *s)
{
    int32_t borders[2];
    fetch(borders, b->cu_seqlens, sizeof borders, s->watching);
    printf("%u documents, the first one ends at %d\n", b->n_documents, borders[1]);
}

/* ---- Checkpoints ---- */

static void die(const char *what, const tokmap_error *err)
{
    fprintf(stderr, "train_loop: %s: %s\n", what, err->text);
    exit(1);
}

/* Beside the weights of the model, in the same way: whole, or not at all. */
static void save(const tokmap_stage *stage, const char *path)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    char partial[4096];
    tokmap_error err;
    if (tokmap_stage_save(stage, state, &err))
        die("saving", &err);
    snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *f = fopen(partial, "wb");
    if (!f || fwrite(state, sizeof state, 1, f) != 1 || fflush(f) || fsync(fileno(f)) ||
        fclose(f) || rename(partial, path)) {
        perror(partial);
        exit(1);
    }
}

static void restore(tokmap_stage *stage, const char *path)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    FILE *f = fopen(path, "rb");
    if (!f)
        return; /* the first run */
    if (fread(state, sizeof state, 1, f) != 1) {
        fprintf(stderr, "train_loop: %s: too short for a state\n", path);
        exit(1);
    }
    fclose(f);
    if (tokmap_stage_restore(stage, state, &err))
        die(path, &err);
}

/* ---- The loop ---- */

static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "train_loop: %s\n", text);
}

static tokmap_stage *open_stage(tokmap_loader *loader, const char *device)
{
    const tokmap_stage_options options = {
        .struct_size = sizeof options,
        .loader = loader,
        .device = strcmp(device, "host") == 0 ? TOKMAP_STAGE_HOST : (int32_t)atoi(device),
        .outputs = ALL,
        .log = say};
    tokmap_stage *stage;
    tokmap_error err;
    if (tokmap_stage_open(&stage, &options, &err))
        die("opening the stage", &err);
    return stage;
}

static tokmap_loader *open_loader(const tokmap_dataset *const *dataset)
{
    const tokmap_loader_source source = {.datasets = dataset, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options options = {.struct_size = sizeof options,
                                           .sources = &source,
                                           .n_sources = 1,
                                           .source_stride = sizeof(tokmap_loader_source),
                                           .row_stride = sizeof(tokmap_row),
                                           .sequence_length = LENGTH,
                                           .batch_rows = ROWS,
                                           .rank = 0,    /* of this process, */
                                           .n_ranks = 1, /* among so many */
                                           .row_parts = TOKMAP_ROW_DOCUMENTS,
                                           .seed = 1234};
    tokmap_loader *loader;
    tokmap_error err;
    if (tokmap_loader_open(&loader, &options, &err))
        die("opening the loader", &err);
    return loader;
}

static void run(tokmap_stage *stage, const char *state_path, int n_steps, const char *device)
{
    streams s;
    tokmap_error err;
    open_streams(&s, device);
    for (int step = 1; step <= n_steps; step++) {
        tokmap_stage_batch batch = TOKMAP_INIT(tokmap_stage_batch);
        /* The stream waits, if the batch is still on its way; the host waits in this program only
         * because it prints what it has seen. TOKMAP_END comes where max_epochs is set. */
        if (tokmap_stage_next(stage, &batch, s.training, &err))
            die("the next batch", &err);
        if (tokmap_stage_wait(stage, &batch, s.watching, &err))
            die("the second stream", &err);
        train(&batch, &s);
        watch(&batch, &s);
        join(&s);
        if (tokmap_stage_release(stage, &batch, s.training, &err))
            die("releasing a batch", &err);
        if (step % STEPS_PER_CHECKPOINT == 0 || step == n_steps)
            save(stage, state_path);
    }
}

int main(int argc, char **argv)
{
    tokmap_dataset *dataset;
    tokmap_error err;
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "Usage: train_loop DATASET STATE_FILE N_STEPS [DEVICE]\n");
        return 2;
    }
    if (tokmap_dataset_open(&dataset, argv[1], &err))
        die("opening the dataset", &err);
    const tokmap_dataset *const list[] = {dataset};
    tokmap_loader *loader = open_loader(list);
    tokmap_stage *stage = open_stage(loader, argc > 4 ? argv[4] : "host");
    restore(stage, argv[2]);
    run(stage, argv[2], atoi(argv[3]), argc > 4 ? argv[4] : "host");
    tokmap_stage_close(stage);
    tokmap_loader_close(loader);
    tokmap_dataset_close(dataset);
    return 0;
}
