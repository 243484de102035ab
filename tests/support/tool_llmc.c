/* SPDX-License-Identifier: Apache-2.0 */
/* tool_llmc - compares the batches of docs/examples/llmc_dataloader.h with what llm.c reads from
 * its shards, for test_example.sh.
 *
 *     tool_llmc write FOLDER       two shards of llm.c
 *     tool_llmc compare FOLDER     after `tokmap index`; prints what differs */
#include <string.h>

#include "../../docs/examples/llmc_dataloader.h"

enum {
    N_ROWS = 4,
    LENGTH = 16,
    N_SHARDS = 2,
    N_STEPS = 6, /* of two processes, in a shard */
    N_TOKENS = 2 * N_ROWS * LENGTH * N_STEPS + 1,
    HEADER_NUMBERS = 256
};

static uint16_t shards[N_SHARDS][N_TOKENS];

static char *path_of(const char *folder, int shard)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/shard_%d.bin", folder, shard);
    return path;
}

static int write_shards(const char *folder)
{
    const int32_t header[HEADER_NUMBERS] = {20240520, 1, N_TOKENS};
    uint32_t random = 1;
    for (int s = 0; s < N_SHARDS; s++) {
        FILE *file = fopen(path_of(folder, s), "wb");
        for (int i = 0; i < N_TOKENS; i++)
            shards[s][i] = (uint16_t)((random = random * 1664525 + 1013904223) >> 16);
        if (!file || fwrite(header, sizeof header, 1, file) != 1 ||
            fwrite(shards[s], sizeof shards[s], 1, file) != 1 || fclose(file))
            return 1;
    }
    return 0;
}

static int read_shards(const char *folder)
{
    for (int s = 0; s < N_SHARDS; s++) {
        FILE *file = fopen(path_of(folder, s), "rb");
        if (!file || fseek(file, HEADER_NUMBERS * sizeof(int32_t), SEEK_SET) ||
            fread(shards[s], sizeof shards[s], 1, file) != 1 || fclose(file))
            return 1;
    }
    return 0;
}

/* The batch of a step as llm.c reads it: each process has B * T tokens of a step, and the one after
 * them, from one shard. */
static int differs(const DataLoader *l, int step, int rank, int n_ranks)
{
    const int n = (int)(l->B * l->T), n_steps = (N_TOKENS - 1) / (n * n_ranks);
    const uint16_t *tokens = shards[step / n_steps] + (step % n_steps * n_ranks + rank) * n;
    for (int i = 0; i < n; i++)
        if (l->inputs[i] != tokens[i] || l->targets[i] != tokens[i + 1])
            return printf("rank %d of %d, step %d, token %d: %d, not %d\n", rank, n_ranks, step, i,
                          l->inputs[i], tokens[i]);
    return 0;
}

static int compare_ranks(const char *pattern, int n_ranks)
{
    int found = 0;
    for (int rank = 0; rank < n_ranks; rank++) {
        DataLoader l;
        dataloader_init(&l, pattern, N_ROWS, LENGTH, rank, n_ranks, 0);
        found |= l.num_tokens != N_SHARDS * N_TOKENS;
        for (int turn = 0; turn < 2; turn++, dataloader_reset(&l))
            for (int step = 0; step < 2 * N_STEPS * N_SHARDS / n_ranks && !found; step++) {
                dataloader_next_batch(&l);
                found |= differs(&l, step, rank, n_ranks);
            }
        dataloader_free(&l);
    }
    return found;
}

/* Shuffled: after three steps of two processes, one process with another B goes on with the same
 * rows. */
static int compare_resumed(const char *pattern)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    DataLoader two, one, whole;
    dataloader_init(&two, pattern, N_ROWS, LENGTH, 1, 2, 1);
    dataloader_init(&one, pattern, 2, LENGTH, 0, 1, 1);
    dataloader_init(&whole, pattern, 2, LENGTH, 0, 1, 1);
    for (int step = 0; step < 3; step++)
        dataloader_next_batch(&two);
    dataloader_save(&two, state);
    dataloader_restore(&one, state);
    for (int step = 0; step < 3 * 2 * N_ROWS / 2; step++)
        dataloader_next_batch(&whole);
    int found = 0;
    for (int step = 0; step < 20; step++) {
        dataloader_next_batch(&one);
        dataloader_next_batch(&whole);
        found |= memcmp(one.inputs, whole.inputs, 2 * LENGTH * sizeof(int)) != 0;
    }
    dataloader_free(&two);
    dataloader_free(&one);
    dataloader_free(&whole);
    return found ? printf("another order after a restore\n") : 0;
}

int main(int argc, char **argv)
{
    char pattern[4096];
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "write") == 0)
        return write_shards(argv[2]);
    snprintf(pattern, sizeof pattern, "%s/shard_*.bin", argv[2]);
    return read_shards(argv[2]) || compare_ranks(pattern, 1) || compare_ranks(pattern, 2) ||
           compare_resumed(pattern);
}
