/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c - lists of documents and of windows: opening a loader with lists of a hundred million
 * documents, finding the documents of a row, and rows of a list, which are in several places,
 * compared with rows in one place. */
#include <stdlib.h>

#include "base/base.h"
#include "base/le.h"
#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 11,
    MEAN_LENGTH = 100,
    FEWEST = 1000, /* documents */
    FEW = 2000000
};

/* ---- Many documents ---- */

/* Rows of 11 documents and of 82; and a loader that is opened with a list of windows. */
enum {
    SHORT,
    LONG,
    OPENED,
    N_KINDS
};
static const uint32_t lengths[N_KINDS] = {10 * MEAN_LENGTH, 81 * MEAN_LENGTH, 417};

/* All documents of a dataset in random order, and where the windows of each length begin. */
typedef struct listed {
    tokmap_dataset *ds;
    uint64_t n_documents;
    uint8_t *documents, *windows, *starts[N_KINDS]; /* of 4 bytes */
    uint64_t n_windows[N_KINDS];
} listed;

/* Fills in the numbers below n in random order. */
static uint8_t *shuffled(uint64_t n)
{
    uint8_t *numbers = bench_memory(4 * n);
    uint64_t seed = 1;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t k = bench_random(&seed) % (i + 1);
        le_put32(numbers + 4 * i, le_get32(numbers + 4 * k));
        le_put32(numbers + 4 * k, (uint32_t)i);
    }
    return numbers;
}

static void add_starts(listed *l, uint64_t place, uint64_t begin, uint64_t end, uint64_t *n)
{
    for (int k = 0; k < N_KINDS; k++)
        for (; n[k] < l->n_windows[k] && n[k] * lengths[k] < end; n[k]++) {
            le_put32(l->starts[k] + 8 * n[k], (uint32_t)place);
            le_put32(l->starts[k] + 8 * n[k] + 4, (uint32_t)(n[k] * lengths[k] - begin));
        }
}

static void make_list(listed *l)
{
    const uint64_t n_tokens = l->n_documents * MEAN_LENGTH;
    uint64_t n[N_KINDS] = {0}, end = 0;
    l->documents = shuffled(l->n_documents);
    for (int k = 0; k < N_KINDS; k++) {
        l->n_windows[k] = (n_tokens - 1) / lengths[k];
        l->starts[k] = bench_memory(8 * l->n_windows[k]);
    }
    l->windows = shuffled(l->n_windows[OPENED]);
    for (uint64_t place = 0; place < l->n_documents; place++) {
        tokmap_document d;
        if (tokmap_dataset_document(l->ds, le_get32(l->documents + 4 * place), &d))
            bench_fail("a document could not be looked up");
        add_starts(l, place, end, end + d.n_tokens, n);
        end += d.n_tokens;
    }
}

static void free_list(listed *l)
{
    for (int k = 0; k < N_KINDS; k++)
        free(l->starts[k]);
    free(l->documents);
    free(l->windows);
}

static tokmap_loader *open_kind(const listed *l, int kind)
{
    const tokmap_document_list list = {.documents = l->documents,
                                       .n_documents = l->n_documents,
                                       .starts = l->starts[kind],
                                       .n_windows = l->n_windows[kind],
                                       .document_bytes = 4,
                                       .start_bytes = 4};
    tokmap_loader_source source = {
        .datasets = &l->ds, .n_datasets = 1, .document_lists = &list, .weight = 1};
    if (kind == OPENED) {
        source.window_list = l->windows;
        source.n_window_list = l->n_windows[kind];
        source.window_list_bytes = 4;
    }
    return load_data_loader((tokmap_loader_options){.sources = &source,
                                                    .n_sources = 1,
                                                    .sequence_length = lengths[kind],
                                                    .batch_rows = 1,
                                                    .io = TOKMAP_IO_MAP});
}

/* Measures the time to open the loader, and its memory. */
static void measure_open(const listed *l, bench_row *const *rows)
{
    tokmap_loader_info info = {.struct_size = sizeof info};
    const uint64_t start = tokmap_i_now_ns();
    tokmap_loader *loader = open_kind(l, OPENED);
    bench_add_value(rows[0], bench_ns_since(start) / 1e6);
    tokmap_loader_get_info(loader, &info);
    bench_add_value(rows[1], (double)info.resident_bytes / 1e6);
    tokmap_loader_close(loader);
}

static void measure_many(const bench_options *options, bench_report *report, uint64_t n,
                         const double *most_ns)
{
    static const char *const figures[N_KINDS + 1][2] = {
        {"row of 11 documents", "ns"}, {"row of 82", "ns"}, {"opened", "ms"}, {"its memory", "MB"}};
    listed l = {.n_documents = n};
    bench_row *rows[N_KINDS + 1];
    tokmap_loader *loaders[OPENED];
    load_data_make_sparse(options, 0, n * MEAN_LENGTH, n);
    load_data_open_made(options, 0, &l.ds, 1);
    make_list(&l);
    for (int i = 0; i <= N_KINDS; i++)
        rows[i] = bench_add_cell(report, figures[i], "a list of %.0e documents", (double)n);
    for (int k = 0; k < OPENED; k++)
        loaders[k] = open_kind(&l, k);
    for (uint32_t i = 0; i < N_KINDS * bench_rounds(options, ROUNDS); i++) {
        const uint32_t k = i % N_KINDS;
        if (k == OPENED)
            measure_open(&l, &rows[OPENED]);
        else
            bench_add_value(rows[k], load_data_locate_ns(loaders[k], 0, 2 * i + 1, UINT64_MAX));
    }
    for (int k = 0; k < OPENED; k++) {
        bench_set_goal(rows[k], BENCH_AT_MOST, most_ns[k]);
        tokmap_loader_close(loaders[k]);
    }
    bench_set_goal(rows[OPENED], BENCH_AT_MOST, 300);
    if (4 * n >= (uint64_t)64 << 20) /* smaller lists are copied */
        bench_set_goal(rows[OPENED + 1], BENCH_AT_MOST, 2);
    free_list(&l);
    load_data_close_made(&l.ds, 1);
}

/* ---- Rows ---- */

static void measure_rows(const bench_options *options, bench_report *report)
{
    static const char *const names[] = {"rows of a list", "9 or 10 places", "rows without a list"};
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    uint8_t *documents = shuffled(data.info.n_documents);
    const tokmap_document_list list = {
        .documents = documents, .n_documents = data.info.n_documents, .document_bytes = 4};
    load_data_compare_places(options, report, &data,
                             &(tokmap_loader_source){.document_lists = &list}, names);
    free(documents);
    load_data_close(&data);
}

void bench_lists(const bench_options *options, bench_report *report)
{
    static const double of_few[] = {1000, 4000}, of_many[] = {2000, 12000};
    const uint64_t n = MAX(options->n_documents ? options->n_documents : 100000000, FEWEST);
    const uint64_t n_few = MAX(MIN(FEW, n / 50), FEWEST);
    if (n_few < n)
        measure_many(options, report, n_few, of_few);
    measure_many(options, report, n, of_many);
    measure_rows(options, report);
}
