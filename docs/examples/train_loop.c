/* SPDX-License-Identifier: Apache-2.0 */
/* train_loop.c - a training loop that can be interrupted and continued.
 *
 *     train_loop DATASET STATE_FILE N_STEPS
 *
 * Trains N_STEPS more steps than STATE_FILE has seen; without that file, from the beginning. Instead
 * of training it prints a sum of each batch.
 *
 *     cc train_loop.c $(pkg-config --cflags --libs tokmap)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokmap_loader.h"

static tokmap_error err; /* filled in by the call that failed */
static int64_t inputs[8 * 64], labels[8 * 64];

static void check(int failed, const char *text)
{
    if (!failed)
        return;
    fprintf(stderr, "train_loop: %s\n", text);
    exit(1);
}

static void train(tokmap_loader *loader)
{
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    tokmap_gather_options buffers = TOKMAP_INIT(tokmap_gather_options);
    buffers.format = TOKMAP_GATHER_I64;
    buffers.inputs = inputs;
    buffers.labels = labels;
    check(tokmap_loader_next(loader, &batch, &err), err.text);
    check(tokmap_batch_gather(&batch, &buffers, &err), err.text);
    uint64_t sum = 0; /* a model would be trained here */
    for (uint32_t i = 0; i < batch.n_rows * batch.sequence_length; i++)
        sum = sum * 31 + (uint64_t)inputs[i] + (uint64_t)labels[i];
    printf("samples from %" PRIu64 " on: sum %016" PRIx64 "\n", batch.first_sample, sum);
}

int main(int argc, char **argv)
{
    check(argc != 4, "usage: train_loop DATASET STATE_FILE N_STEPS");
    tokmap_dataset *dataset;
    check(tokmap_dataset_open(&dataset, argv[1], &err), err.text);
    tokmap_dataset *const datasets[] = {dataset};
    const tokmap_loader_source source = {.datasets = datasets, .n_datasets = 1};
    tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.sources = &source;
    options.n_sources = 1;
    options.sequence_length = 64;
    options.batch_rows = 8;
    tokmap_loader *loader;
    check(tokmap_loader_open(&loader, &options, &err), err.text);
    uint8_t state[TOKMAP_STATE_BYTES];
    FILE *file = fopen(argv[2], "rb");
    if (file) { /* not the first run */
        check(fread(state, sizeof state, 1, file) != 1, "the state file is too short");
        check(tokmap_loader_restore(loader, state, &err), err.text);
        fclose(file);
    }
    for (int step = 0; step < atoi(argv[3]); step++)
        train(loader);
    check(tokmap_loader_save(loader, state, &err), err.text); /* with every checkpoint of a model */
    file = fopen(argv[2], "wb");
    check(!file || fwrite(state, sizeof state, 1, file) != 1 || fclose(file), "cannot save");
    tokmap_loader_close(loader);
    tokmap_dataset_close(dataset);
    return 0;
}
