/* SPDX-License-Identifier: Apache-2.0 */
/* mix.c - the cost of mixing sources: a sample, a sample at any position, opening and memory, with
 * 1 to 64 sources, with a limit on their epochs, and with weights that change eight times. */
#include "pages/pages.h"

enum {
    ROUNDS = 11,
    LENGTH = 4096,
    STEPS = 20000,
    MAX_SOURCES = 64,
    N_PHASES = 8,
    EPOCHS = 1000, /* the limit of a source: more than is read here */
    SAMPLES = 1 << 27,
    N_FIGURES = 4
};
static const uint64_t source_tokens = 1000000000;

typedef enum variant {
    PLAIN,
    CAPPED,
    PHASED
} variant;

static const struct {
    uint32_t n_sources;
    variant variant;
} mixtures[] = {{1, PLAIN},  {2, PLAIN},   {8, PLAIN},  {64, PLAIN}, {2, CAPPED},
                {8, CAPPED}, {64, CAPPED}, {2, PHASED}, {8, PHASED}, {64, PHASED}};
enum {
    N_MIXTURES = sizeof mixtures / sizeof *mixtures
};
static const char *const variant_names[] = {"plain", "capped", "staged"};

/* All sources have the same data; to the loader they are different copies. */
typedef struct mix {
    tokmap_dataset *ds;
    uint64_t seed;
    tokmap_loader_source sources[MAX_SOURCES];
    double weights[N_PHASES][MAX_SOURCES];
    tokmap_loader_phase phases[N_PHASES];
} mix;

static tokmap_loader *open_mixture(mix *m, uint32_t n_sources, variant v)
{
    for (uint32_t k = 0; k < n_sources; k++)
        m->sources[k] = (tokmap_loader_source){.datasets = &m->ds,
                                               .n_datasets = 1,
                                               .weight = 1 + k * 7 % 13,
                                               .max_epochs = v == CAPPED ? EPOCHS : 0};
    for (uint32_t i = 0; i < N_PHASES; i++) {
        for (uint32_t k = 0; k < n_sources; k++)
            m->weights[i][k] = 1 + (k + i) * 5 % 11;
        m->phases[i] =
            (tokmap_loader_phase){(i + 1) * (uint64_t)(SAMPLES / (N_PHASES + 1)), m->weights[i]};
    }
    const tokmap_loader_options options = {.sources = m->sources,
                                           .n_sources = n_sources,
                                           .phases = m->phases,
                                           .n_phases = v == PHASED ? N_PHASES : 0,
                                           .sequence_length = LENGTH,
                                           .io = TOKMAP_IO_MAP};
    return load_data_loader(options);
}

static void measure_mixture(mix *m, uint32_t i, bench_row *const *rows)
{
    tokmap_loader_info info = {.struct_size = sizeof info};
    const uint64_t start = tokmap_i_now_ns();
    tokmap_loader *l = open_mixture(m, mixtures[i].n_sources, mixtures[i].variant);
    const double opened = bench_ns_since(start) / 1e3;
    bench_check(tokmap_loader_seek(l, bench_random(&m->seed) % SAMPLES, &bench_error));
    bench_add_value(rows[0], load_data_steps_ns(l, STEPS, NULL));
    bench_add_value(rows[1], load_data_locate_ns(l, 0, bench_random(&m->seed) | 1, SAMPLES - 1));
    tokmap_loader_get_info(l, &info);
    tokmap_loader_close(l);
    bench_add_value(rows[2], opened);
    bench_add_value(rows[3], (double)info.resident_bytes / 1024);
}

void bench_mix(const bench_options *options, bench_report *report)
{
    static const char *const figures[N_FIGURES][2] = {
        {"sample", "ns"}, {"locate", "ns"}, {"open", "us"}, {"memory", "KiB"}};
    static mix m = {.seed = 1};
    bench_row *rows[N_MIXTURES][N_FIGURES];
    load_data_make_sparse(options, 0, source_tokens, source_tokens / 100000);
    load_data_open_made(options, 0, &m.ds, 1);
    for (int i = 0; i < N_MIXTURES * N_FIGURES; i++) {
        const int k = i % N_FIGURES;
        const uint32_t n = mixtures[i / N_FIGURES].n_sources;
        bench_row *row = bench_add_cell(report, figures[k], "%u source%s, %s", n, n > 1 ? "s" : "",
                                        variant_names[mixtures[i / N_FIGURES].variant]);
        bench_set_group(row, "", "mixture: %s", figures[k][0]);
        bench_set_x(row, n, "sources");
        rows[i / N_FIGURES][k] = row;
    }
    for (uint32_t i = 0; i < bench_rounds(options, ROUNDS) * N_MIXTURES; i++)
        measure_mixture(&m, i % N_MIXTURES, rows[i % N_MIXTURES]);
    for (int k = 1; k < N_MIXTURES; k++) /* compared with one source */
        bench_set_limit(rows[k][0], rows[0][0], 1);
    load_data_close_made(&m.ds, 1);
}
