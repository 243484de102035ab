/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_store - a dataset in a store gives what it gives from a disk: documents, values,
 * views, lanes and rows in all orders; or an error that names the object. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "dataset/lane.h"
#include "dataset/store.h"
#include "loader/loader.h"
#include "support/bad_days.h"
#include "support/joined.h"
#include "support/loader_corpus.h"
#include "support/must.h"
#include "support/object_store.h"
#include "system/platform_thread.h"

enum {
    LENGTH = 19,
    N_ROWS = 5
};

static corpus_shape flat = {.name = "flat", .n_tokens = 6000, .token_bytes = 2};
static corpus_shape joined = {
    .name = "joined", .n_tokens = 6000, .token_bytes = 2, .n_segments = 23};
static object_store store;
static tokmap_dataset *flat_there, *joined_there; /* the same datasets in the store */
static tokmap_error err;

static void open_all(void)
{
    unsetenv("TOKMAP_IO");
    corpus_random_state = 1;
    corpus_cut(&flat, 40);
    joined.n_documents = flat.n_documents;
    memcpy(joined.ends, flat.ends, sizeof flat.ends);
    corpus_shape_open(&flat);
    corpus_shape_open(&joined);
    object_store_open(&store);
    flat_there = object_store_dataset(&store, flat.path);
    joined_there = object_store_dataset(&store, joined.path);
}

static void close_all(void)
{
    tokmap_dataset_close(flat_there);
    tokmap_dataset_close(joined_there);
    corpus_shape_close(&flat);
    corpus_shape_close(&joined);
}

/* Options for one dataset. */
typedef struct one_source {
    tokmap_loader_source source;
    tokmap_dataset *datasets[1];
    tokmap_view *views[1];
    tokmap_loader_options o;
} one_source;

static void use(one_source *s, tokmap_dataset *ds, int mode)
{
    *s = (one_source){.source = {.n_datasets = 1, .weight = 1},
                      .datasets = {ds},
                      .o = {LOADER_SIZES, .n_sources = 1, .sequence_length = LENGTH,
                            .batch_rows = N_ROWS, .n_ranks = 1, .row_parts = ALL_PARTS}};
    s->source.datasets = s->datasets;
    s->o.sources = &s->source;
    corpus_set_mode(&s->o, mode);
    s->o.seed = 7 + (uint64_t)mode;
}

static bool same_rows(const tokmap_batch *a, const tokmap_batch *b)
{
    static int64_t ids[4][N_ROWS * LENGTH];
    bool same = a->n_rows == b->n_rows && a->first_sample == b->first_sample;
    const bool mask_labels = a->rows->loss_mask != NULL;
    corpus_gather(a, mask_labels, ids[0], ids[1]);
    corpus_gather(b, mask_labels, ids[2], ids[3]);
    for (uint32_t i = 0; i < a->n_rows && same; i++)
        same = a->rows[i].window == b->rows[i].window && a->rows[i].epoch == b->rows[i].epoch &&
               a->rows[i].n_documents == b->rows[i].n_documents;
    return same && memcmp(ids[0], ids[2], sizeof ids[0]) == 0 &&
           memcmp(ids[1], ids[3], sizeof ids[1]) == 0;
}

/* Whether both loaders give the same n batches. */
static void check_same(const tokmap_loader_options *here, const tokmap_loader_options *there, int n)
{
    tokmap_loader *a = corpus_open_loader(here), *b = corpus_open_loader(there);
    tokmap_loader_info info = TOKMAP_INIT(tokmap_loader_info);
    CHECK_INT(tokmap_loader_get_info(b, &info), TOKMAP_OK);
    CHECK_INT(info.io, TOKMAP_IO_STORE);
    CHECK_SAYS(info.io_reason, "is in a store");
    for (int i = 0; i < n; i++) {
        const tokmap_batch x = corpus_next(a), y = corpus_next(b);
        CHECK(same_rows(&x, &y));
    }
    tokmap_loader_close(a);
    tokmap_loader_close(b);
}

/* ---- Open and look up ---- */

TEST(opening_takes_two_calls_and_one_for_the_first_rows)
{
    open_all();
    object_store_open(&store);
    tokmap_dataset *ds = object_store_dataset(&store, flat.path);
    CHECK_EQ(store.n_calls, 2);
    CHECK_EQ(store.n_reads, 2); /* the head, which is the whole index; the size of the tokens */
    uint16_t ids[10];
    CHECK_OK(tokmap_dataset_read(ds, 100, 10, ids, &err), err);
    CHECK_EQ(store.n_calls, 3);
    for (uint16_t i = 0; i < 10; i++)
        CHECK_EQ(ids[i], 100 + i);
    tokmap_dataset_close(ds);
    close_all();
}

TEST(documents_are_those_of_the_disk)
{
    open_all();
    for (uint64_t d = 0; d < flat.n_documents; d++) {
        tokmap_document a, b, c;
        CHECK_INT(tokmap_dataset_document(flat.ds, d, &a), TOKMAP_OK);
        CHECK_INT(tokmap_dataset_document(flat_there, d, &b), TOKMAP_OK);
        CHECK_INT(tokmap_dataset_document(joined_there, d, &c), TOKMAP_OK);
        CHECK(a.first_token == b.first_token && a.n_tokens == b.n_tokens);
        CHECK(a.first_token == c.first_token && a.n_tokens == c.n_tokens);
    }
    const tokmap_dataset_info a = must_info(flat.ds), b = must_info(flat_there);
    CHECK(memcmp(a.dataset_id, b.dataset_id, sizeof a.dataset_id) == 0);
    close_all();
}

TEST(tokens_are_read_and_not_mapped)
{
    open_all();
    const void *tokens;
    uint16_t wanted[6000], got[6000];
    CHECK_INT(tokmap_dataset_tokens(flat_there, 5, 10, &tokens), TOKMAP_IN_PIECES);
    CHECK_OK(tokmap_dataset_read(flat.ds, 0, 6000, wanted, &err), err);
    const unsigned n_calls = store.n_calls;
    CHECK_OK(tokmap_dataset_read(joined_there, 0, 6000, got, &err), err);
    CHECK_EQ(store.n_calls, n_calls + 1); /* for all its files */
    CHECK(memcmp(wanted, got, sizeof got) == 0);
    CHECK_INT(tokmap_dataset_tokens(flat_there, 6000, 0, &tokens), TOKMAP_OK);
    close_all();
}

TEST(all_shapes_open_and_values_are_those_of_the_disk)
{
    object_store_open(&store);
    for (int i = 0; i < N_SMALL_SHAPES; i++) {
        const shape *s = SMALL_SHAPES[i];
        must_store(s, check_path("any"));
        tokmap_dataset *ds = object_store_dataset(&store, check_path("any"));
        CHECK_INT(tokmap_dataset_verify(ds, NULL, NULL, &err), TOKMAP_ERR_UNSUPPORTED);
        tokmap_dataset *here = must_open(check_path("any"));
        for (uint32_t c = 0; c < s->n_columns; c++)
            for (uint64_t d = 0; d < s->n_documents; d++) {
                tokmap_value a, b;
                CHECK_INT(tokmap_dataset_get_meta(here, c, d, &a), TOKMAP_OK);
                CHECK_INT(tokmap_dataset_get_meta(ds, c, d, &b), TOKMAP_OK);
                CHECK_INT(a.type, b.type);
            }
        tokmap_dataset_close(here);
        tokmap_dataset_close(ds);
        remove_dataset(check_path("any"));
    }
}

/* ---- Rows ---- */

TEST(rows_are_those_of_the_disk_in_every_mode)
{
    open_all();
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        one_source here, there;
        use(&here, flat.ds, mode);
        use(&there, flat_there, mode);
        check_same(&here.o, &there.o, 150);
        use(&there, joined_there, mode);
        there.o.verify_blocks = mode % 2;
        check_same(&here.o, &there.o, 150);
    }
    close_all();
}

TEST(a_block_is_read_once_for_all_rows_of_a_step)
{
    open_all();
    object_store_open(&store);
    tokmap_dataset *ds = object_store_dataset(&store, flat.path);
    one_source s;
    use(&s, ds, 8); /* rows of many documents */
    s.o.verify_blocks = 1;
    const unsigned n_calls = store.n_calls, n_reads = store.n_reads;
    tokmap_loader *l = corpus_open_loader(&s.o);
    for (int i = 0; i < 50; i++)
        (void)corpus_next(l);
    tokmap_loader_close(l);
    CHECK(store.n_calls > n_calls);
    /* and its checksum; one call asks for a file of rows, which does not exist */
    CHECK_EQ(store.n_reads - n_reads, 2 * (store.n_calls - n_calls) - 1);
    tokmap_dataset_close(ds);
    close_all();
}

TEST(a_disk_and_a_store_go_together)
{
    open_all();
    corpus_shape other = {.name = "other", .n_tokens = 900, .first_id = 9000, .token_bytes = 2};
    corpus_cut(&other, 30);
    corpus_shape_open(&other);
    tokmap_dataset *here[] = {flat.ds, other.ds}, *there[] = {joined_there, other.ds};
    tokmap_loader_source a = {.datasets = here, .n_datasets = 2, .weight = 1}, b = a;
    b.datasets = there;
    one_source x, y;
    use(&x, flat.ds, 0);
    use(&y, flat.ds, 0);
    x.o.sources = &a;
    y.o.sources = &b;
    x.o.shuffle = y.o.shuffle = TOKMAP_SHUFFLE_FULL;
    check_same(&x.o, &y.o, 200);
    corpus_shape_close(&other);
    close_all();
}

TEST(a_state_of_the_disk_goes_on_in_the_store)
{
    open_all();
    uint8_t state[TOKMAP_STATE_BYTES];
    one_source here, there;
    use(&here, flat.ds, 1);
    use(&there, flat_there, 1);
    tokmap_loader *a = corpus_open_loader(&here.o), *b = corpus_open_loader(&there.o);
    for (int i = 0; i < 37; i++)
        (void)corpus_next(a);
    CHECK_OK(tokmap_loader_save(a, state, &err), err);
    (void)corpus_next(b);
    CHECK_OK(tokmap_loader_restore(b, state, &err), err);
    for (int i = 0; i < 37; i++) {
        const tokmap_batch x = corpus_next(a), y = corpus_next(b);
        CHECK(same_rows(&x, &y));
    }
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    close_all();
}

static void write_lane(tokmap_dataset *ds)
{
    const tokmap_lane_options o = {
        .struct_size = sizeof o, .name = "w", .type = TOKMAP_LANE_U32, .count = 1, .replace = 1};
    tokmap_lane_writer *w;
    uint32_t values[6000];
    for (uint32_t i = 0; i < 6000; i++)
        values[i] = 7 * i + 1;
    CHECK_OK(tokmap_lane_writer_open(&w, ds, &o, &err), err);
    CHECK_OK(tokmap_lane_writer_put(w, 0, values, must_info(ds).n_tokens, &err), err);
    CHECK_OK(tokmap_lane_writer_finish(w, &err), err);
    tokmap_lane_writer_close(w);
}

static void check_lanes(tokmap_dataset *here, tokmap_dataset *there, int mode)
{
    const char *names[] = {"w"};
    static uint32_t a_values[N_ROWS * LENGTH], b_values[N_ROWS * LENGTH];
    one_source x, y;
    use(&x, here, mode);
    use(&y, there, mode);
    x.o.lanes = y.o.lanes = names;
    x.o.n_lanes = y.o.n_lanes = 1;
    y.o.verify_blocks = mode % 2;
    tokmap_loader *a = corpus_open_loader(&x.o), *b = corpus_open_loader(&y.o);
    for (int i = 0; i < 60; i++) {
        const tokmap_batch p = corpus_next(a), q = corpus_next(b);
        CHECK(same_rows(&p, &q));
        CHECK_OK(tokmap_loader_gather_lane(a, 0, a_values, &err), err);
        CHECK_OK(tokmap_loader_gather_lane(b, 0, b_values, &err), err);
        CHECK(memcmp(a_values, b_values, sizeof a_values) == 0);
    }
    tokmap_loader_close(a);
    tokmap_loader_close(b);
}

TEST(lanes_are_those_of_the_disk)
{
    open_all();
    write_lane(flat.ds);
    write_lane(joined.ds);
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        check_lanes(flat.ds, flat_there, mode);
        check_lanes(joined.ds, joined_there, mode);
    }
    tokmap_lane *lane;
    CHECK_REFUSED(tokmap_lane_open(&lane, flat_there, "none", &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no lane 'none'");
    close_all();
}

TEST(rows_of_a_view_are_those_of_the_disk)
{
    open_all();
    uint8_t keep[CORPUS_MAX_DOCUMENTS / 8 + 1];
    for (size_t i = 0; i < sizeof keep; i++)
        keep[i] = (uint8_t)corpus_any(256);
    tokmap_view_options o = TOKMAP_INIT(tokmap_view_options);
    o.keep = keep;
    o.n_keep = flat.n_documents;
    tokmap_view *a, *b;
    CHECK_OK(tokmap_view_open(&a, flat.ds, &o, &err), err);
    CHECK_OK(tokmap_view_open(&b, joined_there, &o, &err), err);
    one_source x, y;
    use(&x, flat.ds, 1);
    use(&y, joined_there, 1);
    x.views[0] = a;
    y.views[0] = b;
    x.source.views = x.views;
    y.source.views = y.views;
    check_same(&x.o, &y.o, 100);
    tokmap_view_close(a);
    tokmap_view_close(b);
    close_all();
}

/* A dataset of 18,000,000 documents of one token, whose index is larger than what open reads. */
static void store_large(const char *path)
{
    enum {
        N = 18000000,
        N_AT_ONCE = 100000
    };
    static uint16_t ids[N_AT_ONCE];
    static uint64_t lengths[N_AT_ONCE];
    const tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 65536, .eod_id = TOKMAP_NO_ID, .replace = 1};
    tokmap_writer *w = must_begin(path, &o);
    for (uint32_t i = 0; i < N; i += N_AT_ONCE) {
        for (uint32_t k = 0; k < N_AT_ONCE; k++) {
            ids[k] = (uint16_t)((i + k) % 65521);
            lengths[k] = 1;
        }
        CHECK_OK(tokmap_writer_append_documents(w, ids, N_AT_ONCE, lengths, N_AT_ONCE, &err), err);
    }
    must_finish(w);
}

TEST(a_large_index_is_read_where_it_is_needed)
{
    if (!check_large())
        SKIP("writes 110 MB");
    object_store_open(&store);
    store_large(check_path("large"));
    tokmap_dataset *here = must_open(check_path("large")),
                   *there = object_store_dataset(&store, check_path("large"));
    CHECK(store.n_bytes < 1 << 20);
    one_source x, y;
    use(&x, here, 0);
    use(&y, there, 0);
    x.o.row_parts = y.o.row_parts = 0;
    check_same(&x.o, &y.o, 20);
    CHECK(store.n_bytes < 2 << 20);
    CHECK(!tokmap_i_store_has_index(there));
    tokmap_document a, b;
    CHECK_INT(tokmap_dataset_document(here, 17654321, &a), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_document(there, 17654321, &b), TOKMAP_OK);
    CHECK(a.first_token == b.first_token && a.n_tokens == b.n_tokens);
    CHECK(store.n_bytes > 64 << 20);
    CHECK(tokmap_i_store_has_index(there));
    use(&x, here, 4);
    use(&y, there, 4);
    check_same(&x.o, &y.o, 20);
    tokmap_dataset_close(here);
    tokmap_dataset_close(there);
    remove_dataset(check_path("large"));
}

TEST(an_index_on_a_disk_is_used)
{
    open_all();
    char path[700];
    snprintf(path, sizeof path, "%s", with_suffix(joined.path, ".tmi"));
    object_store_open(&store);
    store.source.index_path = path;
    tokmap_dataset *ds = object_store_dataset(&store, joined.path);
    CHECK_EQ(store.n_calls, 1); /* whether it is that of the store */
    CHECK(tokmap_i_store_has_index(ds));
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        one_source here, there;
        use(&here, flat.ds, mode);
        use(&there, ds, mode);
        there.o.verify_blocks = mode % 2;
        check_same(&here.o, &there.o, 30);
    }
    tokmap_dataset_close(ds);
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, with_suffix(STORE, flat.path), &store.source, &err),
                  TOKMAP_ERR_MISMATCH, err, "is not a copy of");
    store.source.index_path = "/nowhere.tmi";
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, STORE "/P", &store.source, &err), TOKMAP_ERR_IO,
                  err, "/nowhere.tmi");
    close_all();
}

/* ---- Refusals ---- */

TEST(another_way_of_reading_is_refused)
{
    open_all();
    one_source s;
    tokmap_loader *l;
    use(&s, flat_there, 0);
    s.o.io = TOKMAP_IO_DIRECT;
    CHECK_REFUSED(tokmap_loader_open(&l, &s.o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "io is 'direct', but");
    s.o.io = TOKMAP_IO_STORE;
    CHECK_INT(tokmap_loader_open(&l, &s.o, &err), TOKMAP_ERR_ARGUMENT);
    s.o.io = TOKMAP_IO_AUTO;
    setenv("TOKMAP_IO", "read", 1);
    CHECK_REFUSED(tokmap_loader_open(&l, &s.o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "TOKMAP_IO is 'read', but");
    unsetenv("TOKMAP_IO");
    use(&s, flat.ds, 0);
    s.o.verify_blocks = 1;
    CHECK_REFUSED(tokmap_loader_open(&l, &s.o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "verify_blocks is for datasets in a store");
    s.o.verify_blocks = 2;
    CHECK_REFUSED(tokmap_loader_open(&l, &s.o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "verify_blocks is 2");
    close_all();
}

TEST(what_needs_files_is_refused)
{
    open_all();
    const tokmap_lane_options o = {
        .struct_size = sizeof o, .name = "w", .type = TOKMAP_LANE_U32, .count = 1};
    tokmap_lane_writer *w;
    CHECK_REFUSED(tokmap_dataset_verify(joined_there, NULL, NULL, &err), TOKMAP_ERR_UNSUPPORTED,
                  err, "is in a store");
    CHECK_REFUSED(tokmap_lane_writer_open(&w, flat_there, &o, &err), TOKMAP_ERR_UNSUPPORTED, err,
                  "is in a store");
    CHECK_REFUSED(tokmap_view_write(flat_there,
                                    &(tokmap_view_options)TOKMAP_INIT(tokmap_view_options), NULL,
                                    &err),
                  TOKMAP_ERR_UNSUPPORTED, err, "is in a store");
    close_all();
}

TEST(what_is_no_object_is_named)
{
    object_store_open(&store);
    tokmap_dataset *ds;
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, STORE "/nowhere/P", &store.source, &err),
                  TOKMAP_ERR_IO, err, STORE "/nowhere/P.tmi");
    CHECK_EQ(err.sys_errno, ENOENT);
    store.source.read = NULL;
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, STORE "/nowhere/P", &store.source, &err),
                  TOKMAP_ERR_ARGUMENT, err, "read is NULL");
}

/* ---- Stores that answer as they should not ---- */

static void write_byte(const char *path, off_t at)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

TEST(every_wrong_byte_of_an_index_is_found)
{
    open_all();
    char path[700], name[700];
    snprintf(path, sizeof path, "%s", with_suffix(flat.path, ".tmi"));
    snprintf(name, sizeof name, STORE "%s", flat.path);
    const file_bytes whole = file_load(path);
    for (size_t i = 0; i < whole.n_bytes; i += 1 + corpus_any(3)) {
        tokmap_dataset *ds = NULL;
        write_byte(path, (off_t)i);
        CHECK(tokmap_dataset_open_from(&ds, name, &store.source, &err) != TOKMAP_OK);
        CHECK(ds == NULL);
        write_byte(path, (off_t)i);
    }
    free(whole.data);
    close_all();
}

TEST(a_wrong_byte_of_a_row_is_found_only_if_blocks_are_compared)
{
    open_all();
    one_source s;
    use(&s, flat_there, 0);
    const uint64_t at = must_info(flat.ds).token_offset + 2 * 40;
    write_byte(with_suffix(flat.path, ".bin"), (off_t)at);
    tokmap_loader *l = corpus_open_loader(&s.o);
    const tokmap_batch b = corpus_next(l);
    CHECK(corpus_id(&b.rows[2], 40 - 2 * LENGTH) != 40);
    tokmap_loader_close(l);
    s.o.verify_blocks = 1;
    l = corpus_open_loader(&s.o);
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    CHECK_REFUSED(tokmap_loader_next(l, &batch, &err), TOKMAP_ERR_CORRUPT, err,
                  "flat.bin: damaged: the MiB from byte");
    write_byte(with_suffix(flat.path, ".bin"), (off_t)at);
    CHECK_OK(tokmap_loader_next(l, &batch, &err), err);
    tokmap_loader_close(l);
    close_all();
}

TEST(a_replaced_object_is_an_error)
{
    open_all();
    one_source s;
    use(&s, joined_there, 1);
    tokmap_loader *l = corpus_open_loader(&s.o);
    (void)corpus_next(l);
    tokmap_loader_close(l);
    atomic_store(&store.version, "2");
    uint16_t ids[10];
    CHECK_REFUSED(tokmap_dataset_read(flat_there, 0, 10, ids, &err), TOKMAP_ERR_MISMATCH, err,
                  "flat.bin: the object was replaced");
    close_all();
}

TEST(an_answer_that_is_short_or_too_long_is_an_error)
{
    open_all();
    uint16_t ids[10];
    atomic_store(&store.cuts, true);
    CHECK_REFUSED(tokmap_dataset_read(flat_there, 0, 10, ids, &err), TOKMAP_ERR_IO, err,
                  "flat.bin: the object ends at byte");
    atomic_store(&store.cuts, false);
    atomic_store(&store.claims_more, true);
    CHECK_REFUSED(tokmap_dataset_read(flat_there, 0, 10, ids, &err), TOKMAP_ERR_ARGUMENT, err,
                  "read more than was asked for");
    close_all();
}

static tokmap_status say_end(void *context, tokmap_byte_read *reads, size_t n, tokmap_error *e)
{
    (void)context, (void)reads, (void)n, (void)e;
    return TOKMAP_END;
}

TEST(a_source_that_fails_with_no_error_does_not_end_the_rows)
{
    tokmap_dataset *ds;
    const tokmap_byte_source source = {.struct_size = sizeof source, .read = say_end};
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, STORE "/P", &source, &err), TOKMAP_ERR_ARGUMENT,
                  err, "which is no error");
}

TEST(an_object_of_another_size_is_an_error)
{
    open_all();
    char path[700];
    tokmap_dataset *ds;
    snprintf(path, sizeof path, "%s", with_suffix(flat.path, ".bin"));
    file_bytes whole = file_cut(path, 100);
    CHECK_REFUSED(tokmap_dataset_open_from(&ds, with_suffix(STORE, flat.path), &store.source, &err),
                  TOKMAP_ERR_CORRUPT, err, "has 100 bytes, but its index");
    CHECK(file_store(path, whole.data, whole.n_bytes));
    free(whole.data);
    close_all();
}

TEST(a_store_need_not_know_sizes)
{
    open_all();
    atomic_store(&store.has_sizes, false);
    tokmap_dataset *ds = object_store_dataset(&store, flat.path);
    uint16_t ids[10];
    CHECK_OK(tokmap_dataset_read(ds, 5990, 10, ids, &err), err);
    CHECK_EQ(ids[9], 5999);
    tokmap_dataset_close(ds);
    close_all();
}

/* ---- Failures and time ---- */

TEST(after_a_failed_read_the_next_call_has_the_same_rows)
{
    open_all();
    one_source here, there;
    use(&here, flat.ds, 1);
    use(&there, flat_there, 1);
    there.o.look_ahead = 3;
    tokmap_loader *a = corpus_open_loader(&here.o), *b = corpus_open_loader(&there.o);
    uint32_t n_failed = 0;
    for (int i = 0; i < 200; i++) {
        tokmap_batch x = corpus_next(a), y = TOKMAP_INIT(tokmap_batch);
        atomic_store(&store.n_to_fail, (int)corpus_any(8));
        while (tokmap_loader_next(b, &y, &err)) {
            CHECK_REFUSED(err.status, TOKMAP_ERR_IO, err, "the store is out of order");
            CHECK_EQ(err.sys_errno, EIO);
            n_failed++;
        }
        CHECK(same_rows(&x, &y));
    }
    CHECK(n_failed > 10);
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    close_all();
}

TEST(steps_are_read_at_the_same_time)
{
    open_all();
    one_source s;
    use(&s, flat_there, 1);
    atomic_store(&store.delay_us, 20000);
    tokmap_loader *l = corpus_open_loader(&s.o);
    for (int i = 0; i < 100; i++)
        (void)corpus_next(l);
    CHECK(store.most_running > 8);
    tokmap_loader_close(l);
    close_all();
}

TEST(a_wait_ends_when_the_time_is_up_or_the_rows_are_there)
{
    open_all();
    one_source here, there;
    use(&here, flat.ds, 1);
    use(&there, flat_there, 1);
    here.source.max_epochs = there.source.max_epochs = 1;
    tokmap_loader *a = corpus_open_loader(&here.o), *b = corpus_open_loader(&there.o);
    atomic_store(&store.stalls, true);
    CHECK_INT(tokmap_loader_wait(b, 0, &err), TOKMAP_NOT_READY);
    const uint64_t begun_ns = tokmap_i_now_ns();
    for (int i = 0; i < 3; i++)
        CHECK_INT(tokmap_loader_wait(b, 10000000, &err), TOKMAP_NOT_READY);
    CHECK(tokmap_i_now_ns() - begun_ns >= 30000000);
    CHECK_EQ(tokmap_loader_position(b), 0);
    atomic_store(&store.stalls, false);
    CHECK_INT(tokmap_loader_wait(a, UINT64_MAX, &err), TOKMAP_OK);
    CHECK_INT(tokmap_loader_wait(b, UINT64_MAX, &err), TOKMAP_OK);
    tokmap_batch x = corpus_next(a), y = corpus_next(b);
    CHECK(same_rows(&x, &y));
    tokmap_loader_info info = TOKMAP_INIT(tokmap_loader_info);
    CHECK_INT(tokmap_loader_get_info(b, &info), TOKMAP_OK);
    CHECK_EQ(info.n_waits, 1);
    CHECK(info.waited_ns >= 30000000);
    CHECK_EQ(info.waited_ns, info.wait_max_ns);
    tokmap_status status;
    while (!(status = tokmap_loader_next(b, &y, &err)))
        CHECK_INT(tokmap_loader_wait(b, UINT64_MAX, &err), TOKMAP_OK);
    CHECK_INT(status, TOKMAP_END);
    CHECK_INT(tokmap_loader_wait(b, 0, &err), TOKMAP_OK);
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    close_all();
}

TEST(a_wait_ends_when_the_rows_cannot_be_read)
{
    open_all();
    one_source here, there;
    use(&here, flat.ds, 1);
    use(&there, flat_there, 1);
    there.o.look_ahead = 1;
    tokmap_loader *a = corpus_open_loader(&here.o), *b = corpus_open_loader(&there.o);
    for (int i = 0; i < 50; i++) {
        tokmap_batch x = corpus_next(a), y = TOKMAP_INIT(tokmap_batch);
        atomic_store(&store.n_to_fail, 1000);
        while (tokmap_loader_wait(b, 1000000, &err) == TOKMAP_NOT_READY)
            continue;
        if (tokmap_loader_next(b, &y, &err) == TOKMAP_OK) { /* it had been read before */
            CHECK(same_rows(&x, &y));
            continue;
        }
        CHECK_REFUSED(err.status, TOKMAP_ERR_IO, err, "the store is out of order");
        atomic_store(&store.n_to_fail, 0);
        CHECK_INT(tokmap_loader_wait(b, UINT64_MAX, &err), TOKMAP_OK);
        CHECK_OK(tokmap_loader_next(b, &y, &err), err);
        CHECK(same_rows(&x, &y));
    }
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    close_all();
}

TEST(closing_cancels_reads_that_would_never_end)
{
    open_all();
    one_source s;
    use(&s, flat_there, 1);
    tokmap_loader *l = corpus_open_loader(&s.o);
    (void)corpus_next(l);
    atomic_store(&store.stalls, true);
    CHECK_OK(tokmap_loader_seek(l, 50, &err), err); /* its reads begin, and never end */
    while (store.n_running == 0)
        tokmap_i_sleep_ns(1000000);
    tokmap_loader_close(l);
    CHECK(store.n_cancelled > 0);
    CHECK_EQ(store.n_running, 0);
    close_all();
}

TEST(a_step_elsewhere_cancels_what_was_read_ahead)
{
    open_all();
    one_source here, there;
    use(&here, flat.ds, 1);
    use(&there, flat_there, 1);
    tokmap_loader *a = corpus_open_loader(&here.o), *b = corpus_open_loader(&there.o);
    for (int i = 0; i < 20; i++) {
        atomic_store(&store.stalls, i % 2 == 0);
        const uint64_t sample = corpus_any(100);
        CHECK_OK(tokmap_loader_seek(a, sample, &err), err);
        CHECK_OK(tokmap_loader_seek(b, sample, &err), err);
        tokmap_i_sleep_ns(2000000);
        if (i % 2 == 0)
            continue;
        const tokmap_batch x = corpus_next(a), y = corpus_next(b);
        CHECK(same_rows(&x, &y));
    }
    atomic_store(&store.stalls, false);
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    close_all();
}

TEST(a_forked_child_may_close_its_loader)
{
    open_all();
    one_source s;
    use(&s, flat_there, 1);
    tokmap_loader *l = corpus_open_loader(&s.o);
    (void)corpus_next(l);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tokmap_loader_close(l);
        _exit(0);
    }
    must_end(child);
    (void)corpus_next(l);
    tokmap_loader_close(l);
    close_all();
}
