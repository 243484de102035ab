/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_faults - each call that a Loader over a store makes fails in turn: an error, and
 * nothing stays open. Apart from test_loader_store.c, because ThreadSanitizer does not see the
 * calls of faults.h. */
#include <errno.h>

#include "support/faults.h"
#include "support/joined.h"
#include "support/loader_corpus.h"
#include "support/must.h"
#include "support/object_store.h"

enum {
    LENGTH = 19,
    N_ROWS = 5
};

static corpus_shape flat = {.name = "flat", .n_tokens = 6000, .token_bytes = 2};
static corpus_shape joined = {
    .name = "joined", .n_tokens = 6000, .token_bytes = 2, .n_segments = 23};
static object_store store;
static tokmap_error err;

static void write_lane(const tokmap_dataset *ds)
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

/* Opens the dataset and takes two batches, or fails. */
static void use_everything(const char *name, int mode)
{
    const char *names[] = {"w"};
    tokmap_dataset *ds;
    tokmap_loader *l;
    if (tokmap_dataset_open_from(&ds, name, &store.source, &err))
        return;
    const tokmap_loader_source source = {
        .datasets = (tokmap_dataset *const[]){ds}, .n_datasets = 1, .weight = 1};
    tokmap_loader_options o = {LOADER_SIZES,
                               .sources = &source,
                               .n_sources = 1,
                               .sequence_length = LENGTH,
                               .batch_rows = N_ROWS,
                               .n_ranks = 1,
                               .row_parts = ALL_PARTS,
                               .lanes = names,
                               .n_lanes = 1,
                               .look_ahead = 2,
                               .verify_blocks = mode % 2};
    corpus_set_mode(&o, mode);
    if (!tokmap_loader_open(&l, &o, &err)) {
        tokmap_batch b = TOKMAP_INIT(tokmap_batch);
        if (!tokmap_loader_next(l, &b, &err))
            (void)tokmap_loader_next(l, &b, &err);
        tokmap_loader_close(l);
    }
    tokmap_dataset_close(ds);
}

TEST(every_failed_call_is_an_error_and_leaves_nothing)
{
    unsetenv("TOKMAP_IO");
    corpus_random_state = 1;
    corpus_cut(&flat, 40);
    joined.n_documents = flat.n_documents;
    memcpy(joined.ends, flat.ends, sizeof flat.ends);
    corpus_shape_open(&flat);
    corpus_shape_open(&joined);
    object_store_open(&store);
    write_lane(flat.ds);
    write_lane(joined.ds);
    const struct {
        unsigned calls;
        int errno_value;
    } sweeps[] = {
        {FAULT_MMAP | FAULT_FTRUNCATE, ENOMEM}, {FAULT_PREAD, EIO}, {FAULT_MEMORY, ENOMEM}};
    for (int mode = 0; mode < 4; mode++) {
        char name[700];
        snprintf(name, sizeof name, STORE "%s", mode < 2 ? flat.path : joined.path);
        use_everything(name, mode);
        const unsigned n_before = n_open_files();
        for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps - !FAULT_MEMORY_WORKS; i++) {
            uint64_t n = 0;
            for (bool struck = true; struck && n < 2000; n++) {
                fault_arm(FAULT_ONCE, sweeps[i].calls, sweeps[i].errno_value, n + 1);
                use_everything(name, mode);
                struck = fault_disarm();
                CHECK_EQ(n_open_files(), n_before);
            }
            CHECK(n > 1 && n < 2000);
        }
    }
    corpus_shape_close(&flat);
    corpus_shape_close(&joined);
}
