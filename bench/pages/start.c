/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - starting, seeking, and resuming after a restart, from a million tokens to ten million
 * million, and with 10,000 joined token files; and the memory it takes. The tokens are holes in
 * files: this measures the cost of the size of the data, not of reading it. Then the loader over
 * 100 joined token files in memory, compared with one file of as many tokens. */
#include <malloc.h>
#include <stdlib.h>

#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 11,
    ROUNDS_OF_JOINED = 101,
    LENGTH = 4096,
    MAX_DATASETS = 10,
    MANY_FILES = 10000,
    MANY_TOKENS = 16000, /* tokens in each of these */
    N_FILES = 100,
    N_WAYS = 2
};

/* The numbers of the datasets. */
enum {
    ONE_OF_TEN = 6, /* and the nine after it */
    N_SPARSE = ONE_OF_TEN + MAX_DATASETS,
    FLAT = N_SPARSE,
    JOINED,
    FIRST_PART
};
static const struct {
    const char *name;
    uint64_t n_tokens; /* tokens of a dataset */
    uint32_t first, n_datasets;
} sizes[] = {
    {"10^6 tokens", 1000000, 0, 1},
    {"10^7 tokens", 10000000, 1, 1},
    {"10^8 tokens", 100000000, 2, 1},
    {"10^9 tokens", 1000000000, 3, 1},
    {"10^10 tokens", 10000000000, 4, 1},
    {"10^11 tokens", 100000000000, 5, 1},
    {"10^12 tokens", 1000000000000, ONE_OF_TEN, 1},
    {"10^13 tokens", 1000000000000, ONE_OF_TEN, MAX_DATASETS}, /* a file cannot be larger */
    {"10,000 files", MANY_TOKENS, JOINED, 1}};
enum {
    MANY = sizeof sizes / sizeof *sizes - 1, /* the last of these */
    N_SIZES
};

/* The figures of each size, and the charts that show them. */
enum {
    OPEN,
    START,
    SEEK,
    RESTORE,
    MEMORY,
    RESIDENT,
    N_OF_WAY,
    PLAIN = N_OF_WAY, /* or joining the files: not of a way of reading */
    LOCATE,
    N_CELLS
};
static const char *const cells[N_CELLS][3] = {{"open", "us", "opening"},
                                              {"start", "us", "opening, and the first batch"},
                                              {"seek", "us", "going to a sample, and its batch"},
                                              {"restore", "us", "restoring, and the next batch"},
                                              {"memory", "KiB", "memory of the loader"},
                                              {"RSS", "KiB", "memory of the process for it"},
                                              {"plain open", "us", "plain open and map"},
                                              {"locate", "ns", "locate, one sample"}};
static const char *const join_cell[] = {"join", "s"};
static const char *const loader_cells[][2] = {
    {"flat", "ns"}, {"joined", "ns"}, {"flat", "GB/s"}, {"joined", "GB/s"}};
static const tokmap_io ways[N_WAYS] = {TOKMAP_IO_MAP, TOKMAP_IO_DIRECT};

typedef bench_row *way_rows[N_CELLS];

typedef struct subject {
    const bench_options *options;
    uint8_t *buffer; /* a batch */
    uint64_t seed;
} subject;

/* ---- Data ---- */

static void join_parts(const bench_options *options, uint32_t n_parts)
{
    const tokmap_writer_options o = load_data_writer_options();
    tokmap_writer *w;
    bench_check(tokmap_writer_open_joined(&w, load_data_name(options, JOINED).s, &o, &bench_error));
    for (uint32_t i = 0; i < n_parts; i++) {
        const path_text prefix = load_data_name(options, FIRST_PART + i);
        tokmap_dataset *part;
        bench_check(tokmap_dataset_open_index(&part, prefix.s, &bench_error));
        bench_check(tokmap_writer_join(w, part, NULL, &bench_error));
        tokmap_dataset_close(part);
    }
    load_data_finish(w);
}

/* Makes the sparse datasets. The joined files have the same index, which is flushed to the disk
 * only once. */
static void make_sparse(const bench_options *options)
{
    for (uint32_t i = 0; i < N_SPARSE; i++) {
        const uint64_t n = sizes[i < ONE_OF_TEN ? i : ONE_OF_TEN].n_tokens;
        load_data_make_sparse(options, i, n, n / 100000);
    }
    load_data_make_sparse(options, FIRST_PART, MANY_TOKENS, MANY_TOKENS / 1000);
    for (uint32_t i = 1; i < MANY_FILES; i++)
        load_data_copy_sparse(options, FIRST_PART, FIRST_PART + i, MANY_TOKENS);
}

/* ---- Starting ---- */

static void measure_way(subject *s, int size, int way, bench_row *const *r)
{
    tokmap_dataset *datasets[MAX_DATASETS];
    const tokmap_loader_options options = {
        .sequence_length = LENGTH, .io = ways[way], .seed = bench_random(&s->seed)};
    const tokmap_gather_options gather = {
        .struct_size = sizeof gather, .format = TOKMAP_GATHER_TOKENS, .inputs = s->buffer};
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_loader_info info = {.struct_size = sizeof info};
    uint8_t state[TOKMAP_STATE_BYTES];
    const uint32_t n = sizes[size].n_datasets;
#ifdef __GLIBC__
    malloc_trim(0); /* so that memory of earlier measurements is not reused for free */
#endif
    const double before = bench_system_number("/proc/self/status", "RssAnon:");
    uint64_t begun = tokmap_i_now_ns();
    load_data_open_made(s->options, sizes[size].first, datasets, n);
    tokmap_loader *l = load_data_one_source(datasets, n, options);
    bench_add_value(r[OPEN], bench_ns_since(begun) / 1e3);
    /* This alone touches no tokens; the tokens of joined files are gathered too. */
    load_data_next(l, &b, size == MANY ? &gather : NULL);
    bench_add_value(r[START], bench_ns_since(begun) / 1e3);
    begun = tokmap_i_now_ns();
    bench_check(tokmap_loader_seek(l, bench_random(&s->seed) >> 16, &bench_error));
    bench_check(tokmap_loader_save(l, state, &bench_error));
    load_data_next(l, &b, NULL);
    bench_add_value(r[SEEK], bench_ns_since(begun) / 1e3);
    bench_check(tokmap_loader_seek(l, bench_random(&s->seed) >> 16, &bench_error));
    begun = tokmap_i_now_ns();
    bench_check(tokmap_loader_restore(l, state, &bench_error));
    load_data_next(l, &b, NULL);
    bench_add_value(r[RESTORE], bench_ns_since(begun) / 1e3);
    tokmap_loader_get_info(l, &info);
    bench_add_value(r[MEMORY], (double)info.resident_bytes / 1024);
    if (r[LOCATE])
        bench_add_value(r[LOCATE],
                        load_data_locate_ns(l, bench_random(&s->seed) >> 16, 1, UINT64_MAX));
    bench_add_value(r[RESIDENT], bench_system_number("/proc/self/status", "RssAnon:") - before);
    tokmap_loader_close(l);
    load_data_close_made(datasets, n);
}

/* Measures one size. The files are joined in each round, so that the dataset is new when it is
 * opened. */
static void measure_size(subject *s, int size, way_rows *rows)
{
    double ns = 0;
    uint64_t begun = tokmap_i_now_ns();
    if (size == MANY) {
        join_parts(s->options, MANY_FILES);
        ns = bench_ns_since(begun) / 1e6; /* in s, and not in us */
    }
    for (uint32_t i = 0; size < MANY && i < sizes[size].n_datasets; i++) {
        size_t index_bytes, token_bytes;
        const path_text prefix = load_data_name(s->options, sizes[size].first + i);
        begun = tokmap_i_now_ns();
        const uint8_t *index = load_data_map(prefix.s, ".tmi", &index_bytes);
        const uint8_t *tokens = load_data_map(prefix.s, ".bin", &token_bytes);
        bench_keep(*(const volatile uint8_t *)index);
        ns += bench_ns_since(begun);
        tokmap_i_unmap(index, index_bytes);
        tokmap_i_unmap(tokens, token_bytes);
    }
    bench_add_value(rows[0][PLAIN], ns / 1e3);
    for (int w = 0; w < N_WAYS; w++)
        if (rows[w][OPEN])
            measure_way(s, size, w, rows[w]);
}

/* Adds the cells of a way, or, if `way` is N_WAYS, the ones that are the same for all ways. */
static void add_cells(bench_report *report, int way, int size, bench_row **rows)
{
    const bool of_way = way < N_WAYS, joining = size == MANY && !of_way;
    for (int i = of_way ? 0 : N_OF_WAY; i < (of_way ? N_OF_WAY : N_CELLS); i++) {
        rows[i] = bench_add_cell(report, joining && i == PLAIN ? join_cell : cells[i], "%s%s%s",
                                 of_way ? load_data_ways[ways[way]] : "", of_way ? ", " : "",
                                 sizes[size].name);
        if (size < MANY) {
            bench_set_group(rows[i], "", "%s", cells[i][2]);
            bench_set_x(rows[i], (double)sizes[size].n_tokens * sizes[size].n_datasets, "tokens");
        }
        if (i < MEMORY)
            bench_set_goal(rows[i], BENCH_AT_MOST, size == MANY && i > OPEN ? 100000 : 10000);
    }
    if (joining)
        bench_set_goal(rows[PLAIN], BENCH_AT_MOST, 10);
}

static void measure_starts(subject *s, bench_report *report)
{
    tokmap_dataset *ds;
    const uint32_t n_rounds = bench_rounds(s->options, ROUNDS);
    way_rows rows[N_SIZES][N_WAYS] = {{{NULL}}};
    make_sparse(s->options);
    load_data_open_made(s->options, 0, &ds, 1);
    for (int w = 0; w < N_WAYS; w++) {
        const bool works = load_data_works(ds, ways[w]);
        for (int i = 0; i < N_SIZES && works; i++)
            add_cells(report, w, i, rows[i][w]);
    }
    load_data_close_made(&ds, 1);
    for (int i = 0; i < N_SIZES; i++)
        add_cells(report, N_WAYS, i, rows[i][0]);
    for (uint32_t i = 0; i < MANY * n_rounds; i++)
        measure_size(s, i % MANY, rows[i % MANY]);
    for (uint32_t i = 0; i < n_rounds; i++)
        measure_size(s, MANY, rows[MANY]);
    for (int i = 0; i < MANY * N_WAYS; i++)
        if (rows[i / N_WAYS][i % N_WAYS][OPEN])
            bench_set_limit(rows[i / N_WAYS][i % N_WAYS][OPEN], rows[i / N_WAYS][0][PLAIN], 1);
    bench_set_goal(bench_add_ratio(report, rows[ONE_OF_TEN][0][OPEN], rows[0][0][OPEN],
                                   "open, 10^12 tokens against 10^6"),
                   BENCH_AT_MOST, 1.5);
}

/* ---- Joined against flat ---- */

/* Compares the flat dataset with the joined one: samples, then batches. The loaders stay open, so
 * that both continue where they were. Each file has whole rows, and is in memory in large pages
 * where the file system has them: else rows would begin at other places of a page, and in smaller
 * pages, than those of the flat dataset. */
static void compare_loaders(const subject *s, bench_report *report, uint32_t length,
                            tokmap_dataset *const *ds)
{
    const tokmap_loader_options options = {.sequence_length = length, .io = TOKMAP_IO_MAP};
    const tokmap_gather_options gather = {
        .struct_size = sizeof gather, .format = TOKMAP_GATHER_TOKENS, .inputs = s->buffer};
    const uint64_t n_steps = (16 << 20) / 2 / length / LOAD_DATA_ROWS;
    tokmap_loader *const loaders[] = {load_data_one_source(&ds[0], 1, options),
                                      load_data_one_source(&ds[1], 1, options)};
    bench_row *rows[4];
    for (uint32_t i = 0; i < 4; i++)
        rows[i] = bench_add_cell(report, loader_cells[i], "%s, %u tokens",
                                 i < 2 ? "zero-copy sample" : "batch gathered", length);
    for (uint32_t i = 0; i < 4 * bench_rounds(s->options, ROUNDS_OF_JOINED); i++) {
        const uint32_t at = i % 4 ^ (i / 4 & 1);
        const double ns = load_data_steps_ns(loaders[at % 2], n_steps, at < 2 ? NULL : &gather);
        bench_add_value(rows[at], at < 2 ? ns : 2.0 * (length + 1) / ns);
    }
    for (uint32_t i = 0; i < 4; i += 2)
        bench_set_goal(
            bench_add_ratio(report, rows[i + 1], rows[i], "joined / flat, %s", rows[i]->line),
            i ? BENCH_AT_LEAST : BENCH_AT_MOST, i ? 0.95 : 1.05);
    tokmap_loader_close(loaders[0]);
    tokmap_loader_close(loaders[1]);
}

void bench_start(const bench_options *options, bench_report *report)
{
    subject s = {.options = options,
                 .buffer = bench_memory(LOAD_DATA_ROWS * 4 * (size_t)(LENGTH + 1)),
                 .seed = 1};
    tokmap_dataset *ds[2];
    const uint64_t mib = options->load_mib ? options->load_mib : LOAD_DATA_USUAL_MIB;
    const uint64_t n_tokens = (mib << 20) / 2 / N_FILES / LENGTH * LENGTH; /* of a file */
    measure_starts(&s, report);
    load_data_make_random(options, FLAT, N_FILES * n_tokens, LOAD_DATA_VOCABULARY);
    for (uint32_t i = 0; i < N_FILES; i++)
        load_data_make_random(options, FIRST_PART + i, n_tokens, LOAD_DATA_VOCABULARY);
    join_parts(options, N_FILES);
    load_data_read_large_pages(options, FLAT);
    for (uint32_t i = 0; i < N_FILES; i++)
        load_data_read_large_pages(options, FIRST_PART + i);
    load_data_open_made(options, FLAT, ds, 2);
    load_data_warm_up(ds[0]);
    load_data_warm_up(ds[1]);
    compare_loaders(&s, report, 1024, ds);
    compare_loaders(&s, report, LENGTH, ds);
    load_data_close_made(ds, 2);
    free(s.buffer);
}
