/* SPDX-License-Identifier: Apache-2.0 */
#include "core/load_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum {
    DOCUMENT_TOKENS = 1000,
    VOCABULARY = 50257,
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

/* ---- Making and opening ---- */

int load_data_finish(tokmap_writer *w, tokmap_status status, tokmap_error *err)
{
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    return report_status(status, err);
}

int load_data_make_random(const bench_options *options, size_t i, uint64_t n_tokens)
{
    static uint32_t ids[DOCUMENT_TOKENS];
    const tokmap_writer_options writer = {.struct_size = sizeof writer,
                                          .vocab_size = VOCABULARY,
                                          .eod_id = TOKMAP_NO_ID,
                                          .replace = 1};
    tokmap_writer *w = NULL;
    tokmap_error err;
    uint64_t seed = 1;
    tokmap_status status = tokmap_writer_open(&w, load_data_name(options, i).s, &writer, &err);
    for (uint64_t n = 0; n < n_tokens && !status; n += DOCUMENT_TOKENS) {
        for (int k = 0; k < DOCUMENT_TOKENS; k++)
            ids[k] = (uint32_t)(bench_random(&seed) % VOCABULARY);
        status = tokmap_writer_append(w, ids, DOCUMENT_TOKENS, &err);
        if (!status)
            status = tokmap_writer_end_document(w, &err);
    }
    return load_data_finish(w, status, &err);
}

static int open_dataset(const char *prefix, const tokmap_dataset **ds)
{
    tokmap_dataset *opened = NULL;
    tokmap_error err;
    const int code = report_status(tokmap_dataset_open(&opened, prefix, &err), &err);
    *ds = opened;
    return code;
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

int load_data_open(const bench_options *options, uint64_t usual_bytes, const tokmap_dataset **ds)
{
    *ds = NULL;
    if (options->data)
        return open_dataset(options->data, ds);
    const uint64_t n_bytes = options->load_bytes ? options->load_bytes
                             : usual_bytes       ? usual_bytes
                                                 : LOAD_DATA_USUAL_BYTES;
    return load_data_make_random(options, 0, n_bytes / 2 / DOCUMENT_TOKENS * DOCUMENT_TOKENS) ||
           load_data_open_made(options, 0, ds, 1);
}

void load_data_close(const tokmap_dataset **datasets, size_t n_datasets)
{
    for (size_t i = 0; i < n_datasets; i++)
        tokmap_dataset_close((tokmap_dataset *)(uintptr_t)datasets[i]);
}

const uint8_t *load_data_map(const char *prefix, const char *suffix, size_t *n_bytes)
{
    char path[4100];
    struct stat st;
    void *map = MAP_FAILED;
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        *n_bytes = (size_t)st.st_size;
        map = mmap(NULL, *n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (map == MAP_FAILED)
        cli_warn("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

void load_data_unmap(const uint8_t *map, size_t n_bytes)
{
    if (map)
        munmap((void *)(uintptr_t)map, n_bytes);
}

/* ---- About a dataset ---- */

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

/* ---- Loaders ---- */

tokmap_loader *load_data_loader(tokmap_loader_options options)
{
    tokmap_loader *l = NULL;
    tokmap_error err;
    options.struct_size = sizeof options;
    options.source_stride = sizeof *options.sources;
    options.phase_stride = sizeof *options.phases;
    options.row_stride = sizeof(tokmap_row);
    report_status(tokmap_loader_open(&l, &options, &err), &err);
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

bool load_data_works(const tokmap_dataset *ds, tokmap_io io, const char *name)
{
    const tokmap_loader_options options = {.sequence_length = 1, .batch_rows = 1, .io = io};
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader *l = load_data_one_source(&ds, 1, options);
    if (l)
        tokmap_loader_get_info(l, &info);
    tokmap_loader_close(l);
    if (l && info.io != io)
        cli_warn("reading by '%s' does not work here: left out", name);
    return l && info.io == io;
}

int load_data_seek(tokmap_loader *l, uint64_t sample)
{
    tokmap_error err;
    return report_status(tokmap_loader_seek(l, sample, &err), &err);
}

int load_data_next(tokmap_loader *l, tokmap_batch *b, const tokmap_gather_options *gather)
{
    tokmap_error err;
    tokmap_status status = tokmap_loader_next(l, b, &err);
    if (!status && gather)
        status = tokmap_batch_gather(b, gather, &err);
    return report_status(status, &err);
}

double load_data_steps_ns(tokmap_loader *l, uint64_t n_steps, const tokmap_gather_options *gather)
{
    tokmap_batch b = {.struct_size = sizeof b};
    int code = 0;
    uint64_t n_rows = 0;
    uintptr_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_steps && !code; i++) {
        code = load_data_next(l, &b, gather);
        for (uint32_t k = 0; k < b.n_rows && !gather && !code; k++)
            sum += (uintptr_t)b.rows[k].tokens;
        n_rows += b.n_rows;
    }
    const double ns = (double)(tokmap_i_now_ns() - start);
    return code || sum == 1 ? -1 : ns / (double)n_rows;
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
