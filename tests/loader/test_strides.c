/* SPDX-License-Identifier: Apache-2.0 */
/* test_strides - elements of arrays of a caller whose header is older or newer than the library:
 * they begin as far apart as the caller says, and bytes that the library does not know are 0. */
#include "support/loader_corpus.h"

enum {
    LENGTH = 16,
    ROWS = 5,
    MORE = 24 /* bytes that a newer header might have */
};

/* A newer header has more behind each of them; an older one may have less. */
typedef struct newer_source {
    tokmap_loader_source known;
    uint8_t more[MORE];
} newer_source;

typedef struct newer_phase {
    tokmap_loader_phase known;
    uint8_t more[MORE];
} newer_phase;

typedef struct newer_row {
    tokmap_row known;
    uint8_t more[MORE];
} newer_row;

typedef struct older_source {
    tokmap_dataset *const *datasets;
    uint32_t n_datasets;
    int32_t masked;
    double weight;
} older_source;

typedef struct older_row {
    const void *tokens;
    uint32_t n_tokens, token_bytes, source, dataset;
    uint64_t epoch, window, first_token;
} older_row;

static corpus_shape narrow = {.name = "narrow", .n_tokens = 3000, .token_bytes = 2},
                    wide = {.name = "wide", .n_tokens = 1777, .first_id = 100000, .token_bytes = 4};
static tokmap_dataset *lists[2];
static const double later[] = {1, 3, 2};
static tokmap_loader_source sources[3];
static tokmap_loader_phase phases[2];
static newer_source newer_sources[3];
static newer_phase newer_phases[2];
static older_source older_sources[3];

static tokmap_loader_options open_corpus(void)
{
    corpus_cut(&narrow, 20);
    corpus_cut(&wide, 20);
    corpus_shape_open(&narrow);
    corpus_shape_open(&wide);
    lists[0] = narrow.ds;
    lists[1] = wide.ds;
    memset(newer_sources, 0, sizeof newer_sources);
    memset(newer_phases, 0, sizeof newer_phases);
    for (int k = 0; k < 3; k++) {
        sources[k] = (tokmap_loader_source){
            .datasets = &lists[k % 2], .n_datasets = 1, .weight = k + 1, .masked = k == 2};
        newer_sources[k].known = sources[k];
        older_sources[k] = (older_source){&lists[k % 2], 1, k == 2, k + 1};
    }
    for (uint64_t i = 0; i < 2; i++)
        newer_phases[i].known = phases[i] = (tokmap_loader_phase){20 * (i + 1), later};
    return (tokmap_loader_options){LOADER_SIZES,       .sources = sources,
                                   .n_sources = 3,     .phases = phases,
                                   .n_phases = 2,      .sequence_length = LENGTH,
                                   .batch_rows = ROWS, .row_parts = TOKMAP_ROW_LOSS_MASK};
}

static void close_corpus(void)
{
    corpus_shape_close(&narrow);
    corpus_shape_close(&wide);
}

static void gather(const tokmap_batch *b, int32_t mask_labels, int32_t *inputs, int32_t *labels)
{
    const tokmap_gather_options o = {.struct_size = sizeof o,
                                     .format = TOKMAP_GATHER_I32,
                                     .mask_labels = mask_labels,
                                     .inputs = inputs,
                                     .labels = labels};
    tokmap_error err;
    CHECK_OK(tokmap_batch_gather(b, &o, &err), err);
}

/* Both loaders give the same rows; the second knows only the first n_bytes of each. */
static void check_same(const tokmap_loader_options *a, const tokmap_loader_options *b)
{
    static int32_t inputs[2][ROWS * LENGTH], labels[2][ROWS * LENGTH];
    const size_t n_bytes = b->row_stride < sizeof(tokmap_row) ? b->row_stride : sizeof(tokmap_row);
    tokmap_loader *loaders[] = {corpus_open_loader(a), corpus_open_loader(b)};
    const int32_t has_masks = n_bytes == sizeof(tokmap_row);
    for (int step = 0; step < 20; step++) {
        tokmap_batch batch[2] = {TOKMAP_INIT(tokmap_batch), TOKMAP_INIT(tokmap_batch)};
        for (int i = 0; i < 2; i++) {
            batch[i] = corpus_next(loaders[i]);
            gather(&batch[i], has_masks, inputs[i], labels[i]);
        }
        CHECK_EQ(batch[1].row_stride, b->row_stride);
        CHECK(memcmp(inputs[0], inputs[1], sizeof inputs[0]) == 0);
        CHECK(memcmp(labels[0], labels[1], sizeof labels[0]) == 0);
        for (uint32_t r = 0; r < ROWS; r++) {
            const uint8_t *row = (const uint8_t *)batch[1].rows + (size_t)r * b->row_stride;
            older_row mine;
            memcpy(&mine, row, sizeof mine);
            CHECK_EQ(mine.first_token, batch[0].rows[r].first_token);
            CHECK_EQ(mine.source, batch[0].rows[r].source);
            for (size_t i = n_bytes; i < b->row_stride; i++)
                CHECK_INT(row[i], 0);
        }
    }
    for (int i = 0; i < 2; i++)
        tokmap_loader_close(loaders[i]);
}

TEST(a_caller_without_macros_gets_the_same_options)
{
    tokmap_loader_options o, wanted = TOKMAP_LOADER_OPTIONS_INIT;
    memset(&o, 0xaa, sizeof o);
    tokmap_loader_options_init(&o, sizeof o);
    CHECK(memcmp(&o, &wanted, sizeof o) == 0);
    memset(&o, 0xaa, sizeof o);
    tokmap_loader_options_init(&o, offsetof(tokmap_loader_options, seed));
    CHECK_EQ(o.struct_size, offsetof(tokmap_loader_options, seed));
    CHECK_EQ(o.source_stride, sizeof(tokmap_loader_source));
    CHECK_EQ(o.seed, 0xaaaaaaaaaaaaaaaa);
}

TEST(arrays_of_a_newer_caller_give_the_same_rows)
{
    const tokmap_loader_options known = open_corpus();
    tokmap_loader_options o = known;
    o.sources = &newer_sources[0].known;
    o.source_stride = sizeof(newer_source);
    o.phases = &newer_phases[0].known;
    o.phase_stride = sizeof(newer_phase);
    o.row_stride = sizeof(newer_row);
    check_same(&known, &o);
    close_corpus();
}

TEST(arrays_of_an_older_caller_give_the_same_rows)
{
    const tokmap_loader_options known = open_corpus();
    tokmap_loader_options o = known;
    o.sources = (const tokmap_loader_source *)(const void *)older_sources;
    o.source_stride = sizeof(older_source);
    o.row_stride = sizeof(older_row);
    check_same(&known, &o);
    close_corpus();
}

static void refused(const tokmap_loader_options *o, const char *why)
{
    tokmap_loader *l = (tokmap_loader *)o;
    tokmap_error err;
    CHECK_INT(tokmap_loader_open(&l, o, &err), TOKMAP_ERR_ARGUMENT);
    if (!strstr(err.text, why) || l)
        CHECK_FAIL("'%s' does not say '%s'", err.text, why);
}

TEST(what_the_library_does_not_know_of_an_element_is_refused)
{
    tokmap_loader_options o = open_corpus();
    o.sources = &newer_sources[0].known;
    o.source_stride = sizeof(newer_source);
    o.phases = &newer_phases[0].known;
    o.phase_stride = sizeof(newer_phase);
    for (int i = 0; i < MORE; i++) {
        newer_sources[2].more[i] = 1;
        refused(&o, "tokmap_loader_source: sets a field");
        newer_sources[2].more[i] = 0;
        newer_phases[1].more[i] = 1;
        refused(&o, "tokmap_loader_phase: sets a field");
        newer_phases[1].more[i] = 0;
    }
    tokmap_loader_close(corpus_open_loader(&o));
    close_corpus();
}

TEST(a_stride_that_is_not_set_is_refused)
{
    static const uint32_t strides[] = {0, 8, 5000, UINT32_MAX};
    const tokmap_loader_options known = open_corpus();
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        tokmap_loader_options o = known;
        o.source_stride = strides[i];
        refused(&o, "set it to sizeof(tokmap_loader_source)");
        o = known;
        o.phase_stride = strides[i];
        refused(&o, "set it to sizeof(tokmap_loader_phase)");
        o = known;
        o.row_stride = strides[i];
        refused(&o, "set it to sizeof(tokmap_row)");
    }
    tokmap_loader_options o = known;
    o.n_phases = o.phase_stride = 0; /* no phases, no stride */
    tokmap_loader_close(corpus_open_loader(&o));
    close_corpus();
}

/* A byte that the compiler puts behind the last field would be a field that nobody checks. */
TEST(no_element_ends_with_padding)
{
#define ENDS_AT(type, last) (offsetof(type, last) + sizeof((type *)0)->last)
    CHECK_EQ(ENDS_AT(tokmap_loader_source, train_roles), sizeof(tokmap_loader_source));
    CHECK_EQ(ENDS_AT(tokmap_loader_phase, weights), sizeof(tokmap_loader_phase));
    CHECK_EQ(ENDS_AT(tokmap_row, n_pieces), sizeof(tokmap_row));
}
