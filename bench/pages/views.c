/* SPDX-License-Identifier: Apache-2.0 */
/* views.c - writing views of a dataset with many documents, opening them, and rows of a view, which
 * are in several places, compared with rows of the whole dataset. */
#include <stdlib.h>

#include "pages/pages.h"
#include "system/platform.h"

enum {
    ROUNDS = 5,
    MEAN_LENGTH = 1000,
    AT_ONCE = 1 << 16, /* values that are given to a column */
    N_OPEN = 200
};

/* ---- Many documents: writing and opening ---- */

/* The columns: a value below `below`, over `parts`. */
static const struct {
    const char *name;
    uint32_t below;
    double parts; /* 0: integers */
} columns[] = {{"quality", 11, 2}, {"dup", 5, 0}, {"percent", 100, 0}, {"topic", 200, 0}};

/* The last column says how many bytes a document of the dataset may take. */
static const struct {
    const char *name, *where;
    double most_bytes;
} choices[] = {{"36% of the documents, by two columns", "quality >= 3 and dup < 4", 0.22},
               {"95% of the documents", "percent < 95", 0.37},
               {"one of 200 topics", "topic == 7", 0.02}};
enum {
    N_COLUMNS = sizeof columns / sizeof *columns,
    N_CHOICES = sizeof choices / sizeof *choices
};

static void add_column(const tokmap_dataset *ds, uint64_t n_documents, int i)
{
    const tokmap_column_options o = {.struct_size = sizeof o, .name = columns[i].name};
    tokmap_column_writer *w;
    uint64_t seed = 1 + (uint64_t)i;
    tokmap_value *values = bench_memory(AT_ONCE * sizeof *values);
    bench_check(tokmap_column_writer_open(&w, ds, &o, &bench_error));
    for (uint64_t first = 0; first < n_documents; first += AT_ONCE) {
        const uint64_t n = n_documents - first < AT_ONCE ? n_documents - first : AT_ONCE;
        for (uint64_t k = 0; k < n; k++) {
            const uint32_t value = (uint32_t)(bench_random(&seed) >> 32) % columns[i].below;
            values[k] =
                columns[i].parts > 0
                    ? (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = value / columns[i].parts}
                    : (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = value};
        }
        bench_check(tokmap_column_writer_put(w, first, values, n, &bench_error));
    }
    bench_check(tokmap_column_writer_finish(w, &bench_error));
    tokmap_column_writer_close(w);
    free(values);
}

static void measure_choice(const tokmap_dataset *ds, uint64_t n_documents, int i,
                           bench_row *const *rows)
{
    tokmap_view_options o = {.struct_size = sizeof o, .where = choices[i].where};
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    tokmap_view *views[N_OPEN];
    uint64_t start = tokmap_i_now_ns();
    bench_check(tokmap_view_write(ds, &o, &info, &bench_error));
    bench_add_value(rows[0], bench_ns_since(start) / 1e9);
    bench_add_value(rows[1], (double)info.n_bytes / (double)n_documents);
    start = tokmap_i_now_ns();
    for (int k = 0; k < N_OPEN; k++)
        bench_check(tokmap_view_open(&views[k], ds, &o, &bench_error));
    bench_add_value(rows[2], bench_ns_since(start) / 1e6);
    for (int k = 0; k < N_OPEN; k++)
        tokmap_view_close(views[k]);
}

static void measure_many(const bench_options *options, bench_report *report)
{
    static const char *const figures[3][2] = {
        {"written", "s"}, {"size", "bytes/document"}, {"200 opened", "ms"}};
    const uint64_t n = options->n_documents ? options->n_documents : 100000000;
    tokmap_dataset *ds;
    bench_row *rows[N_CHOICES][3];
    load_data_make_sparse(options, 0, n * MEAN_LENGTH, n);
    load_data_open_made(options, 0, &ds, 1);
    for (int i = 0; i < N_COLUMNS; i++)
        add_column(ds, n, i);
    for (int i = 0; i < 3 * N_CHOICES; i++)
        rows[i / 3][i % 3] = bench_add_cell(report, figures[i % 3], "%s", choices[i / 3].name);
    for (uint32_t i = 0; i < N_CHOICES * bench_rounds(options, ROUNDS); i++)
        measure_choice(ds, n, (int)i % N_CHOICES, rows[i % N_CHOICES]);
    for (int i = 0; i < N_CHOICES; i++) {
        bench_set_goal(rows[i][1], BENCH_AT_MOST, choices[i].most_bytes);
        bench_set_goal(rows[i][2], BENCH_AT_MOST, 100);
    }
    bench_set_goal(rows[0][0], BENCH_AT_MOST, 0.5);
    load_data_close_made(&ds, 1);
}

/* ---- Rows ---- */

static void measure_rows(const bench_options *options, bench_report *report)
{
    static const char *const names[] = {"rows of a view", "8 or 9 places", "rows in one place"};
    load_data data = load_data_open(options, LOAD_DATA_USUAL_MIB);
    uint8_t *keep = bench_memory((size_t)data.info.n_documents + 1);
    for (uint64_t d = 0; d < data.info.n_documents; d += 2)
        keep[d] = 1;
    const tokmap_view_options by_mask = {
        .struct_size = sizeof by_mask, .keep = keep, .n_keep = data.info.n_documents};
    tokmap_view *view;
    bench_check(tokmap_view_open(&view, data.ds, &by_mask, &bench_error));
    tokmap_view *const views[] = {view};
    load_data_compare_places(options, report, &data, &(tokmap_loader_source){.views = views},
                             names);
    tokmap_view_close(view);
    free(keep);
    load_data_close(&data);
}

void bench_views(const bench_options *options, bench_report *report)
{
    measure_many(options, report);
    measure_rows(options, report);
}
