#include "load_data.h"

#include <stdlib.h>

enum {
    DOCUMENT_TOKENS = 1000
};
static const uint64_t default_bytes = (uint64_t)1 << 30;

static const uint64_t default_cold_bytes = (uint64_t)8 << 30;

static uint64_t n_tokens_of(const bench_options *options, uint64_t usual_bytes)
{
    const uint64_t n_bytes = options->load_bytes ? options->load_bytes : usual_bytes;
    return n_bytes / 2 / DOCUMENT_TOKENS * DOCUMENT_TOKENS;
}

static void name_of(const bench_options *options, size_t i, char *prefix, size_t n_bytes)
{
    snprintf(prefix, n_bytes, "%s/load-%zu", options->dir, i);
}

static int said(tokmap_status status, const tokmap_error *err)
{
    if (status)
        fprintf(stderr, "tokbench: %s\n", err->text);
    return status != 0;
}

/* Read in order, and every page touched, so that nothing is left to the system. */
static int warm_up(const tokmap_dataset *ds, uint64_t n_tokens)
{
    enum {
        AT_ONCE = 1 << 19
    };
    tokmap_error err;
    uint16_t *buffer = malloc(AT_ONCE * sizeof *buffer);
    const void *tokens;
    uint64_t sum = 0;
    int code = !buffer;
    for (uint64_t i = 0; i + AT_ONCE <= n_tokens && !code; i += AT_ONCE)
        code = said(tokmap_dataset_read(ds, i, AT_ONCE, buffer, &err), &err);
    if (!code)
        code = tokmap_dataset_tokens(ds, 0, n_tokens, &tokens) != TOKMAP_OK;
    for (uint64_t i = 0; i < n_tokens && !code; i += 2048)
        sum += ((const volatile uint16_t *)tokens)[i];
    free(buffer);
    return code || sum == 1;
}

static int open_random(const bench_options *options, uint64_t n_tokens, const tokmap_dataset **ds)
{
    char prefix[4096];
    tokmap_dataset *opened = NULL;
    tokmap_error err;
    name_of(options, 0, prefix, sizeof prefix);
    *ds = NULL;
    if (bench_make_random(prefix, n_tokens) ||
        said(tokmap_dataset_open(&opened, prefix, &err), &err))
        return 1;
    *ds = opened;
    return 0;
}

int load_data_open_hot(const bench_options *options, const tokmap_dataset **ds)
{
    const uint64_t n_tokens = n_tokens_of(options, default_bytes);
    return open_random(options, n_tokens, ds) || warm_up(*ds, n_tokens);
}

int load_data_open_cold(const bench_options *options, const tokmap_dataset **ds)
{
    return open_random(options, n_tokens_of(options, default_cold_bytes), ds);
}

int load_data_open_sparse(const bench_options *options, uint64_t n_tokens,
                          const tokmap_dataset **datasets, size_t n_datasets)
{
    char prefix[4096];
    tokmap_error err;
    for (size_t i = 0; i < n_datasets; i++)
        datasets[i] = NULL;
    for (size_t i = 0; i < n_datasets; i++) {
        tokmap_dataset *opened;
        name_of(options, i, prefix, sizeof prefix);
        if (bench_make_sparse(prefix, n_tokens, n_tokens / 100000) ||
            said(tokmap_dataset_open(&opened, prefix, &err), &err))
            return 1;
        datasets[i] = opened;
    }
    return 0;
}

void load_data_close(const bench_options *options, const tokmap_dataset **datasets,
                     size_t n_datasets)
{
    char prefix[4096];
    for (size_t i = 0; i < n_datasets; i++) {
        tokmap_dataset_close((tokmap_dataset *)(uintptr_t)datasets[i]);
        name_of(options, i, prefix, sizeof prefix);
        bench_remove(prefix);
    }
}
