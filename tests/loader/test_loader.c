/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader - every window once an epoch, the same sequence however it is dealt out, saved and
 * restored, and rows that hold the tokens they say. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "support/joined.h"
#include "support/loader_corpus.h"

enum {
    LENGTH = 7,
    MAX_SAMPLES = 2000
};

static corpus_shape first = {.name = "first", .n_tokens = 1003, .first_id = 0, .token_bytes = 2};
static corpus_shape second = {
    .name = "second", .n_tokens = 400, .first_id = 1 << 20, .token_bytes = 4, .n_segments = 30};
static corpus_shape third = {
    .name = "third", .n_tokens = 57, .first_id = 5000, .token_bytes = 2, .n_segments = 3};

static void open_all(void)
{
    corpus_shape *all[] = {&first, &second, &third};
    for (int i = 0; i < 3; i++) {
        corpus_cut(all[i], 20);
        corpus_shape_open(all[i]);
    }
}

static void close_all(void)
{
    corpus_shape_close(&first);
    corpus_shape_close(&second);
    corpus_shape_close(&third);
}

/* Two sources, of which the first has two datasets. */
typedef struct setup {
    tokmap_dataset *of_a[2], *of_b[1];
    tokmap_loader_source sources[2];
    tokmap_loader_phase phases[1];
    double later[2];
    tokmap_loader_options options;
} setup;

static const corpus_shape *shape_of(const tokmap_row *row)
{
    return row->source == 1 ? &second : row->dataset == 0 ? &first : &third;
}

/* One source, or two and a phase. */
static void set_up(setup *s, uint32_t n_sources)
{
    memset(s, 0, sizeof *s);
    s->of_a[0] = first.ds;
    s->of_a[1] = third.ds;
    s->of_b[0] = second.ds;
    s->sources[0] = (tokmap_loader_source){.datasets = s->of_a, .n_datasets = 2, .weight = 0.7};
    s->sources[1] = (tokmap_loader_source){.datasets = s->of_b, .n_datasets = 1, .weight = 0.3};
    s->later[0] = 1;
    s->later[1] = 2;
    s->phases[0] = (tokmap_loader_phase){101, s->later};
    s->options = (tokmap_loader_options){LOADER_SIZES,
                                         .sources = s->sources,
                                         .n_sources = n_sources,
                                         .phases = s->phases,
                                         .n_phases = n_sources - 1,
                                         .sequence_length = LENGTH,
                                         .batch_rows = 1,
                                         .seed = 42};
}

/* Another way of reading and another look-ahead each time. */
static void read_somehow(tokmap_loader_options *o)
{
    o->io = (tokmap_io)(1 + corpus_any(5));
    o->look_ahead = corpus_any(6);
    o->drop_behind = (int32_t)corpus_any(2);
}

/* ---- Coverage ---- */

/* Over two epochs of one source: all windows once in each, every label that windows have once. */
static void cover_twice(int mode)
{
    setup s;
    static uint8_t windows[MAX_SAMPLES], labels[2][2000];
    set_up(&s, 1);
    corpus_set_mode(&s.options, mode);
    s.sources[0].max_epochs = 2;
    read_somehow(&s.options);
    tokmap_loader *l = corpus_open_loader(&s.options);
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader_source_info source = {.struct_size = sizeof source};
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err;
    tokmap_loader_get_info(l, &info);
    CHECK_INT(tokmap_loader_get_source(l, 0, &source), TOKMAP_OK);
    CHECK_EQ(info.n_samples, 2 * source.n_windows);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        uint32_t n_labels = 0;
        memset(windows, 0, sizeof windows);
        memset(labels, 0, sizeof labels);
        for (uint64_t i = 0; i < source.n_windows; i++) {
            b = corpus_next(l);
            const tokmap_row *row = b.rows;
            CHECK_EQ(row->epoch, epoch);
            CHECK(row->window < source.n_windows && windows[row->window]++ == 0);
            corpus_check_tokens(shape_of(row), row);
            for (uint32_t k = 1; k < row->n_tokens; k++, n_labels++) {
                const tokmap_piece *p = corpus_piece(row, k);
                const uint64_t label = p ? p->first_token + (k - p->place)
                                         : (row->first_token + k) % shape_of(row)->n_tokens;
                if (p && p->place == k)
                    continue; /* the first token of a piece */
                CHECK(labels[row->dataset][label]++ == 0);
            }
        }
        if (mode < 6)
            CHECK_EQ(n_labels, LENGTH * source.n_windows);
        for (int d = 0; mode >= 6 && d < 2; d++) {
            const corpus_shape *c = d ? &third : &first;
            for (uint32_t t = 0; t < c->n_tokens; t++)
                CHECK_INT(labels[d][t], !corpus_begins(c, t));
        }
    }
    CHECK_INT(tokmap_loader_next(l, &b, &err), TOKMAP_END);
    tokmap_loader_close(l);
}

TEST(each_window_comes_once_an_epoch_and_each_label_once)
{
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++)
        cover_twice(mode);
    close_all();
}

/* ---- One sequence ---- */

static tokmap_sample sequence[MAX_SAMPLES];

static void locate_all(tokmap_loader *l)
{
    tokmap_error err;
    for (uint64_t g = 0; g < MAX_SAMPLES; g++) {
        sequence[g].struct_size = sizeof sequence[g];
        CHECK_OK(tokmap_loader_locate(l, g, &sequence[g], &err), err);
    }
}

static void expect_sample(const tokmap_row *row, uint64_t g)
{
    const tokmap_sample *want = &sequence[g];
    CHECK_EQ(row->source, want->source);
    CHECK_EQ(row->dataset, want->dataset);
    CHECK_EQ(row->epoch, want->epoch);
    CHECK_EQ(row->window, want->window);
    CHECK_EQ(row->first_token, want->first_token);
    CHECK_EQ(row->n_tokens, want->n_tokens);
    corpus_check_tokens(shape_of(row), row);
}

static void expect_saved_at(const tokmap_loader *l, uint64_t sample, const uint8_t *expected)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_error err;
    CHECK_INT(tokmap_loader_save_at(l, sample, state, &err), TOKMAP_OK);
    CHECK(memcmp(state, expected, sizeof state) == 0);
}

/* One step of all ranks from sample g on, which are all to save the same. */
static void step_of_ranks(setup *s, uint64_t g, uint32_t n_ranks, uint8_t *state)
{
    uint8_t before[TOKMAP_STATE_BYTES], after[TOKMAP_STATE_BYTES];
    tokmap_error err;
    memcpy(before, state, sizeof before);
    for (uint32_t r = 0; r < n_ranks; r++) {
        s->options.rank = r;
        s->options.n_ranks = n_ranks;
        read_somehow(&s->options);
        tokmap_loader *l = corpus_open_loader(&s->options);
        CHECK_OK(tokmap_loader_restore(l, before, &err), err);
        tokmap_batch b = corpus_next(l);
        CHECK_EQ(b.step_sample, g);
        CHECK_EQ(b.first_sample, g + (uint64_t)r * s->options.batch_rows);
        CHECK_EQ(b.n_rows, s->options.batch_rows);
        for (uint32_t i = 0; i < b.n_rows; i++)
            expect_sample(&b.rows[i], b.first_sample + i);
        CHECK_INT(tokmap_loader_save(l, after, &err), TOKMAP_OK);
        expect_saved_at(l, g, before);
        expect_saved_at(l, g + (uint64_t)n_ranks * b.n_rows, after);
        CHECK(r == 0 || memcmp(after, state, sizeof after) == 0);
        memcpy(state, after, sizeof after);
        tokmap_loader_close(l);
    }
}

/* Another number of ranks and rows in every step. */
TEST(the_sequence_is_the_same_however_it_is_dealt_out_and_resumed)
{
    static const uint32_t n_ranks[] = {1, 2, 3, 8};
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        setup s;
        uint8_t state[TOKMAP_STATE_BYTES];
        tokmap_error err;
        set_up(&s, 2);
        corpus_set_mode(&s.options, mode);
        tokmap_loader *l = corpus_open_loader(&s.options);
        CHECK_INT(tokmap_loader_save(l, state, &err), TOKMAP_OK);
        locate_all(l);
        tokmap_loader_close(l);
        for (uint64_t g = 0, step = 0; g + 72 < (check_long() ? MAX_SAMPLES : 900); step++) {
            const uint32_t r = n_ranks[corpus_any(4)];
            s.options.batch_rows = 1 + corpus_any(9);
            step_of_ranks(&s, g, r, state);
            g += (uint64_t)r * s.options.batch_rows;
        }
    }
    close_all();
}

TEST(going_on_seeking_and_other_batches_find_the_same_samples)
{
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        setup s;
        tokmap_error err;
        tokmap_batch b;
        set_up(&s, 2);
        corpus_set_mode(&s.options, mode);
        read_somehow(&s.options);
        tokmap_loader *l = corpus_open_loader(&s.options);
        locate_all(l);
        uint64_t g = 0;
        for (int step = 0; step < 400; step++) {
            const uint32_t n_ranks = 1 + corpus_any(3), rank = corpus_any(n_ranks);
            const uint32_t n_rows = 1 + corpus_any(9);
            if (step % 5 == 0) {
                g = corpus_any(MAX_SAMPLES - 100);
                CHECK_INT(tokmap_loader_seek(l, g, &err), TOKMAP_OK);
            }
            CHECK_INT(tokmap_loader_set_batch(l, rank, n_ranks, n_rows, &err), TOKMAP_OK);
            CHECK_EQ(tokmap_loader_position(l), g);
            if (g + (uint64_t)n_ranks * n_rows > MAX_SAMPLES)
                continue;
            b = corpus_next(l);
            for (uint32_t i = 0; i < b.n_rows; i++)
                expect_sample(&b.rows[i], g + (uint64_t)rank * n_rows + i);
            g += (uint64_t)n_ranks * n_rows;
        }
        tokmap_loader_close(l);
    }
    close_all();
}

TEST(sources_get_their_shares_in_every_phase)
{
    setup s;
    tokmap_error err;
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    uint64_t n[2] = {0, 0};
    open_all();
    set_up(&s, 2);
    tokmap_loader *l = corpus_open_loader(&s.options);
    for (uint64_t g = 0; g < 401; g++) {
        CHECK_INT(tokmap_loader_locate(l, g, &at, &err), TOKMAP_OK);
        n[at.source]++;
        const double share = g < 101 ? 0.7 * (double)(g + 1) : 0.7 * 101 + (double)(g - 100) / 3;
        CHECK((double)n[0] > share - 1.31 && (double)n[0] < share + 1.31);
    }
    CHECK_INT(tokmap_loader_seek(l, 401, &err), TOKMAP_OK);
    for (size_t k = 0; k < 2; k++) {
        tokmap_loader_source_info info = {.struct_size = sizeof info};
        CHECK_INT(tokmap_loader_get_source(l, k, &info), TOKMAP_OK);
        CHECK_EQ(info.n_samples_before, n[k]);
        CHECK_EQ(info.quota, k ? 3 : 7);
        CHECK_EQ(info.period, 10);
    }
    tokmap_loader_close(l);
    close_all();
}

TEST(seeds_epochs_and_copies_of_a_source_have_orders_of_their_own)
{
    setup s;
    tokmap_error err;
    tokmap_sample a = TOKMAP_INIT(tokmap_sample), b = a;
    open_all();
    set_up(&s, 1);
    tokmap_loader *l = corpus_open_loader(&s.options);
    tokmap_loader_source_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_loader_get_source(l, 0, &info), TOKMAP_OK);
    s.options.seed = 43;
    tokmap_loader *other = corpus_open_loader(&s.options);
    const uint64_t n = info.n_windows;
    uint64_t same_seed = 0, same_epoch = 0, same_shifted = 0;
    for (uint64_t g = 0; g < n; g++) {
        CHECK_INT(tokmap_loader_locate(l, g, &a, &err), TOKMAP_OK);
        CHECK_INT(tokmap_loader_locate(other, g, &b, &err), TOKMAP_OK);
        same_seed += a.window == b.window;
        CHECK_INT(tokmap_loader_locate(l, n + g, &b, &err), TOKMAP_OK);
        same_epoch += a.window == b.window;
        CHECK_INT(tokmap_loader_locate(other, g, &a, &err), TOKMAP_OK);
        same_shifted += a.window == b.window; /* seed 42 in epoch 1, seed 43 in epoch 0 */
    }
    CHECK(same_seed < 8 && same_epoch < 8 && same_shifted < 8);
    tokmap_loader_close(l);
    tokmap_loader_close(other);

    set_up(&s, 2);
    s.sources[1] = s.sources[0];
    s.options.n_phases = 0;
    l = corpus_open_loader(&s.options);
    uint64_t same_copy = 0;
    for (uint64_t g = 0; g < 2 * n; g += 2) { /* they take turns */
        CHECK_INT(tokmap_loader_locate(l, g, &a, &err), TOKMAP_OK);
        CHECK_INT(tokmap_loader_locate(l, g + 1, &b, &err), TOKMAP_OK);
        CHECK(a.source == 0 && b.source == 1);
        same_copy += a.window == b.window;
    }
    CHECK(same_copy < 8);
    tokmap_loader_close(l);
    close_all();
}

/* ---- Parts and copies ---- */

static void check_gathered(const tokmap_batch *b, const tokmap_gather_options *o)
{
    const uint32_t *ids = o->inputs;
    const int64_t *inputs = o->inputs, *labels = o->labels;
    for (size_t i = 0; i < b->n_rows; i++) {
        const tokmap_row *row = &b->rows[i];
        for (uint32_t k = 0; k <= LENGTH && o->format != TOKMAP_GATHER_I64; k++) {
            const size_t at = i * (LENGTH + 1) + k;
            CHECK_INT(o->format == TOKMAP_GATHER_ROWS_I64 ? inputs[at] : ids[at],
                      k < row->n_tokens ? corpus_id(row, k) : 77);
        }
        for (uint32_t k = 0; k < LENGTH && o->format == TOKMAP_GATHER_I64; k++) {
            const bool counts = k + 1 < row->n_tokens && (!o->mask_labels || row->loss_mask[k]) &&
                                corpus_piece(row, k) == corpus_piece(row, k + 1);
            CHECK_INT(inputs[i * LENGTH + k], k + 1 < row->n_tokens ? corpus_id(row, k) : 77);
            CHECK_INT(labels[i * LENGTH + k], counts ? (int64_t)corpus_id(row, k + 1) : -100);
        }
    }
}

static void check_cu_seqlens(const tokmap_batch *b)
{
    static int32_t cu[9 * LENGTH + 1];
    uint32_t longest = 0, most = 0;
    size_t n = tokmap_batch_cu_seqlens(b, LENGTH, NULL, NULL), at = 0;
    CHECK_EQ(tokmap_batch_cu_seqlens(b, LENGTH, cu, &longest), n);
    for (uint32_t i = 0; i < b->n_rows * LENGTH; i++) {
        const tokmap_row *row = &b->rows[i / LENGTH];
        const bool begins = i % LENGTH == 0 || row->position_ids[i % LENGTH] == 0;
        const bool lacks = i % LENGTH >= row->n_tokens; /* not the first input that the row lacks */
        if (begins && !lacks)
            CHECK_INT(cu[at++], i);
    }
    CHECK_INT(cu[at], b->n_rows * LENGTH);
    CHECK_EQ(at + 1, n);
    for (size_t k = 0; k < at; k++)
        if ((uint32_t)(cu[k + 1] - cu[k]) > most)
            most = (uint32_t)(cu[k + 1] - cu[k]);
    CHECK_EQ(longest, most);
}

TEST(rows_tell_of_their_documents_and_copies_hold_them)
{
    static uint32_t tokens[9 * (LENGTH + 1)];
    static int64_t inputs[9 * (LENGTH + 1)], labels[9 * LENGTH];
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        setup s;
        tokmap_batch b;
        tokmap_error err;
        set_up(&s, 2);
        corpus_set_mode(&s.options, mode);
        s.sources[1].masked = mode % 2;
        read_somehow(&s.options);
        s.options.batch_rows = 9;
        s.options.row_parts = ALL_PARTS;
        tokmap_loader *l = corpus_open_loader(&s.options);
        for (int step = 0; step < 60; step++) {
            b = corpus_next(l);
            CHECK_EQ(b.token_bytes, 4);
            for (uint32_t i = 0; i < 9; i++)
                corpus_check_parts(shape_of(&b.rows[i]), &b.rows[i], LENGTH,
                                   b.rows[i].source == 1 && mode % 2);
            check_cu_seqlens(&b);
            tokmap_gather_options o = {.struct_size = sizeof o,
                                       .format = TOKMAP_GATHER_TOKENS,
                                       .inputs = tokens,
                                       .pad_id = 77,
                                       .has_ignore_index = 1,
                                       .ignore_index = -100};
            CHECK_INT(tokmap_batch_gather(&b, &o, &err), TOKMAP_OK);
            check_gathered(&b, &o);
            o.format = TOKMAP_GATHER_ROWS_I32;
            CHECK_INT(tokmap_batch_gather(&b, &o, &err), TOKMAP_OK);
            check_gathered(&b, &o);
            o.format = TOKMAP_GATHER_ROWS_I64;
            o.inputs = inputs;
            CHECK_INT(tokmap_batch_gather(&b, &o, &err), TOKMAP_OK);
            check_gathered(&b, &o);
            o.format = TOKMAP_GATHER_I64;
            o.labels = labels;
            for (o.mask_labels = 0; o.mask_labels < 2; o.mask_labels++) {
                CHECK_INT(tokmap_batch_gather(&b, &o, &err), TOKMAP_OK);
                check_gathered(&b, &o);
            }
        }
        tokmap_loader_close(l);
    }
    close_all();
}

TEST(more_inputs_than_cu_seqlens_can_count_are_refused)
{
    static const int32_t cu[2] = {0, 5};
    tokmap_row rows[2] = {{.cu_seqlens = cu, .n_documents = 1},
                          {.cu_seqlens = cu, .n_documents = 1}};
    const tokmap_batch b = {.rows = rows, .n_rows = 2, .row_stride = sizeof *rows};
    int32_t found[5];
    CHECK_EQ(tokmap_batch_cu_seqlens(&b, 1 << 30, found, NULL), 0);
    CHECK_EQ(tokmap_batch_cu_seqlens(&b, (1 << 30) - 1, found, NULL), 5);
    CHECK_INT(found[3], (1 << 30) + 4);
    CHECK_INT(found[4], INT32_MAX - 1);
}

TEST(parts_are_written_where_the_caller_says)
{
    static int32_t positions[9 * LENGTH], documents[9 * LENGTH];
    static uint8_t masks[9 * LENGTH];
    tokmap_error err;
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        setup s;
        set_up(&s, 2);
        corpus_set_mode(&s.options, mode);
        s.options.batch_rows = 9;
        s.options.row_parts = ALL_PARTS;
        tokmap_loader *l = corpus_open_loader(&s.options);
        for (uint32_t step = 0; step < 40; step++) {
            int32_t *const p = step % 2 ? positions : NULL;
            int32_t *const d = step % 4 / 2 ? documents : NULL;
            uint8_t *const m = step % 8 / 4 ? masks : NULL;
            CHECK_OK(tokmap_loader_set_parts(l, p, d, m, &err), err);
            const tokmap_batch b = corpus_next(l);
            for (uint32_t i = 0; i < 9; i++) {
                const tokmap_row *row = &b.rows[i];
                const size_t at = (size_t)i * LENGTH;
                CHECK((row->position_ids == positions + at) == (p != NULL));
                CHECK((row->document_ids == documents + at) == (d != NULL));
                CHECK((row->loss_mask == masks + at) == (m != NULL));
                corpus_check_parts(shape_of(row), row, LENGTH, false);
            }
        }
        CHECK_OK(tokmap_loader_set_parts(l, positions, documents, masks, &err), err);
        CHECK_OK(tokmap_loader_set_batch(l, 0, 1, 9, &err), err);
        CHECK(corpus_next(l).rows[0].position_ids == positions);
        CHECK_OK(tokmap_loader_set_batch(l, 0, 1, 7, &err), err); /* these would not fit any more */
        CHECK(corpus_next(l).rows[0].position_ids != positions);
        tokmap_loader_close(l);

        s.options.row_parts = mode % 2 ? TOKMAP_ROW_LOSS_MASK : 0;
        l = corpus_open_loader(&s.options);
        const tokmap_batch without = corpus_next(l);
        CHECK_EQ(tokmap_batch_cu_seqlens(&without, LENGTH, NULL, NULL), 0);
        CHECK_OK(tokmap_loader_set_parts(l, NULL, NULL, mode % 2 ? masks : NULL, &err), err);
        CHECK_REFUSED(tokmap_loader_set_parts(l, positions, NULL, NULL, &err), TOKMAP_ERR_ARGUMENT,
                      err, "needs row_parts for each of its arrays");
        CHECK_REFUSED(tokmap_loader_set_parts(l, NULL, documents, NULL, &err), TOKMAP_ERR_ARGUMENT,
                      err, "needs row_parts for each of its arrays");
        if (mode % 2)
            CHECK(corpus_next(l).rows[1].loss_mask == masks + LENGTH);
        tokmap_loader_close(l);
    }
    close_all();
}

/* ---- Ways of reading ---- */

TEST(opening_and_closing_leaves_nothing)
{
    unsigned n_files = 0, n_threads = 0, n_maps = 0;
    const int n = check_sanitized() ? 300 : check_long() ? 10000 : 1000;
    open_all();
    for (int i = 0; i < n + 200; i++) {
        setup s;
        set_up(&s, 2);
        corpus_set_mode(&s.options, i % CORPUS_MODES);
        read_somehow(&s.options);
        tokmap_loader *l = corpus_open_loader(&s.options);
        if (i % 3)
            corpus_next(l);
        tokmap_loader_close(l);
        /* By now, libraries have what they need, and each file of a joined dataset was opened. */
        if (i == 199) {
            n_files = n_open_files();
            n_threads = n_entries("/proc/self/task");
            n_maps = n_mapped_files("");
        }
    }
    CHECK_EQ(n_open_files(), n_files);
    for (int i = 0; i < 1000 && n_entries("/proc/self/task") != n_threads; i++)
        usleep(1000); /* one that was joined may still be going */
    CHECK_EQ(n_entries("/proc/self/task"), n_threads);
    /* malloc may have grown, also for threads that read ahead. */
    CHECK(check_sanitized() || n_mapped_files("") <= n_maps + n / 20);
    close_all();
}

static tokmap_io way_taken(tokmap_io wanted)
{
    setup s;
    set_up(&s, 2);
    s.options.io = wanted;
    tokmap_loader *l = corpus_open_loader(&s.options);
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader_get_info(l, &info);
    tokmap_loader_close(l);
    return info.io;
}

TEST(the_way_that_is_asked_for_is_taken_or_the_next_one)
{
    open_all();
    unsetenv("TOKMAP_IO");
    CHECK_INT(way_taken(TOKMAP_IO_MAP), TOKMAP_IO_MAP);
    CHECK_INT(way_taken(TOKMAP_IO_POPULATE), TOKMAP_IO_POPULATE);
    CHECK_INT(way_taken(TOKMAP_IO_READ), TOKMAP_IO_READ);
    CHECK_INT(way_taken(TOKMAP_IO_COPY), TOKMAP_IO_COPY);
    CHECK_INT(way_taken(TOKMAP_IO_AUTO), corpus_way_in_memory()); /* it was just written and read */
    const tokmap_io direct = way_taken(TOKMAP_IO_DIRECT);
    CHECK(direct == TOKMAP_IO_DIRECT || direct == TOKMAP_IO_POPULATE);
    printf("note DIRECT %s\n", direct == TOKMAP_IO_DIRECT ? "works" : "does not work here");
    setenv("TOKMAP_IO", "read", 1);
    CHECK_INT(way_taken(TOKMAP_IO_MAP), TOKMAP_IO_READ);
    setenv("TOKMAP_IO", "fast", 1);
    setup s;
    set_up(&s, 1);
    tokmap_loader *l;
    tokmap_error err;
    CHECK_INT(tokmap_loader_open(&l, &s.options, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "TOKMAP_IO is 'fast'");
    unsetenv("TOKMAP_IO");
    close_all();
}

/* The last advice about how data are read, in front of the system. */
static atomic_int map_advice, file_advice; /* threads of loaders write them too */

int madvise(void *at, size_t n_bytes, int advice)
{
    if (advice == MADV_RANDOM || advice == MADV_NORMAL)
        map_advice = advice;
    return (int)syscall(SYS_madvise, at, n_bytes, advice);
}

static int note_file_advice(int advice)
{
    if (advice == POSIX_FADV_RANDOM || advice == POSIX_FADV_NORMAL)
        file_advice = advice;
    return 0;
}

int posix_fadvise(int fd, off_t offset, off_t n_bytes, int advice)
{
    (void)fd, (void)offset, (void)n_bytes;
    return note_file_advice(advice);
}

int posix_fadvise64(int fd, off_t offset, off_t n_bytes, int advice)
{
    (void)fd, (void)offset, (void)n_bytes;
    return note_file_advice(advice);
}

TEST(advice_to_the_page_cache_outlives_another_batch_and_ends_with_the_loader)
{
    open_all();
    for (tokmap_io io = TOKMAP_IO_POPULATE; io <= TOKMAP_IO_READ; io++) {
        const bool mapped = io == TOKMAP_IO_POPULATE;
        setup s;
        tokmap_error err;
        set_up(&s, 1);
        s.options.io = io;
        tokmap_loader *l = corpus_open_loader(&s.options);
        for (uint32_t n_rows = 3; n_rows < 6; n_rows++) {
            CHECK_INT(tokmap_loader_set_batch(l, 0, 1, n_rows, &err), TOKMAP_OK);
            CHECK(mapped ? map_advice == MADV_RANDOM : file_advice == POSIX_FADV_RANDOM);
        }
        tokmap_loader_close(l);
        CHECK(mapped ? map_advice == MADV_NORMAL : file_advice == POSIX_FADV_NORMAL);
    }
    close_all();
}
