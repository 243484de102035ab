/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_refusals - what a loader does not do, and says why: wrong options, data that do not
 * go together, states of others, the end, a fork. */
#include "base/le.h"
#include "base/hash.h"
#include "dataset/dataset.h"
#include "support/loader_corpus.h"
#include "support/must.h"

static corpus_shape narrow = {.name = "narrow", .n_tokens = 500, .token_bytes = 2};
static corpus_shape wide = {.name = "wide", .n_tokens = 300, .token_bytes = 4};
static corpus_shape borderless = {.name = "borderless", .n_tokens = 100, .token_bytes = 2};
static corpus_shape tiny = {.name = "tiny", .n_tokens = 3, .token_bytes = 2};

static tokmap_dataset *of_narrow[2];
static tokmap_loader_source sources[2];
static double weights[2];
static tokmap_loader_phase phases[2];
static tokmap_loader_skip skips[2];

static tokmap_loader_options good(void)
{
    of_narrow[0] = of_narrow[1] = narrow.ds;
    memset(sources, 0, sizeof sources);
    sources[0] = (tokmap_loader_source){.datasets = of_narrow, .n_datasets = 1, .weight = 1};
    sources[1] = sources[0];
    weights[0] = weights[1] = 1;
    phases[0] = (tokmap_loader_phase){10, weights};
    phases[1] = (tokmap_loader_phase){20, weights};
    skips[0] = (tokmap_loader_skip){100, 110};
    skips[1] = (tokmap_loader_skip){110, 120};
    return (tokmap_loader_options){LOADER_SIZES,     .sources = sources, .n_sources = 2,
                                   .phases = phases, .n_phases = 2,      .sequence_length = 16,
                                   .batch_rows = 4,  .n_ranks = 2,       .skips = skips};
}

static void open_all(void)
{
    corpus_shape *all[] = {&narrow, &wide, &tiny};
    for (int i = 0; i < 3; i++) {
        corpus_cut(all[i], 30);
        corpus_shape_open(all[i]);
    }
    corpus_shape_open(&borderless);
}

static void close_all(void)
{
    corpus_shape_close(&narrow);
    corpus_shape_close(&wide);
    corpus_shape_close(&tiny);
    corpus_shape_close(&borderless);
}

static void refused(const tokmap_loader_options *o, tokmap_status status, const char *why)
{
    tokmap_loader *l = (tokmap_loader *)&status;
    tokmap_error err = {0};
    CHECK_INT(tokmap_loader_open(&l, o, &err), status);
    CHECK(l == NULL);
    CHECK_INT(err.status, status);
    CHECK_SAYS(err.text, why);
}

/* ---- Options ---- */

#define REFUSED(change, status, why)                                                               \
    do {                                                                                           \
        tokmap_loader_options o = good();                                                          \
        change;                                                                                    \
        refused(&o, status, why);                                                                  \
    } while (0)

TEST(options_that_break_a_rule_are_refused)
{
    open_all();
    tokmap_loader_options fine = good();
    tokmap_loader_close(corpus_open_loader(&fine));
    REFUSED(o.struct_size = 0, TOKMAP_ERR_ARGUMENT, "struct_size");
    REFUSED(o.n_sources = 0, TOKMAP_ERR_ARGUMENT, "n_sources is 0");
    REFUSED(o.sources = NULL, TOKMAP_ERR_ARGUMENT, "sources is NULL");
    REFUSED(o.n_sources = 65536, TOKMAP_ERR_ARGUMENT, "n_sources is 65536");
    REFUSED(o.phases = NULL, TOKMAP_ERR_ARGUMENT, "phases is NULL");
    REFUSED(o.n_phases = 65535, TOKMAP_ERR_ARGUMENT, "n_phases is 65535");
    REFUSED(o.sequence_length = 0, TOKMAP_ERR_ARGUMENT, "sequence_length");
    REFUSED(o.sequence_length = (1 << 24) + 1, TOKMAP_ERR_ARGUMENT, "sequence_length");
    REFUSED(o.sequence_length = 1 << 24, TOKMAP_ERR_MISMATCH,
            "500 tokens are too few for sequence_length 16777216");
    REFUSED(o.batch_rows = 0, TOKMAP_ERR_ARGUMENT, "batch_rows");
    REFUSED(o.rank = 2, TOKMAP_ERR_ARGUMENT, "rank is 2 and n_ranks 2");
    REFUSED(o.shuffle = (tokmap_shuffle)3, TOKMAP_ERR_ARGUMENT, "shuffle is 3");
    REFUSED(o.block_windows = 1, TOKMAP_ERR_ARGUMENT, "block_windows");
    REFUSED((o.shuffle = TOKMAP_SHUFFLE_BLOCK, o.block_windows = (uint64_t)1 << 40,
             o.group_blocks = 1 << 24),
            TOKMAP_ERR_ARGUMENT, "2^48 windows");
    REFUSED((o.shuffle = TOKMAP_SHUFFLE_BLOCK, o.block_windows = (uint64_t)1 << 47),
            TOKMAP_ERR_ARGUMENT, "2^48 windows");
    REFUSED(o.io = (tokmap_io)6, TOKMAP_ERR_ARGUMENT, "io is 6");
    REFUSED(o.look_ahead = 1025, TOKMAP_ERR_ARGUMENT, "look_ahead");
    REFUSED(o.drop_behind = 2, TOKMAP_ERR_ARGUMENT, "drop_behind");
    REFUSED(o.windows = (tokmap_windows)3, TOKMAP_ERR_ARGUMENT, "windows is 3");
    REFUSED(o.align = 1, TOKMAP_ERR_ARGUMENT, "only for windows of the kind best fit");
    REFUSED((o.windows = TOKMAP_WINDOWS_BEST_FIT, o.align = 3), TOKMAP_ERR_ARGUMENT, "align is 3");
    REFUSED((o.windows = TOKMAP_WINDOWS_BEST_FIT, o.whole_documents = (tokmap_whole_documents)3),
            TOKMAP_ERR_ARGUMENT, "whole_documents is 3");
    REFUSED((o.windows = TOKMAP_WINDOWS_BEST_FIT, o.shuffle = TOKMAP_SHUFFLE_BLOCK,
             o.block_windows = 1),
            TOKMAP_ERR_ARGUMENT, "block_windows");
    REFUSED(o.random_offset = 2, TOKMAP_ERR_ARGUMENT, "random_offset is 2");
    REFUSED(o.view_pieces = 2, TOKMAP_ERR_ARGUMENT, "view_pieces is 2");
    REFUSED(sources[1].weight = -1, TOKMAP_ERR_ARGUMENT,
            "the weights from sample 0 on: source 1 has weight -1: must be at least 0");
    REFUSED((o.view_pieces = 1, o.cp_size = 2), TOKMAP_ERR_ARGUMENT, "view_pieces");
    REFUSED((o.view_pieces = 1, o.row_stride = offsetof(tokmap_row, pieces)), TOKMAP_ERR_ARGUMENT,
            "row_stride with n_pieces");
    REFUSED((o.random_offset = 1, o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT), TOKMAP_ERR_ARGUMENT,
            "random_offset");
    REFUSED(o.row_parts = 16, TOKMAP_ERR_ARGUMENT, "row_parts");
    REFUSED(o.row_parts = 32, TOKMAP_ERR_ARGUMENT, "row_parts");
    REFUSED(sources[1].n_datasets = 0, TOKMAP_ERR_ARGUMENT, "source 1 has 0 datasets");
    REFUSED(sources[1].datasets = NULL, TOKMAP_ERR_ARGUMENT, "source 1: datasets is NULL");
    REFUSED(sources[1].rows_files = (const char *const[2]){NULL}, TOKMAP_ERR_ARGUMENT,
            "source 1: rows_files");
    REFUSED((of_narrow[1] = NULL, sources[0].n_datasets = 2), TOKMAP_ERR_ARGUMENT, "is NULL");
    REFUSED(sources[1].masked = 2, TOKMAP_ERR_ARGUMENT, "masked");
    REFUSED(sources[1].weight = -1, TOKMAP_ERR_ARGUMENT, "weights");
    REFUSED((sources[1].weight = 0, sources[0].weight = 0), TOKMAP_ERR_ARGUMENT, "weights");
    REFUSED(
        sources[1].weight = 1e-7, TOKMAP_ERR_ARGUMENT,
        "the weights from sample 0 on: source 1 has weight 1e-07, less than the smallest "
        "share, which is 1 of 1048576 samples: set it to 9.54e-07 or more, or 0 to leave it out");
    REFUSED(weights[0] = 1e-9, TOKMAP_ERR_ARGUMENT, "from sample 10 on: source 0 has weight 1e-09");
    REFUSED(phases[1].first_sample = 10, TOKMAP_ERR_ARGUMENT, "phase 1");
    REFUSED(phases[0].first_sample = 0, TOKMAP_ERR_ARGUMENT, "phase 0");
    REFUSED(phases[1].first_sample = 10, TOKMAP_ERR_ARGUMENT, "must be above 10");
    REFUSED(phases[1].first_sample = 1ull << 62, TOKMAP_ERR_ARGUMENT, "below 2^62");
    REFUSED(phases[1].weights = NULL, TOKMAP_ERR_ARGUMENT, "phase 1: weights is NULL");
    REFUSED((o.n_skips = 2, o.skips = NULL), TOKMAP_ERR_ARGUMENT, "skips is NULL");
    REFUSED((o.n_skips = 2, o.skip_stride = 0), TOKMAP_ERR_ARGUMENT, "tokmap_loader_skip");
    REFUSED(
        (o.n_skips = 2, skips[1].first_sample = 109), TOKMAP_ERR_ARGUMENT,
        "skip 1: from sample 109 up to 120: must have a sample, and begin after the skip before");
    REFUSED((o.n_skips = 2, skips[0].end_sample = 100), TOKMAP_ERR_ARGUMENT,
            "skip 0: from sample 100 up to 100");
    REFUSED((o.n_skips = 2, skips[1].end_sample = (1ull << 62) + 1), TOKMAP_ERR_ARGUMENT,
            "do not all exist");
    REFUSED((o.n_skips = 2, sources[1].max_epochs = 1), TOKMAP_ERR_ARGUMENT,
            "skip 0: samples 100 to 110 do not all exist: the loader has 63");
    REFUSED(weights[1] = 1.0 / 0.0, TOKMAP_ERR_ARGUMENT, "weights");
    close_all();
}

TEST(a_call_that_succeeds_clears_the_error_of_the_one_before)
{
    open_all();
    const tokmap_loader_options o = good();
    tokmap_loader *l = corpus_open_loader(&o);
    tokmap_error err = {0};
    CHECK(tokmap_loader_seek(l, UINT64_MAX, &err) != TOKMAP_OK);
    CHECK(err.status != TOKMAP_OK && err.text[0]);
    CHECK_INT(tokmap_loader_seek(l, 0, &err), TOKMAP_OK);
    CHECK_INT(err.status, TOKMAP_OK);
    CHECK_STR(err.text, "");
    tokmap_loader_close(l);
    close_all();
}

TEST(data_that_do_not_go_together_are_refused)
{
    open_all();
    tokmap_dataset *of_tiny[] = {tiny.ds}, *of_borderless[] = {borderless.ds};
    REFUSED((of_narrow[1] = wide.ds, sources[0].n_datasets = 2), TOKMAP_ERR_MISMATCH,
            "tokens of 4");
    REFUSED(sources[1].datasets = of_tiny, TOKMAP_ERR_MISMATCH,
            "3 tokens are too few for sequence_length");
    REFUSED((sources[1].datasets = of_borderless, o.row_parts = 1), TOKMAP_ERR_MISMATCH,
            "boundaries");
    REFUSED((sources[1].datasets = of_borderless, o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT),
            TOKMAP_ERR_MISMATCH, "boundaries");
    close_all();
}

/* ---- Rows files ---- */

static void write_refused(tokmap_rows_options o, tokmap_status status, const char *why)
{
    tokmap_error err = {0};
    o.struct_size = sizeof o;
    CHECK_REFUSED(tokmap_rows_write(narrow.ds, &o, NULL, &err), status, err, why);
}

TEST(rows_files_that_cannot_be_used_are_refused)
{
    const char *path = check_path("rows");
    tokmap_error err;
    open_all();
    const char *const paths[2] = {path};
    tokmap_dataset *const of_tiny[] = {tiny.ds};
    const tokmap_rows_options rows = {
        .struct_size = sizeof rows, .sequence_length = 16, .path = path};
    write_refused((tokmap_rows_options){.align = 1}, TOKMAP_ERR_ARGUMENT, "sequence_length is 0");
    write_refused((tokmap_rows_options){.sequence_length = 16, .align = 5}, TOKMAP_ERR_ARGUMENT,
                  "align is 5");
    write_refused((tokmap_rows_options){.sequence_length = 16, .path = ""}, TOKMAP_ERR_ARGUMENT,
                  "path is empty");
    CHECK_REFUSED(tokmap_rows_write(borderless.ds, &rows, NULL, &err), TOKMAP_ERR_MISMATCH, err,
                  "boundaries");
    CHECK_OK(tokmap_rows_write(narrow.ds, &rows, NULL, &err), err);
#define ROWS_REFUSED(change, status, why)                                                          \
    REFUSED((sources[0].rows_files = paths, o.windows = TOKMAP_WINDOWS_BEST_FIT, change), status,  \
            why)
    ROWS_REFUSED(o.align = 4, TOKMAP_ERR_MISMATCH, "was made with");
    ROWS_REFUSED(sources[0].datasets = of_tiny, TOKMAP_ERR_MISMATCH, "other documents");
    CHECK(truncate(path, 100) == 0);
    ROWS_REFUSED(o.io = TOKMAP_IO_MAP, TOKMAP_ERR_CORRUPT, "not a rows file");
    CHECK(unlink(path) == 0);
    ROWS_REFUSED(o.io = TOKMAP_IO_MAP, TOKMAP_ERR_IO, "cannot open");
    close_all();
}

/* ---- States ---- */

static void state_refused(const tokmap_loader_options *o, const uint8_t *state, const char *why)
{
    tokmap_error err = {0};
    tokmap_loader *l = corpus_open_loader(o);
    const tokmap_status status = tokmap_loader_restore(l, state, &err);
    CHECK(status == TOKMAP_ERR_MISMATCH || status == TOKMAP_ERR_CORRUPT);
    CHECK_SAYS(err.text, why);
    CHECK_EQ(tokmap_loader_position(l), 0);
    tokmap_loader_close(l);
}

#define STATE_REFUSED(change, why)                                                                 \
    do {                                                                                           \
        tokmap_loader_options o = good();                                                          \
        change;                                                                                    \
        state_refused(&o, state, why);                                                             \
    } while (0)

TEST(a_state_of_something_else_is_refused_with_the_reason)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    open_all();
    tokmap_loader_options fine = good();
    tokmap_loader *l = corpus_open_loader(&fine);
    corpus_next(l);
    CHECK_INT(tokmap_loader_save(l, state, &err), TOKMAP_OK);
    tokmap_dataset *of_wide[] = {wide.ds};
    STATE_REFUSED(sources[1].datasets = of_wide, "other data");
    STATE_REFUSED((o.n_sources = 1, o.n_phases = 0), "saved with 2, this loader has 1");
    STATE_REFUSED(o.sequence_length = 17, "sequence length 16, this loader has 17");
    STATE_REFUSED(o.seed = 5, "seed 0, this loader has 5");
    STATE_REFUSED(o.shuffle = TOKMAP_SHUFFLE_NONE, "shuffle");
    STATE_REFUSED(o.shuffle = TOKMAP_SHUFFLE_BLOCK, "shuffle");
    STATE_REFUSED(o.random_offset = 1, "random_offset");
    STATE_REFUSED(o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT, "windows");
    STATE_REFUSED(o.windows = TOKMAP_WINDOWS_BEST_FIT, "windows");
    STATE_REFUSED(sources[1].weight = 2, "weights");
    STATE_REFUSED(weights[1] = 2, "weights");
    STATE_REFUSED(o.n_phases = 1, "phases");
    STATE_REFUSED(phases[1].first_sample = 21, "phases");
    STATE_REFUSED(sources[1].max_epochs = 9, "max_epochs");
    STATE_REFUSED(o.n_skips = 1, "other samples after it were to be skipped");
    fine = good();
    for (int bit = 0; bit < 8 * TOKMAP_STATE_BYTES; bit++) {
        state[bit / 8] ^= (uint8_t)(1 << bit % 8);
        state_refused(&fine, state, "state");
        state[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    tokmap_loader *again = corpus_open_loader(&fine);
    CHECK_INT(tokmap_loader_restore(again, state, &err), TOKMAP_OK);
    CHECK_EQ(tokmap_loader_position(again), 8);
    tokmap_loader_close(again);
    tokmap_loader_close(l);
    close_all();
}

/* With another value at a byte, as a newer library might write it. */
static void newer_state_refused(const uint8_t *state, size_t at, const char *why)
{
    uint8_t newer[TOKMAP_STATE_BYTES];
    tokmap_error err = {0};
    const tokmap_loader_options o = good();
    tokmap_loader *l = corpus_open_loader(&o);
    memcpy(newer, state, sizeof newer);
    newer[at] += 3;
    le_put64(newer + 120, tokmap_i_checksum(newer, 120));
    CHECK_INT(tokmap_loader_restore(l, newer, &err), TOKMAP_ERR_VERSION);
    if (!strstr(err.text, why) || !strstr(err.text, "use a newer one"))
        CHECK_FAIL("'%s' does not say '%s'", err.text, why);
    CHECK_EQ(tokmap_loader_position(l), 0);
    tokmap_loader_close(l);
}

TEST(a_state_of_a_newer_library_is_refused_as_such)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    open_all();
    const tokmap_loader_options o = good();
    tokmap_loader *l = corpus_open_loader(&o);
    CHECK_INT(tokmap_loader_save(l, state, NULL), TOKMAP_OK);
    tokmap_loader_close(l);
    newer_state_refused(state, 8, "order version 4, but this library has versions 1 to 3");
    for (size_t at = 80; at < 120; at++)
        newer_state_refused(state, at, "something that this library does not know");
    close_all();
}

/* ---- The end ---- */

TEST(the_end_comes_for_all_ranks_at_once_and_stays)
{
    open_all();
    tokmap_loader_options o = good();
    tokmap_error err;
    sources[1].max_epochs = 1;
    const uint64_t n = (narrow.n_tokens - 1) / 16;
    for (o.rank = 0; o.rank < 2; o.rank++) {
        tokmap_batch b = {.struct_size = sizeof b};
        tokmap_loader *l = corpus_open_loader(&o);
        tokmap_loader_info info = {.struct_size = sizeof info};
        tokmap_loader_get_info(l, &info);
        CHECK(info.n_samples == 2 * n || info.n_samples == 2 * n + 1);
        uint64_t n_steps = 0;
        while (tokmap_loader_next(l, &b, &err) == TOKMAP_OK)
            n_steps++;
        CHECK_EQ(n_steps, info.n_samples / 8);
        CHECK_REFUSED(err.status, TOKMAP_END, err, "source 1");
        CHECK_INT(tokmap_loader_next(l, &b, &err), TOKMAP_END);
        CHECK_EQ(tokmap_loader_position(l), 8 * n_steps);
        CHECK_INT(tokmap_loader_seek(l, info.n_samples + 1, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_INT(tokmap_loader_seek(l, 0, &err), TOKMAP_OK);
        b = corpus_next(l);
        tokmap_loader_close(l);
    }
    close_all();
}

TEST(far_samples_are_there_and_the_last_are_not)
{
    open_all();
    tokmap_loader_options o = good();
    tokmap_error err;
    tokmap_loader *l = corpus_open_loader(&o);
    CHECK_INT(tokmap_loader_seek(l, ((uint64_t)1 << 62) - 8, &err), TOKMAP_OK);
    tokmap_batch b = corpus_next(l);
    corpus_check_tokens(&narrow, b.rows);
    CHECK_INT(tokmap_loader_next(l, &b, &err), TOKMAP_END);
    CHECK_INT(tokmap_loader_seek(l, (uint64_t)1 << 62, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_next(l, &b, &err), TOKMAP_END);
    CHECK_INT(tokmap_loader_seek(l, ((uint64_t)1 << 62) + 1, &err), TOKMAP_ERR_ARGUMENT);
    uint8_t state[TOKMAP_STATE_BYTES]; /* of a place where restore would refuse it */
    CHECK_INT(tokmap_loader_save_at(l, (uint64_t)1 << 62, state, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_restore(l, state, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_save_at(l, ((uint64_t)1 << 62) + 1, state, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_loader_close(l);
    close_all();
}

/* ---- fork ---- */

TEST(a_child_is_told_and_the_parent_goes_on)
{
    open_all();
    tokmap_loader_options o = good();
    tokmap_error err;
    tokmap_batch b = {.struct_size = sizeof b};
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_loader *l = corpus_open_loader(&o);
    const pid_t child = fork();
    if (child == 0) {
        const bool told = tokmap_loader_next(l, &b, &err) == TOKMAP_ERR_FORKED &&
                          tokmap_loader_seek(l, 0, &err) == TOKMAP_ERR_FORKED &&
                          tokmap_loader_save(l, state, &err) == TOKMAP_ERR_FORKED;
        tokmap_loader_close(l);
        tokmap_document d;
        _exit(told && tokmap_dataset_find_document(narrow.ds, 9, &d) == TOKMAP_OK ? 0 : 1);
    }
    must_end(child);
    b = corpus_next(l);
    tokmap_loader_close(l);
    close_all();
}

/* ---- What fails leaves the loader as it was ---- */

TEST(a_batch_that_is_refused_changes_nothing)
{
    open_all();
    tokmap_loader_options o = good();
    tokmap_error err;
    o.io = TOKMAP_IO_READ;
    o.look_ahead = 1024;
    tokmap_loader *l = corpus_open_loader(&o);
    tokmap_batch b = corpus_next(l);
    CHECK_INT(tokmap_loader_set_batch(l, 3, 4, 1 << 17, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_loader_set_batch(l, 4, 4, 2, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_loader_set_batch(l, 0, 4, 0, &err), TOKMAP_ERR_ARGUMENT);
    b = corpus_next(l);
    CHECK_EQ(b.n_rows, 4);
    CHECK_EQ(b.first_sample, 8);
    corpus_check_tokens(&narrow, &b.rows[3]);
    tokmap_loader_close(l);
    close_all();
}

TEST(a_batch_that_was_never_filled_is_not_gathered)
{
    uint16_t tokens[17];
    tokmap_error err;
    const tokmap_batch b = {.struct_size = sizeof b};
    const tokmap_gather_options o = {
        .struct_size = sizeof o, .format = TOKMAP_GATHER_TOKENS, .inputs = tokens};
    CHECK_INT(tokmap_batch_gather(&b, &o, &err), TOKMAP_ERR_ARGUMENT);
}

static void not_gathered(const tokmap_batch *b, tokmap_gather_options o, const char *why)
{
    tokmap_error err = {0};
    CHECK_REFUSED(tokmap_batch_gather(b, &o, &err), TOKMAP_ERR_ARGUMENT, err, why);
}

/* Numbers that the format cannot hold are neither cut nor made negative. */
TEST(what_does_not_fit_the_format_is_not_gathered)
{
    static corpus_shape large = {
        .name = "large", .n_tokens = 40, .first_id = INT32_MAX - 38, .token_bytes = 4};
    static int64_t wide_inputs[16], wide_labels[16];
    static int32_t inputs[16], labels[16];
    static uint32_t tokens[17];
    tokmap_error err;
    open_all();
    corpus_shape_open(&large);
    for (int of_large = 0; of_large < 2; of_large++) {
        tokmap_loader_options o = good();
        o.n_sources = o.batch_rows = 1;
        o.n_phases = 0;
        if (of_large)
            of_narrow[0] = large.ds;
        tokmap_loader *l = corpus_open_loader(&o);
        tokmap_batch b = corpus_next(l);
        CHECK_EQ(b.largest_id, of_large ? (uint32_t)INT32_MAX + 1 : narrow.n_tokens - 1);
        tokmap_gather_options i32 = {.struct_size = sizeof i32,
                                     .format = TOKMAP_GATHER_I32,
                                     .has_ignore_index = 1,
                                     .ignore_index = INT32_MIN,
                                     .pad_id = INT32_MAX,
                                     .inputs = inputs,
                                     .labels = labels};
        tokmap_gather_options i64 = {.struct_size = sizeof i64,
                                     .format = TOKMAP_GATHER_I64,
                                     .has_ignore_index = 1,
                                     .ignore_index = INT64_MIN,
                                     .pad_id = UINT32_MAX,
                                     .inputs = wide_inputs,
                                     .labels = wide_labels};
        tokmap_gather_options as_stored = {.struct_size = sizeof as_stored,
                                           .format = TOKMAP_GATHER_TOKENS,
                                           .pad_id = of_large ? UINT32_MAX : UINT16_MAX,
                                           .has_ignore_index = 1,
                                           .ignore_index = INT64_MAX, /* no labels, no meaning */
                                           .inputs = tokens};
        CHECK_INT(tokmap_batch_gather(&b, &i64, &err), TOKMAP_OK);
        CHECK_EQ((uint64_t)wide_inputs[0], corpus_id(&b.rows[0], 0));
        CHECK_INT(tokmap_batch_gather(&b, &as_stored, &err), TOKMAP_OK);
        i64.has_ignore_index = 0;
        not_gathered(&b, i64, "has_ignore_index is 0");
        i64.has_ignore_index = 1;
        i64.inputs = i64.labels = NULL;
        not_gathered(&b, i64, "both NULL");
        as_stored.mask_labels = 1;
        not_gathered(&b, as_stored, "mask_labels 0");
        i64.inputs = wide_inputs;
        i64.format = TOKMAP_GATHER_NONE;
        not_gathered(&b, i64, "format is not set");
        i64.format = TOKMAP_GATHER_ROWS_I64 + 1;
        not_gathered(&b, i64, "format is 6: must be 1 to 5");
        if (of_large) {
            not_gathered(&b, i32, "ids up to 2147483648");
        } else {
            CHECK_INT(tokmap_batch_gather(&b, &i32, &err), TOKMAP_OK);
            as_stored.mask_labels = 0;
            as_stored.pad_id++;
            not_gathered(&b, as_stored, "pad_id is 65536");
            i32.pad_id++;
            not_gathered(&b, i32, "pad_id is 2147483648");
            i32.pad_id = 0;
            i32.ignore_index--;
            not_gathered(&b, i32, "ignore_index is -2147483649");
            i32.ignore_index = UINT32_MAX;
            not_gathered(&b, i32, "ignore_index is 4294967295");
            i32.labels = NULL; /* then nothing becomes ignore_index */
            CHECK_INT(tokmap_batch_gather(&b, &i32, &err), TOKMAP_OK);
        }
        tokmap_loader_close(l);
    }
    corpus_shape_close(&large);
    close_all();
}

/* ---- Damage: nothing checks the document index before it is used ---- */

static void damage(const char *path, uint64_t offset, uint64_t value)
{
    char name[700];
    snprintf(name, sizeof name, "%s.tmi", path);
    FILE *f = fopen(name, "r+b");
    CHECK(f && fseek(f, (long)offset, SEEK_SET) == 0 && fwrite(&value, 8, 1, f) == 1);
    fclose(f);
}

/* The group starts of 2,560 documents of a token each, one after another set to something else. */
TEST(a_damaged_document_index_is_an_error_wherever_it_is)
{
    static corpus_shape ones = {.name = "ones", .n_tokens = 2560, .token_bytes = 2};
    ones.n_documents = 2560;
    for (uint32_t d = 0; d < 2560; d++)
        ones.ends[d] = d + 1;
    corpus_shape_open(&ones);
    tokmap_dataset *of_ones[] = {ones.ds};
    const tokmap_i_documents *docs = &ones.ds->documents;
    const uint64_t starts =
        (uint64_t)(docs->bytes - ones.ds->index_map) + docs->layout.level_offset[0];
    int n_corrupt = 0;
    for (uint64_t entry = 1; entry < docs->layout.n_groups; entry++) {
        const uint64_t values[] = {0, 1, 64 * entry - 1, 64 * entry + 1, 2560, UINT64_MAX};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            tokmap_loader_options o = good();
            tokmap_batch b = {.struct_size = sizeof b};
            tokmap_error err;
            sources[0].datasets = of_ones;
            o.n_sources = 1;
            o.n_phases = 0;
            o.sequence_length = 100;
            o.shuffle = TOKMAP_SHUFFLE_NONE;
            o.n_ranks = 1;
            o.row_parts = 15;
            tokmap_loader *l = corpus_open_loader(&o);
            damage(ones.path, starts + 8 * entry, values[v]);
            for (int step = 0; step < 6; step++) {
                const tokmap_status status = tokmap_loader_next(l, &b, &err);
                CHECK(status == TOKMAP_OK || status == TOKMAP_ERR_CORRUPT);
                n_corrupt += status == TOKMAP_ERR_CORRUPT;
                CHECK_INT(tokmap_loader_seek(l, 4ull * (unsigned)(step + 1), &err), TOKMAP_OK);
            }
            damage(ones.path, starts + 8 * entry, 64 * entry);
            tokmap_loader_close(l);
        }
    }
    CHECK(n_corrupt > 100);
    corpus_shape_close(&ones);
}

/* A group that begins before the one before it ends. */
TEST(labels_of_documents_that_go_backwards_are_not_counted)
{
    static corpus_shape ones = {.name = "ones", .n_tokens = 2560, .token_bytes = 2};
    static uint64_t labels[2560];
    ones.n_documents = 2560;
    for (uint32_t d = 0; d < 2560; d++)
        ones.ends[d] = d + 1;
    corpus_shape_open(&ones);
    tokmap_dataset *of_ones[] = {ones.ds};
    const tokmap_i_documents *docs = &ones.ds->documents;
    const uint64_t starts =
        (uint64_t)(docs->bytes - ones.ds->index_map) + docs->layout.level_offset[0];
    tokmap_loader_options o = good();
    tokmap_error err = {0};
    sources[0].datasets = of_ones;
    o.n_sources = 1;
    o.n_phases = 0;
    o.n_ranks = 1;
    tokmap_loader *l = corpus_open_loader(&o);
    const tokmap_loader_labels wanted = {
        .struct_size = sizeof wanted, .n_documents = 2560, .end_sample = 90, .labels = labels};
    for (uint64_t group = 1; group < docs->layout.n_groups; group++) {
        damage(ones.path, starts + 8 * group, 64 * group - 2);
        CHECK_INT(tokmap_loader_count_labels(l, &wanted, &err), TOKMAP_ERR_CORRUPT);
        damage(ones.path, starts + 8 * group, 64 * group);
        CHECK_OK(tokmap_loader_count_labels(l, &wanted, &err), err);
    }
    tokmap_loader_close(l);
    corpus_shape_close(&ones);
}
