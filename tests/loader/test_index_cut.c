/* SPDX-License-Identifier: Apache-2.0 */
/* test_index_cut - an index file that is cut while a loader or a stage uses it: an error of the
 * step, which can be tried again, and no signal in a thread of the library. */
#include <fcntl.h>
#include <signal.h>

#include "support/check.h"
#include "dataset/index_cache.h"
#include "tokmap_stage.h"
#include "support/bad_days.h"
#include "support/loader_corpus.h"
#include "support/must.h"

enum {
    N_DOCUMENTS = 60000, /* 60 blocks of the index */
    N_ROWS = 3,
    LENGTH = 16,
    N_STEPS = 4000 /* of which most look at a block that the ones before did not */
};

static tokmap_dataset *ds;
static char prefix[600], index_path[640];
static file_bytes index_file;

static void open_dataset(void)
{
    const shape many = {.name = "cut",
                        .vocab_size = 65536,
                        .n_tokens = 5 * N_DOCUMENTS,
                        .n_documents = N_DOCUMENTS,
                        .metadata = "{}"};
    snprintf(prefix, sizeof prefix, "%s/cut", check_dir());
    snprintf(index_path, sizeof index_path, "%s.tmi", prefix);
    must_store(&many, prefix);
    ds = must_open(prefix);
    index_file = file_load(index_path);
}

static void close_dataset(void)
{
    tokmap_dataset_close(ds);
    free(index_file.data);
}

static void cut_index(size_t n_left)
{
    CHECK(truncate(index_path, (off_t)n_left) == 0);
}

static void repair_index(void)
{
    CHECK(file_store(index_path, index_file.data, index_file.n_bytes));
}

/* ---- The ways to look documents up ---- */

typedef struct way {
    tokmap_io io;
    tokmap_windows windows;
    tokmap_shuffle shuffle;
    uint32_t row_parts;
} way;

static const way ways[] = {
    {TOKMAP_IO_READ, TOKMAP_WINDOWS_CONCAT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_READ, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_READ, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_BLOCK, 0},
    {TOKMAP_IO_POPULATE, TOKMAP_WINDOWS_CONCAT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_POPULATE, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_FULL, 0},
    {TOKMAP_IO_POPULATE, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_BLOCK, ALL_PARTS},
    {TOKMAP_IO_DIRECT, TOKMAP_WINDOWS_CONCAT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_DIRECT, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_MAP, TOKMAP_WINDOWS_CONCAT, TOKMAP_SHUFFLE_FULL, ALL_PARTS},
    {TOKMAP_IO_MAP, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_FULL, 0},
    {TOKMAP_IO_MAP, TOKMAP_WINDOWS_WITHIN_DOCUMENT, TOKMAP_SHUFFLE_BLOCK, ALL_PARTS},
};
#define N_WAYS (sizeof ways / sizeof ways[0])

static tokmap_loader *open_loader(const way *w)
{
    static tokmap_dataset *list[1];
    static tokmap_loader_source source;
    list[0] = ds;
    const bool blocks = w->shuffle == TOKMAP_SHUFFLE_BLOCK;
    source = (tokmap_loader_source){.datasets = list, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options o = {LOADER_SIZES,
                                     .sources = &source,
                                     .n_sources = 1,
                                     .sequence_length = LENGTH,
                                     .batch_rows = N_ROWS,
                                     .seed = 3,
                                     .windows = w->windows,
                                     .shuffle = w->shuffle,
                                     .block_windows = blocks ? 50 : 0,
                                     .group_blocks = blocks ? 4 : 0,
                                     .row_parts = w->row_parts,
                                     .io = w->io,
                                     .look_ahead = 2};
    return corpus_open_loader(&o);
}

static void check_error(tokmap_status status, const tokmap_error *err, uint64_t n_left)
{
    CHECK_INT(status, TOKMAP_ERR_IO);
    CHECK_INT(err->status, TOKMAP_ERR_IO);
    CHECK_EQ(err->file_offset, n_left);
    CHECK_SAYS(err->text, index_path);
    CHECK_SAYS(err->text, "shortened");
}

/* ---- The cache ---- */

/* Of two blocks, so that nearly every lookup reads. */
TEST(a_cache_that_is_too_small_finds_what_the_map_holds)
{
    open_dataset();
    tokmap_i_index_cache *c = tokmap_i_index_cache_open(1);
    CHECK(tokmap_i_index_cache_bytes(c) < 16384);
    uint64_t token = 1;
    for (int i = 0; i < 20000; i++) {
        tokmap_document a, b;
        token = token * 6364136223846793005u + 1442695040888963407u;
        const uint64_t at = (token >> 33) % ds->header.n_tokens;
        CHECK_INT(tokmap_i_documents_find(&ds->documents, tokmap_i_index_cache_of(c, ds), at, &a),
                  TOKMAP_OK);
        CHECK_INT(tokmap_dataset_find_document(ds, at, &b), TOKMAP_OK);
        CHECK(memcmp(&a, &b, sizeof a) == 0);
    }
    tokmap_i_index_cache_close(c);
    close_dataset();
}

static uint64_t cache_bytes(uint64_t n_bytes)
{
    tokmap_i_index_cache *c = tokmap_i_index_cache_open(n_bytes);
    const uint64_t taken = tokmap_i_index_cache_bytes(c);
    tokmap_i_index_cache_close(c);
    return taken;
}

TEST(a_cache_has_at_most_16_mib_of_blocks)
{
    const uint64_t most = cache_bytes((uint64_t)4096 * 4096);
    CHECK(most > (16 << 20) && most < (24 << 20));
    CHECK_EQ(cache_bytes((uint64_t)1 << 40), most);
    CHECK(cache_bytes((uint64_t)2047 * 4096) < most);
}

/* ---- Loaders ---- */

/* Against a loader that reads in another way. */
static void check_rows(tokmap_loader *l, const way *w, int n_steps)
{
    way mapped = *w;
    mapped.io = TOKMAP_IO_MAP;
    tokmap_loader *other = open_loader(&mapped);
    tokmap_error err;
    tokmap_batch a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    CHECK_INT(tokmap_loader_seek(other, tokmap_loader_position(l), &err), TOKMAP_OK);
    for (int i = 0; i < n_steps; i++) {
        a = corpus_next(l);
        b = corpus_next(other);
        for (uint32_t r = 0; r < N_ROWS; r++) {
            const tokmap_row *x = &a.rows[r], *y = &b.rows[r];
            CHECK_EQ(x->first_token, y->first_token);
            CHECK_EQ(x->n_tokens, y->n_tokens);
            CHECK(memcmp(x->tokens, y->tokens, 2 * (size_t)x->n_tokens) == 0);
            CHECK_EQ(x->n_documents, y->n_documents);
            CHECK(!w->row_parts ||
                  (memcmp(x->cu_seqlens, y->cu_seqlens, 4 * (size_t)(x->n_documents + 1)) == 0 &&
                   memcmp(x->loss_mask, y->loss_mask, LENGTH) == 0));
        }
    }
    tokmap_loader_close(other);
}

static void cut_under_loader(const way *w, size_t n_left)
{
    tokmap_loader *l = open_loader(w);
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_error err = {0};
    check_rows(l, w, 3);
    cut_index(n_left);
    tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < N_STEPS && !status; i++)
        status = tokmap_loader_next(l, &b, &err);
    check_error(status, &err, n_left);
    const uint64_t position = tokmap_loader_position(l);
    check_error(tokmap_loader_next(l, &b, &err), &err, n_left);
    CHECK_EQ(tokmap_loader_position(l), position);
    repair_index();
    check_rows(l, w, 300);
    tokmap_loader_close(l);
}

TEST(a_loader_that_does_not_use_the_map_says_what_is_missing_and_goes_on)
{
    open_dataset();
    for (size_t i = 0; i < N_WAYS && ways[i].io != TOKMAP_IO_MAP; i++) {
        cut_under_loader(&ways[i], 0);
        cut_under_loader(&ways[i], index_file.n_bytes / 3);
    }
    close_dataset();
}

static void end_by_signal(int signal)
{
    (void)signal;
    _exit(77);
}

/* In the caller's thread, where the manual says so, and where a handler is of use. */
TEST(a_loader_in_the_map_raises_the_signal_that_the_manual_names)
{
    open_dataset();
    for (size_t i = 0; i < N_WAYS; i++) {
        if (ways[i].io != TOKMAP_IO_MAP)
            continue;
        const pid_t child = fork();
        if (child == 0) {
            tokmap_loader *l = open_loader(&ways[i]);
            tokmap_batch b = {.struct_size = sizeof b};
            signal(SIGBUS, end_by_signal);
            cut_index(0);
            for (int k = 0; k < N_STEPS; k++)
                tokmap_loader_next(l, &b, NULL);
            _exit(0);
        }
        CHECK_INT(must_exit(child), 77);
        repair_index();
    }
    close_dataset();
}

/* ---- Stages ---- */

static tokmap_stage *open_stage(tokmap_loader *l, const way *w, int32_t no_thread)
{
    const uint32_t documents =
        w->row_parts ? TOKMAP_STAGE_CU_SEQLENS | TOKMAP_STAGE_DOCUMENT_IDS : 0;
    const tokmap_stage_options o = {.struct_size = sizeof o,
                                    .loader = l,
                                    .device = TOKMAP_STAGE_HOST,
                                    .outputs =
                                        TOKMAP_STAGE_INPUTS | TOKMAP_STAGE_LABELS | documents,
                                    .n_slots = 2,
                                    .n_host_slots = 2,
                                    .no_thread = no_thread};
    tokmap_stage *s = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_stage_open(&s, &o, &err), err);
    return s;
}

static tokmap_status next_batch(tokmap_stage *s, tokmap_stage_batch *b, tokmap_error *err)
{
    *b = (tokmap_stage_batch){.struct_size = sizeof *b};
    const tokmap_status status = tokmap_stage_next(s, b, NULL, err);
    return status ? status : tokmap_stage_release(s, b, NULL, err);
}

static void cut_under_stage(const way *w, size_t n_left, int32_t no_thread)
{
    tokmap_loader *l = open_loader(w);
    tokmap_stage *s = open_stage(l, w, no_thread);
    tokmap_stage_batch b;
    tokmap_error err = {0};
    CHECK_INT(next_batch(s, &b, &err), TOKMAP_OK);
    cut_index(n_left);
    tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < N_STEPS && !status; i++)
        status = next_batch(s, &b, &err);
    check_error(status, &err, n_left);
    const uint64_t position = tokmap_stage_position(s);
    check_error(next_batch(s, &b, &err), &err, n_left);
    CHECK_EQ(tokmap_stage_position(s), position);
    repair_index();
    for (int i = 0; i < 50; i++)
        CHECK_INT(next_batch(s, &b, &err), TOKMAP_OK);
    tokmap_stage_close(s);
    check_rows(l, w, 3);
    tokmap_loader_close(l);
}

TEST(a_stage_says_what_is_missing_and_goes_on)
{
    open_dataset();
    for (size_t i = 0; i < N_WAYS; i++) {
        cut_under_stage(&ways[i], i % 2 ? 0 : index_file.n_bytes / 3, 0);
        cut_under_stage(&ways[i], i % 2 ? index_file.n_bytes / 3 : 0, 1);
    }
    close_dataset();
}
