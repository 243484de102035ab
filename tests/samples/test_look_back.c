/* SPDX-License-Identifier: Apache-2.0 */
/* test_look_back - from tokens back to samples, the labels of documents and lines of a ledger, as
 * a C program asks for them. test_python_look_back.py and test_python_ledger.py have many runs. */
#include "support/faults.h"
#include "support/loader_corpus.h"

enum {
    LENGTH = 7,
    N_SAMPLES = 400
};

static corpus_shape shape = {.name = "look \"back\"\n", .n_tokens = 1200, .token_bytes = 2};
static tokmap_error err;

/* Two sources of the same data, with skips. */
static tokmap_loader *open_run(int mode)
{
    static const tokmap_loader_skip skips[] = {{30, 41}, {41, 60}, {395, 400}};
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source sources[] = {{.datasets = &ds, .n_datasets = 1, .weight = 2},
                                            {.datasets = &ds, .n_datasets = 1, .weight = 0.1}};
    tokmap_loader_options o = {LOADER_SIZES,    .sources = sources,
                               .n_sources = 2,  .sequence_length = LENGTH,
                               .batch_rows = 3, .skips = skips,
                               .n_skips = 3,    .io = mode % 2 ? TOKMAP_IO_READ : TOKMAP_IO_MAP};
    corpus_set_mode(&o, mode);
    return corpus_open_loader(&o);
}

static tokmap_sample locate(tokmap_loader *l, uint64_t g)
{
    tokmap_sample s = {.struct_size = sizeof s};
    CHECK_OK(tokmap_loader_locate(l, g, &s, &err), err);
    return s;
}

static bool has_token(const tokmap_sample *s, uint64_t token)
{
    for (size_t k = 0; k < s->n_pieces; k++)
        if (token - s->pieces[k].first_token < s->pieces[k].n_tokens)
            return true;
    return !s->pieces && (token + shape.n_tokens - s->first_token) % shape.n_tokens < s->n_tokens;
}

TEST(a_token_is_found_in_the_samples_that_have_it)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        tokmap_loader *l = open_run(mode);
        for (int i = 0; i < 100; i++) {
            const uint64_t token = check_below(shape.n_tokens);
            const tokmap_sample at = locate(l, check_below(N_SAMPLES));
            uint64_t found[4], n = 0;
            tokmap_loader_search s = {.struct_size = sizeof s,
                                      .source = at.source,
                                      .epoch = at.epoch,
                                      .first_token = token,
                                      .n_tokens = 1,
                                      .samples = found,
                                      .max_samples = 4};
            CHECK_OK(tokmap_loader_find(l, &s, &err), err);
            CHECK(s.n_found <= 4);
            for (uint64_t k = 0; k < s.n_found; k++)
                n += found[k] < N_SAMPLES;
            for (uint64_t g = 0; g < N_SAMPLES; g++) {
                const tokmap_sample row = locate(l, g);
                bool is_found = false;
                for (uint64_t k = 0; k < s.n_found; k++)
                    is_found |= found[k] == g;
                CHECK(is_found ==
                      (row.source == at.source && row.epoch == at.epoch && has_token(&row, token)));
                n -= is_found;
            }
            CHECK_EQ(n, 0);
            s.samples = NULL;
            CHECK_REFUSED(tokmap_loader_find(l, &s, &err), TOKMAP_ERR_ARGUMENT, err, "samples");
            s.max_samples = 0; /* only counts */
            CHECK_OK(tokmap_loader_find(l, &s, &err), err);
        }
        tokmap_loader_close(l);
    }
    corpus_shape_close(&shape);
}

TEST(samples_of_each_source_are_counted)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    tokmap_loader *l = open_run(0);
    uint64_t wanted[2] = {0}, counts[2];
    for (uint64_t g = 0; g < N_SAMPLES; g++) {
        CHECK_OK(tokmap_loader_count_samples(l, g, counts, &err), err);
        CHECK(counts[0] == wanted[0] && counts[1] == wanted[1]);
        wanted[locate(l, g).source]++;
    }
    CHECK(wanted[0] > 0 && wanted[1] > 0);
    tokmap_loader_source_info info = {.struct_size = sizeof info};
    CHECK_OK(tokmap_loader_seek(l, 200, &err), err);
    CHECK_OK(tokmap_loader_count_samples(l, 200, counts, &err), err);
    CHECK_EQ(tokmap_loader_get_source(l, 1, &info), TOKMAP_OK);
    CHECK_EQ(info.n_samples_before, counts[1]);
    CHECK_EQ(tokmap_loader_count_samples(l, (uint64_t)1 << 63, counts, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_EQ(tokmap_loader_count_samples(l, 0, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_EQ(tokmap_loader_count_samples(NULL, 0, counts, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_loader_close(l);
    corpus_shape_close(&shape);
}

/* The second one leaves out some 10^15 epochs. */
TEST(epochs_that_are_skipped_take_no_time)
{
    static uint64_t got[2][CORPUS_MAX_DOCUMENTS];
    const uint64_t far = (uint64_t)1 << 60;
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        for (int i = 0; i < 2; i++) {
            tokmap_loader_options o = {LOADER_SIZES,    .sources = &source,
                                       .n_sources = 1,  .sequence_length = LENGTH,
                                       .batch_rows = 1, .io = TOKMAP_IO_MAP};
            corpus_set_mode(&o, mode);
            tokmap_loader *l = corpus_open_loader(&o);
            tokmap_loader_source_info info = {.struct_size = sizeof info};
            CHECK_EQ(tokmap_loader_get_source(l, 0, &info), TOKMAP_OK);
            tokmap_loader_close(l);
            /* Whole epochs before the skip, and nothing of the one in which it ends. */
            const uint64_t begin = 2 * info.n_windows;
            const tokmap_loader_skip skip = {begin, i ? far - far % info.n_windows : begin + 1};
            o.skips = &skip;
            o.n_skips = 1;
            l = corpus_open_loader(&o);
            const tokmap_loader_labels labels = {.struct_size = sizeof labels,
                                                 .n_documents = shape.n_documents,
                                                 .end_sample = skip.end_sample,
                                                 .labels = got[i]};
            CHECK_OK(tokmap_loader_count_labels(l, &labels, &err), err);
            tokmap_loader_close(l);
        }
        CHECK(memcmp(got[0], got[1], sizeof got[0]) == 0);
    }
    corpus_shape_close(&shape);
}

static void add_labels(const tokmap_row *row, uint64_t *of_documents)
{
    for (uint32_t i = 1; i < row->n_tokens; i++) {
        const tokmap_piece *p = corpus_piece(row, i);
        uint32_t d = 0;
        if (p && p->place != i)
            of_documents[p->document]++;
        if (p)
            continue;
        while (shape.ends[d] <= (row->first_token + i) % shape.n_tokens)
            d++;
        of_documents[d]++;
    }
}

TEST(labels_are_those_of_the_rows_that_were_given)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        static uint64_t wanted[2][CORPUS_MAX_DOCUMENTS], got[CORPUS_MAX_DOCUMENTS];
        tokmap_loader *l = open_run(mode);
        memset(wanted, 0, sizeof wanted);
        while (tokmap_loader_position(l) < 395) {
            const tokmap_batch b = corpus_next(l);
            uint32_t sources[60];
            CHECK_OK(tokmap_loader_sources_of(l, b.rows[0].sample, 60, sources, &err), err);
            for (uint32_t r = 0; r < b.n_rows; r++) {
                CHECK_EQ(sources[b.rows[r].sample - b.rows[0].sample], b.rows[r].source);
                add_labels(&b.rows[r], wanted[b.rows[r].source]);
            }
        }
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t first = check_below(shape.n_documents);
            const tokmap_loader_labels o = {.struct_size = sizeof o,
                                            .source = k,
                                            .first_document = first,
                                            .n_documents = shape.n_documents - first,
                                            .end_sample = tokmap_loader_position(l),
                                            .labels = got};
            CHECK_OK(tokmap_loader_count_labels(l, &o, &err), err);
            for (uint32_t d = first; d < shape.n_documents; d++)
                CHECK_EQ(got[d - first], wanted[k][d]);
            tokmap_loader_labels none = o;
            none.first_document = shape.n_documents;
            none.n_documents = 0;
            CHECK_OK(tokmap_loader_count_labels(l, &none, &err), err);
            none.first_document++;
            CHECK_INT(tokmap_loader_count_labels(l, &none, &err), TOKMAP_ERR_ARGUMENT);
        }
        tokmap_loader_close(l);
    }
    corpus_shape_close(&shape);
}

/* Opens a run, amends it with itself, and looks back. */
static tokmap_status amend_and_look(const uint8_t *state)
{
    static const tokmap_loader_skip skip = {30, 60};
    tokmap_dataset *ds = shape.ds;
    const double weights[2] = {1, 1};
    const tokmap_loader_source sources[2] = {{.datasets = &ds, .n_datasets = 1, .weight = 1},
                                             {.datasets = &ds, .n_datasets = 1}};
    const tokmap_loader_phase phase = {.first_sample = 50, .weights = weights};
    tokmap_loader_options o = {LOADER_SIZES,     .sources = sources,        .n_sources = 1,
                               .skips = &skip,   .sequence_length = LENGTH, .batch_rows = 3,
                               .phases = &phase, .io = TOKMAP_IO_MAP};
    const tokmap_loader_options before = o;
    uint64_t found[4], labels[4];
    tokmap_loader_search s = {
        .struct_size = sizeof s, .n_tokens = 9, .samples = found, .max_samples = 4};
    const tokmap_loader_labels wanted = {
        .struct_size = sizeof wanted, .n_documents = 4, .end_sample = 100, .labels = labels};
    tokmap_loader *l = NULL;
    o.n_sources = 2;
    o.n_skips = o.n_phases = 1;
    tokmap_status status = tokmap_loader_open(&l, &o, &err);
    if (!status)
        status = tokmap_loader_amend(l, state, &before, &err);
    if (!status)
        status = tokmap_loader_find(l, &s, &err);
    if (!status)
        status = tokmap_loader_count_labels(l, &wanted, &err);
    tokmap_loader_close(l);
    return status;
}

TEST(memory_that_runs_out_is_an_error_and_nothing_is_lost)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options o = {LOADER_SIZES,    .sources = &source,
                                     .n_sources = 1,  .sequence_length = LENGTH,
                                     .batch_rows = 3, .io = TOKMAP_IO_MAP};
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_loader *l = corpus_open_loader(&o);
    CHECK_OK(tokmap_loader_save_at(l, 30, state, &err), err);
    tokmap_loader_close(l);
    CHECK_OK(amend_and_look(state), err);
    bool fired = FAULT_MEMORY_WORKS;
    for (uint64_t n = 1; fired; n++) {
        const int64_t before = fault_n_live;
        fault_arm(FAULT_ONCE, FAULT_MEMORY, ENOMEM, n);
        const tokmap_status status = amend_and_look(state);
        fired = fault_disarm();
        CHECK_INT(status, fired ? TOKMAP_ERR_MEMORY : TOKMAP_OK);
        CHECK_INT(fault_n_live, before);
        CHECK(fired || n > 30);
    }
    corpus_shape_close(&shape);
    if (!FAULT_MEMORY_WORKS)
        SKIP("a sanitizer has its own memory");
}

TEST(a_line_of_a_ledger_follows_the_one_before)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    static char first[8192], second[8192];
    tokmap_loader *l = open_run(0);
    tokmap_ledger_entry e = {
        .struct_size = sizeof e, .event = "opened", .host = "h\\\xC3\xBC", .micro_batches = 3};
    size_t n = 10, n_second = sizeof second;
    CHECK_REFUSED(tokmap_loader_ledger_line(l, &e, first, &n, &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is room for 10");
    const size_t needed = n;
    n = 0;
    CHECK_INT(tokmap_loader_ledger_line(l, &e, NULL, &n, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_EQ(n, needed);
    for (size_t room = needed - 40; room <= needed; room++) {
        n = room;
        CHECK_INT(tokmap_loader_ledger_line(l, &e, first, &n, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_EQ(n, needed);
    }
    n = needed + 1;
    CHECK_OK(tokmap_loader_ledger_line(l, &e, first, &n, &err), err);
    CHECK(n == needed && strlen(first) == n);
    CHECK_SAYS(first, "\"host\":\"h\\\\x5c\\\\xc3\\\\xbc\"");
    CHECK_SAYS(first, "look \\\"back\\\"\\\\x0a.tmi\"");
    CHECK_SAYS(first, "\"skips\":[[\"30\",\"60\"],[\"395\",\"400\"]]");
    CHECK_SAYS(first, "\"weights\":[2,0.10000000000000001],\"quotas\":[20,1]");
    e = (tokmap_ledger_entry){
        .struct_size = sizeof e, .event = "skipped", .after = first, .sample = 35};
    CHECK_OK(tokmap_loader_ledger_line(l, &e, second, &n_second, &err), err);
    CHECK_SAYS(second, "\"from\":\"35\",\"sample\":\"60\"");
    CHECK_OK(tokmap_ledger_check(first, n, NULL, &err), err);
    CHECK_OK(tokmap_ledger_check(second, n_second, first, &err), err);
    CHECK_REFUSED(tokmap_ledger_check(second, n_second, NULL, &err), TOKMAP_ERR_CORRUPT, err,
                  "does not follow");
    CHECK_REFUSED(tokmap_ledger_check(first, n, second, &err), TOKMAP_ERR_CORRUPT, err,
                  "does not follow");
    for (size_t i = 0; i < n; i++) {
        first[i] ^= 1;
        CHECK(tokmap_ledger_check(first, n, NULL, &err) != TOKMAP_OK);
        first[i] ^= 1;
    }
    for (size_t i = 0; i < n; i++)
        CHECK_INT(tokmap_ledger_check(first, i, NULL, &err), TOKMAP_ERR_CORRUPT);
    e.after = "no line";
    CHECK_REFUSED(tokmap_loader_ledger_line(l, &e, second, &n_second, &err), TOKMAP_ERR_ARGUMENT,
                  err, "is not a line of a ledger");
    tokmap_loader_close(l);
    corpus_shape_close(&shape);
}

TEST(rows_that_are_packed_without_memory_are_an_error)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    const tokmap_rows_options rows = {
        .struct_size = sizeof rows, .sequence_length = 16, .path = check_path("rows")};
    bool fired = FAULT_MEMORY_WORKS;
    for (uint64_t n = 1; fired; n++) {
        const int64_t before = fault_n_live;
        fault_arm(FAULT_ONCE, FAULT_MEMORY, ENOMEM, n);
        const tokmap_status status = tokmap_rows_write(shape.ds, &rows, NULL, &err);
        fired = fault_disarm();
        CHECK_INT(status, fired ? TOKMAP_ERR_MEMORY : TOKMAP_OK);
        CHECK_INT(fault_n_live, before);
        CHECK(fired || n > 6);
    }
    corpus_shape_close(&shape);
    if (!FAULT_MEMORY_WORKS)
        SKIP("a sanitizer has its own memory");
}
