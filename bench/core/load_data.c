/* SPDX-License-Identifier: Apache-2.0 */
#include "core/load_data.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

enum {
    DOCUMENT_TOKENS = 1000,
    AT_ONCE = 1 << 19,
    LOCATES = 200000
};

load_data_prefix load_data_name(const bench_options *options, size_t i)
{
    load_data_prefix prefix;
    snprintf(prefix.s, sizeof prefix.s, "%s/load-%zu", options->dir, i);
    return prefix;
}

static int report_status(tokmap_status status, const tokmap_error *err)
{
    if (status)
        cli_warn("%s", err->text);
    return status != 0;
}

static int open_dataset(const char *prefix, const tokmap_dataset **ds)
{
    tokmap_dataset *opened = NULL;
    tokmap_error err;
    const int code = report_status(tokmap_dataset_open(&opened, prefix, &err), &err);
    *ds = opened;
    return code;
}

int load_data_open(const bench_options *options, uint64_t usual_bytes, const tokmap_dataset **ds)
{
    *ds = NULL;
    if (options->data)
        return open_dataset(options->data, ds);
    const uint64_t n_bytes = options->load_bytes ? options->load_bytes : usual_bytes;
    const load_data_prefix prefix = load_data_name(options, 0);
    return bench_make_random(prefix.s, n_bytes / 2 / DOCUMENT_TOKENS * DOCUMENT_TOKENS) ||
           open_dataset(prefix.s, ds);
}

tokmap_dataset_info load_data_info(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    return info;
}

bool load_data_fits(const tokmap_dataset *ds)
{
    return load_data_info(ds).token_file_bytes / 4096 <= (uint64_t)sysconf(_SC_PHYS_PAGES) / 2;
}

bool load_data_is_trial(const tokmap_dataset *ds)
{
    return load_data_info(ds).token_file_bytes < (uint64_t)64 << 20;
}

int load_data_warm_up(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = load_data_info(ds);
    tokmap_error err;
    const void *token;
    uint8_t *buffer = malloc(4 * (size_t)AT_ONCE);
    uint64_t sum = 0;
    int code = !buffer;
    for (uint64_t i = 0; i < info.n_tokens && !code; i += AT_ONCE) {
        const uint64_t left = info.n_tokens - i;
        code = report_status(
            tokmap_dataset_read(ds, i, left < AT_ONCE ? left : AT_ONCE, buffer, &err), &err);
    }
    for (uint64_t i = 0; i < info.n_tokens && !code; i += 4096 / info.token_bytes) {
        code = tokmap_dataset_tokens(ds, i, 1, &token) != TOKMAP_OK;
        sum += code ? 0 : *(const volatile uint8_t *)token;
    }
    free(buffer);
    return code || sum == UINT64_MAX;
}

int load_data_make_sparse(const bench_options *options, size_t i, uint64_t n_tokens)
{
    return bench_make_sparse(load_data_name(options, i).s, n_tokens, n_tokens / 100000);
}

int load_data_open_made(const bench_options *options, size_t first, const tokmap_dataset **datasets,
                        size_t n_datasets)
{
    int code = 0;
    for (size_t i = 0; i < n_datasets; i++)
        datasets[i] = NULL;
    for (size_t i = 0; i < n_datasets && !code; i++)
        code = open_dataset(load_data_name(options, first + i).s, &datasets[i]);
    return code;
}

void load_data_close(const tokmap_dataset **datasets, size_t n_datasets)
{
    for (size_t i = 0; i < n_datasets; i++)
        tokmap_dataset_close((tokmap_dataset *)(uintptr_t)datasets[i]);
}

void load_data_remove(const bench_options *options, size_t n_datasets)
{
    for (size_t i = 0; i < n_datasets; i++)
        bench_remove(load_data_name(options, i).s);
}

tokmap_loader *load_data_loader(tokmap_loader_options options)
{
    tokmap_loader *l;
    tokmap_error err;
    options.struct_size = sizeof options;
    options.source_stride = sizeof *options.sources;
    options.row_stride = sizeof(tokmap_row);
    if (tokmap_loader_open(&l, &options, &err))
        cli_warn("%s", err.text);
    return l;
}

tokmap_loader *load_data_one_source(const tokmap_dataset *const *datasets, size_t n_datasets,
                                    tokmap_loader_options options)
{
    const tokmap_loader_source source = {
        .datasets = datasets, .n_datasets = n_datasets, .weight = 1};
    options.sources = &source;
    options.n_sources = 1;
    return load_data_loader(options);
}

double load_data_steps_ns(tokmap_loader *l, uint64_t n_steps, const tokmap_gather_options *gather)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    tokmap_status status = TOKMAP_OK;
    uint64_t n_rows = 0;
    uintptr_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_steps && !status; i++) {
        status = tokmap_loader_next(l, &b, &err);
        if (!status && gather)
            status = tokmap_batch_gather(&b, gather, &err);
        for (uint32_t k = 0; k < b.n_rows && !gather && !status; k++)
            sum += (uintptr_t)b.rows[k].tokens;
        n_rows += b.n_rows;
    }
    const double ns = (double)(tokmap_i_now_ns() - start);
    return report_status(status, &err) || sum == 1 ? -1 : ns / (double)n_rows;
}

double load_data_locate_ns(tokmap_loader *l, uint64_t first, uint64_t step, uint64_t mask)
{
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    tokmap_error err;
    tokmap_status status = TOKMAP_OK;
    uint64_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < LOCATES && !status; i++) {
        status = tokmap_loader_locate(l, first + (i * step & mask), &at, &err);
        sum += at.first_token;
    }
    const double ns = (double)(tokmap_i_now_ns() - start);
    return report_status(status, &err) || sum == 1 ? -1 : ns / LOCATES;
}
