/* SPDX-License-Identifier: Apache-2.0 */
#include "core/load_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "system/platform.h"

enum {
    DOCUMENT_TOKENS = 1000,
    AT_ONCE = 1 << 19,
    LOCATES = 200000,
    /* rows in several places */
    PLACES_ROUNDS = 11,
    PLACES_LENGTH = 8192,
    PLACES_ROWS = 8,
    PLACES_STEPS = 2000
};

path_text load_data_name(const bench_options *options, size_t i)
{
    path_text prefix;
    snprintf(prefix.s, sizeof prefix.s, "%s/load-%zu", options->dir, i);
    return prefix;
}

/* ---- Making and opening ---- */

tokmap_writer_options load_data_writer_options(void)
{
    tokmap_writer_options options = TOKMAP_INIT(tokmap_writer_options);
    options.vocab_size = LOAD_DATA_VOCABULARY;
    options.eod_id = TOKMAP_NO_ID;
    options.replace = 1;
    return options;
}

void load_data_finish(tokmap_writer *w)
{
    bench_check(tokmap_writer_finish(w, &bench_error));
    tokmap_writer_close(w);
}

void load_data_make_random(const bench_options *options, size_t i, uint64_t n_tokens,
                           uint32_t vocab_size)
{
    static uint32_t ids[DOCUMENT_TOKENS];
    tokmap_writer_options writer = load_data_writer_options();
    tokmap_writer *w;
    uint64_t seed = 1;
    writer.vocab_size = vocab_size;
    bench_check(tokmap_writer_open(&w, load_data_name(options, i).s, &writer, &bench_error));
    for (uint64_t n = 0, n_more; n < n_tokens; n += n_more) {
        n_more = MIN(n_tokens - n, DOCUMENT_TOKENS);
        for (uint64_t k = 0; k < n_more; k++)
            ids[k] = (uint32_t)(bench_random(&seed) % vocab_size);
        bench_check(tokmap_writer_append(w, ids, (size_t)n_more, &bench_error));
        bench_check(tokmap_writer_end_document(w, &bench_error));
    }
    load_data_finish(w);
}

static tokmap_dataset *open_dataset(const char *prefix)
{
    tokmap_dataset *ds;
    bench_check(tokmap_dataset_open(&ds, prefix, &bench_error));
    return ds;
}

void load_data_open_made(const bench_options *options, size_t first, tokmap_dataset **datasets,
                         size_t n_datasets)
{
    for (size_t i = 0; i < n_datasets; i++)
        datasets[i] = open_dataset(load_data_name(options, first + i).s);
}

void load_data_close_made(tokmap_dataset *const *datasets, size_t n_datasets)
{
    for (size_t i = 0; i < n_datasets; i++)
        tokmap_dataset_close(datasets[i]);
}

load_data load_data_open(const bench_options *options, uint64_t usual_mib)
{
    const path_text made = load_data_name(options, 0);
    const uint64_t n_bytes = (options->load_mib ? options->load_mib : usual_mib) << 20;
    load_data d;
    if (!options->data)
        load_data_make_random(options, 0, n_bytes / 2 / DOCUMENT_TOKENS * DOCUMENT_TOKENS,
                              LOAD_DATA_VOCABULARY);
    d.ds = open_dataset(options->data ? options->data : made.s);
    d.info = cli_dataset_info(d.ds);
    d.file = device_open(d.info.token_path);
    d.fits = d.info.token_file_bytes / (uint64_t)sysconf(_SC_PAGESIZE) <=
             (uint64_t)sysconf(_SC_PHYS_PAGES) / 2;
    d.is_trial = d.info.token_file_bytes < (uint64_t)64 << 20;
    return d;
}

void load_data_close(load_data *d)
{
    tokmap_i_file_close(d->file.fd);
    tokmap_i_file_close(d->file.direct_fd);
    load_data_close_made(&d->ds, 1);
}

void load_data_warm_up(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const void *token;
    uint8_t *buffer = bench_memory(4 * (size_t)AT_ONCE);
    for (uint64_t i = 0; i < info.n_tokens; i += AT_ONCE) {
        const uint64_t left = info.n_tokens - i;
        bench_check(
            tokmap_dataset_read(ds, i, left < AT_ONCE ? left : AT_ONCE, buffer, &bench_error));
    }
    for (uint64_t i = 0; i < info.n_tokens; i += 4096 / info.token_bytes)
        if (tokmap_dataset_tokens(ds, i, 1, &token) == TOKMAP_OK)
            bench_keep(*(const volatile uint8_t *)token);
    free(buffer);
}

const uint8_t *load_data_map(const char *prefix, const char *suffix, size_t *n_bytes)
{
    const path_text path = path_of(prefix, suffix);
    const void *map;
    tokmap_i_file_stat stat;
    const int fd = open(path.s, O_RDONLY | O_CLOEXEC);
    bench_check_errno(fd < 0 ? errno : 0, path.s);
    bench_check_errno(tokmap_i_file_stat_fd(fd, &stat), path.s);
    bench_check_errno(tokmap_i_map(fd, stat.n_bytes, &map), path.s);
    tokmap_i_file_close(fd);
    *n_bytes = stat.n_bytes;
    return map;
}

void load_data_read_large_pages(const bench_options *options, size_t i)
{
    size_t n_bytes;
    const uint8_t *map = load_data_map(load_data_name(options, i).s, ".bin", &n_bytes);
    if (madvise((void *)(uintptr_t)map, n_bytes, MADV_HUGEPAGE) == 0)
        (void)tokmap_i_map_populate(map, round_up(n_bytes, tokmap_i_page_bytes()));
    tokmap_i_unmap(map, n_bytes);
}

/* ---- Loaders ---- */

tokmap_loader *load_data_loader(tokmap_loader_options options)
{
    tokmap_loader *l;
    options.struct_size = sizeof options;
    options.source_stride = sizeof *options.sources;
    options.phase_stride = sizeof *options.phases;
    options.row_stride = sizeof(tokmap_row);
    options.batch_rows = options.batch_rows ? options.batch_rows : LOAD_DATA_ROWS;
    options.seed = options.seed ? options.seed : 1;
    bench_check(tokmap_loader_open(&l, &options, &bench_error));
    return l;
}

tokmap_loader *load_data_one_source(tokmap_dataset *const *datasets, size_t n_datasets,
                                    tokmap_loader_options options)
{
    const tokmap_loader_source source = {
        .datasets = datasets, .n_datasets = n_datasets, .weight = 1};
    options.sources = &source;
    options.n_sources = 1;
    return load_data_loader(options);
}

const char *const load_data_ways[] = {[TOKMAP_IO_MAP] = "map",
                                      [TOKMAP_IO_DIRECT] = "direct",
                                      [TOKMAP_IO_POPULATE] = "populate",
                                      [TOKMAP_IO_READ] = "read"};

bool load_data_works(tokmap_dataset *ds, tokmap_io io)
{
    const tokmap_loader_options options = {.sequence_length = 1, .batch_rows = 1, .io = io};
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader *l = load_data_one_source(&ds, 1, options);
    tokmap_loader_get_info(l, &info);
    tokmap_loader_close(l);
    if (info.io != io)
        cli_warn("reading by '%s' does not work here: left out", load_data_ways[io]);
    return info.io == io;
}

void load_data_next(tokmap_loader *l, tokmap_batch *b, const tokmap_gather_options *gather)
{
    bench_check(tokmap_loader_next(l, b, &bench_error));
    if (gather)
        bench_check(tokmap_batch_gather(b, gather, &bench_error));
}

double load_data_steps_ns(tokmap_loader *l, uint64_t n_steps, const tokmap_gather_options *gather)
{
    tokmap_batch b = {.struct_size = sizeof b};
    uint64_t n_rows = 0;
    uintptr_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < n_steps; i++) {
        load_data_next(l, &b, gather);
        for (uint32_t k = 0; k < b.n_rows && !gather; k++)
            sum += (uintptr_t)b.rows[k].tokens;
        n_rows += b.n_rows;
    }
    bench_keep(sum);
    return bench_ns_since(start) / (double)n_rows;
}

double load_data_locate_ns(tokmap_loader *l, uint64_t first, uint64_t step, uint64_t mask)
{
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    uint64_t sum = 0;
    const uint64_t start = tokmap_i_now_ns();
    for (uint64_t i = 0; i < LOCATES; i++) {
        bench_check(tokmap_loader_locate(l, first + (i * step & mask), &at, &bench_error));
        sum += at.first_token;
    }
    bench_keep(sum);
    return bench_ns_since(start) / LOCATES;
}

/* ---- Rows in several places ---- */

static tokmap_loader *open_rows(tokmap_dataset *ds, tokmap_loader_source source)
{
    source.datasets = &ds;
    source.n_datasets = 1;
    source.weight = 1;
    const tokmap_loader_options o = {.sources = &source,
                                     .n_sources = 1,
                                     .sequence_length = PLACES_LENGTH,
                                     .batch_rows = PLACES_ROWS,
                                     .view_pieces = 1,
                                     .io = TOKMAP_IO_MAP};
    return load_data_loader(o);
}

void load_data_compare_places(const bench_options *options, bench_report *report,
                              const load_data *data, const tokmap_loader_source *source,
                              const char *const *names)
{
    static const char *const figures[2][2] = {{"located", "ns"}, {"gathered", "ns"}};
    const size_t n_bytes = (size_t)PLACES_ROWS * PLACES_LENGTH * sizeof(int64_t);
    const uint64_t n_steps = data->is_trial ? 20 : PLACES_STEPS;
    const tokmap_gather_options gather = {.struct_size = sizeof gather,
                                          .format = TOKMAP_GATHER_I64,
                                          .inputs = bench_memory(n_bytes),
                                          .labels = bench_memory(n_bytes)};
    bench_row *rows[2][2];
    load_data_warm_up(data->ds);
    for (int i = 0; i < 2; i++) {
        rows[0][i] = bench_add_cell(report, figures[i], "%s, in %s", names[0], names[1]);
        rows[1][i] = bench_add_cell(report, figures[i], "%s", names[2]);
    }
    tokmap_loader *loaders[2] = {open_rows(data->ds, *source),
                                 open_rows(data->ds, (tokmap_loader_source){0})};
    for (uint32_t i = 0; i < 2 * bench_rounds(options, PLACES_ROUNDS); i++) {
        bench_add_value(rows[i % 2][0], load_data_locate_ns(loaders[i % 2], 0, 2 * i + 1, 4095));
        bench_add_value(rows[i % 2][1], load_data_steps_ns(loaders[i % 2], n_steps, &gather));
    }
    bench_set_goal(rows[0][0], BENCH_AT_MOST, 2000);
    bench_set_limit(rows[0][1], rows[1][1], 1);
    bench_row *ratio =
        bench_add_ratio(report, rows[1][1], rows[0][1], "gathered %s / %s", names[0], names[2]);
    bench_set_goal(ratio, BENCH_AT_LEAST, 0.7);
    for (int i = 0; i < 2; i++)
        tokmap_loader_close(loaders[i]);
    free(gather.inputs);
    free(gather.labels);
}
