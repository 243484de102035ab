/* SPDX-License-Identifier: Apache-2.0 */
/* llmc_dataloader.h - the DataLoader of llm.c, with tokmap in it.
 *
 * In train_gpt2.c, include this file in place of "llmc/dataloader.h", link with -ltokmap, and index
 * the shards once: tokmap index shards/train_*.bin
 *
 * Without shuffling the batches are those of llm.c, as long as the rows of a shard fill whole
 * steps: llm.c leaves the rest of a shard out, and here the step goes on in the next shard. With
 * shuffling, all rows of all shards are shuffled, and not only the batches of a shard. The state
 * of dataloader_save has 128 bytes, and is restored with any number of processes and any B. */
#pragma once

#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap_loader.h"

typedef struct DataLoader {
    size_t B, T;
    int *inputs, *targets; /* B * T each, of the last batch */
    size_t num_tokens;     /* in all shards */
    tokmap_loader *loader;
    tokmap_dataset **shards;
    size_t n_shards;
} DataLoader;

static inline void dataloader_check(tokmap_status status, const tokmap_error *err)
{
    if (status == TOKMAP_OK)
        return;
    fprintf(stderr, "Error: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static inline void dataloader_open_shards(DataLoader *loader, const char *pattern)
{
    tokmap_error err;
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) || found.gl_pathc == 0) {
        fprintf(stderr, "Error: no files match the pattern %s\n", pattern);
        exit(EXIT_FAILURE);
    }
    loader->shards = (tokmap_dataset **)malloc(found.gl_pathc * sizeof(tokmap_dataset *));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        dataloader_check(tokmap_dataset_open(&loader->shards[i], found.gl_pathv[i], &err), &err);
        tokmap_dataset_get_info(loader->shards[i], &info);
        loader->num_tokens += info.n_tokens;
    }
    loader->n_shards = found.gl_pathc;
    globfree(&found);
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle)
{
    tokmap_error err;
    memset(loader, 0, sizeof *loader);
    loader->B = B;
    loader->T = T;
    loader->inputs = (int *)malloc(B * T * sizeof(int));
    loader->targets = (int *)malloc(B * T * sizeof(int));
    dataloader_open_shards(loader, filename_pattern);
    tokmap_loader_source source = {0};
    source.datasets = loader->shards;
    source.n_datasets = (uint32_t)loader->n_shards;
    tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.sources = &source;
    options.n_sources = 1;
    options.sequence_length = (uint32_t)T;
    options.batch_rows = (uint32_t)B;
    options.rank = (uint32_t)process_rank;
    options.n_ranks = (uint32_t)num_processes;
    options.shuffle = should_shuffle ? TOKMAP_SHUFFLE_FULL : TOKMAP_SHUFFLE_NONE;
    dataloader_check(tokmap_loader_open(&loader->loader, &options, &err), &err);
}

static inline void dataloader_next_batch(DataLoader *loader)
{
    tokmap_error err;
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    tokmap_gather_options to = TOKMAP_INIT(tokmap_gather_options);
    to.format = TOKMAP_GATHER_I32;
    to.inputs = loader->inputs;
    to.labels = loader->targets;
    dataloader_check(tokmap_loader_next(loader->loader, &batch, &err), &err);
    dataloader_check(tokmap_batch_gather(&batch, &to, &err), &err);
}

static inline void dataloader_reset(DataLoader *loader)
{
    tokmap_error err;
    dataloader_check(tokmap_loader_seek(loader->loader, 0, &err), &err);
}

static inline void dataloader_save(const DataLoader *loader, uint8_t state[TOKMAP_STATE_BYTES])
{
    tokmap_error err;
    dataloader_check(tokmap_loader_save(loader->loader, state, &err), &err);
}

static inline void dataloader_restore(DataLoader *loader, const uint8_t state[TOKMAP_STATE_BYTES])
{
    tokmap_error err;
    dataloader_check(tokmap_loader_restore(loader->loader, state, &err), &err);
}

static inline void dataloader_free(DataLoader *loader)
{
    tokmap_loader_close(loader->loader);
    for (size_t i = 0; i < loader->n_shards; i++)
        tokmap_dataset_close(loader->shards[i]);
    free(loader->shards);
    free(loader->inputs);
    free(loader->targets);
}
